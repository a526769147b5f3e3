package native

import (
	"context"
	"slices"

	"plumb/backend"
	"plumb/eager"
	"plumb/op"
	"plumb/program"
)

// Draws runs the program forward and returns, for each of its calls, the calls
// of random operators that it makes whose results are not certain. Calls that
// were not reached have none; nil says that no call of the program draws.
func (b *Backend) Draws(job *backend.Job) [][]backend.Draw {
	if !b.mayDraw(job.Program) {
		return nil
	}
	forward := *job.Program
	forward.Backward = nil
	s := &drawing{Session: eager.New(b.table), table: b.table}
	r := &run{
		Backend: b, session: s, env: map[program.Ref]*value{}, out: &backend.Outcome{Status: backend.OK},
		job: &backend.Job{Program: &forward, Inputs: job.Inputs, State: job.State},
	}
	s.at = func() int { return len(r.out.Values) }
	r.guarded()
	return s.collect(r)
}

// guarded runs the program; a panic ends it.
func (r *run) guarded() {
	defer func() { _ = recover() }()
	r.program(context.Background())
}

// mayDraw reports whether a call of the program has a random operator or a
// module that may apply one.
func (b *Backend) mayDraw(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		if m := b.modules.Lookup(c.Target); m != nil {
			return m.Random
		}
		return slices.ContainsFunc(b.table.Lookup(c.Target), func(d *op.Def) bool { return d.Traits.Has(op.Random) })
	})
}

// drawing is a session that notes the calls of random operators.
type drawing struct {
	*eager.Session
	table *op.Table
	at    func() int // the program's call that runs
	notes []note
}

type note struct {
	at   int
	call *op.Call
	out  []op.Value
}

func (s *drawing) Builder() op.Builder { return op.Builder{Applier: s} }

// Apply applies an operator of a module's forward.
func (s *drawing) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := s.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return s.Execute(call)
}

// Execute computes a call and notes it when it draws.
func (s *drawing) Execute(call *op.Call) ([]op.Value, error) {
	out, err := s.Session.Execute(call)
	if err == nil && call.Def.Law != nil {
		plain := call.Args.MapValues(tensorOf)
		if call.Def.Law(plain) != nil {
			s.notes = append(s.notes, note{s.at(), call, out})
		}
	}
	return out, err
}

func tensorOf(v op.Value) op.Value {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v
}

// collect names the notes' tensors by the program's names.
func (s *drawing) collect(r *run) [][]backend.Draw {
	names := map[op.Value]program.Ref{}
	for name, v := range r.env {
		if v.tensor != nil {
			names[v.tensor] = name
		}
	}
	draws := make([][]backend.Draw, len(r.job.Program.Calls))
	for _, n := range s.notes {
		d := backend.Draw{Def: n.call.Def, Args: n.call.Args.MapValues(tensorOf)}
		for _, v := range n.call.Args.Vals {
			ref := program.Ref("")
			if x, ok := v.(op.Value); ok {
				ref = names[x]
			}
			d.Refs = append(d.Refs, ref)
		}
		own := r.env[program.Ref(r.job.Program.Calls[n.at].Result)]
		d.Whole = own != nil && own.tensor != nil && op.Value(own.tensor) == n.out[0]
		draws[n.at] = append(draws[n.at], d)
	}
	return draws
}

var _ session = (*drawing)(nil)
