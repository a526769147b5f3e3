package rounding

import (
	"context"
	"slices"

	"plumb/backend"
	"plumb/internal/eager"
	"plumb/internal/interp"
	"plumb/op"
	"plumb/program"
)

// Draws runs the program forward and returns, for each of its calls, the calls
// of random operators that it makes whose results are not certain. Calls that
// were not reached have none; nil says that no call of the program draws.
func (a *Analysis) Draws(job *backend.Job) [][]backend.Draw {
	if !a.mayDraw(job.Program) {
		return nil
	}
	forward := *job.Program
	forward.Backward = nil
	s := eager.New(a.table)
	r := a.interpreter.Start(&backend.Job{Program: &forward, Inputs: job.Inputs, State: job.State}, interp.EagerSession{Session: s})
	var notes []note
	s.OnDraw(func(call *op.Call, out []op.Value) {
		if call.Def.Law(call.Args.MapValues(withoutVar)) != nil {
			notes = append(notes, note{r.Calls(), call, out})
		}
	})
	r.Outcome(context.Background())
	return drawsOf(job.Program, r, notes)
}

// mayDraw reports whether a call of the program has a random operator or a
// module that may apply one.
func (a *Analysis) mayDraw(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		if m := a.modules.Lookup(c.Target); m != nil {
			return m.Random
		}
		return slices.ContainsFunc(a.table.Lookup(c.Target), func(d *op.Def) bool { return d.Traits.Has(op.Random) })
	})
}

// note is one call of a random operator.
type note struct {
	at   int // the program's call that makes it
	call *op.Call
	out  []op.Value
}

func withoutVar(v op.Value) op.Value {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v
}

// drawsOf names the notes' tensors by the program's names.
func drawsOf(p *program.Program, r *interp.Run, notes []note) [][]backend.Draw {
	names := r.Names()
	draws := make([][]backend.Draw, len(p.Calls))
	for _, n := range notes {
		d := backend.Draw{Def: n.call.Def, Args: n.call.Args.MapValues(withoutVar)}
		for _, v := range n.call.Args.Vals {
			ref := program.Ref("")
			if x, ok := v.(op.Value); ok {
				ref = names[x]
			}
			d.Refs = append(d.Refs, ref)
		}
		own := r.Variable(program.Ref(p.Calls[n.at].Result))
		d.Whole = own != nil && op.Value(own) == n.out[0]
		draws[n.at] = append(draws[n.at], d)
	}
	return draws
}
