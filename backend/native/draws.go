package native

import (
	"context"
	"slices"

	"plumb/backend"
	"plumb/internal/eager"
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
	s := eager.New(b.table)
	r := &run{
		Backend: b, session: plainSession{s}, env: map[program.Ref]*value{}, out: &backend.Outcome{Status: backend.OK},
		job: &backend.Job{Program: &forward, Inputs: job.Inputs, State: job.State},
	}
	var notes []note
	s.OnDraw(func(call *op.Call, out []op.Value) {
		if call.Def.Law(call.Args.MapValues(plainOf)) != nil {
			notes = append(notes, note{len(r.out.Values), call, out})
		}
	})
	r.guarded()
	return r.draws(notes)
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

// note is one call of a random operator.
type note struct {
	at   int // the program's call that makes it
	call *op.Call
	out  []op.Value
}

func plainOf(v op.Value) op.Value {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v
}

// draws names the notes' tensors by the program's names.
func (r *run) draws(notes []note) [][]backend.Draw {
	names := map[op.Value]program.Ref{}
	for name, v := range r.env {
		if v.tensor != nil {
			names[v.tensor] = name
		}
	}
	draws := make([][]backend.Draw, len(r.job.Program.Calls))
	for _, n := range notes {
		d := backend.Draw{Def: n.call.Def, Args: n.call.Args.MapValues(plainOf)}
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
