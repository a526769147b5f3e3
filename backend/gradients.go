package backend

import (
	"fmt"

	"plumb/program"
)

// GradientFunction computes the gradients of a program for a subject that does not
// differentiate: a program of one call, as of batch_norm_backward, whose results are the
// gradients of the Inputs of the program Of.
type GradientFunction struct {
	Program *program.Program
	Of      *program.Program
	Inputs  []string
}

// Gradients is what the function gave as the part that it is of the outcome of the program
// that it differentiates. The error says that its results are no such gradients.
func (g *GradientFunction) Gradients(o *Outcome) (*Outcome, error) {
	own := *o
	own.Values, own.Call = nil, len(g.Of.Calls)
	if o.Status != OK {
		return &own, nil
	}
	got := o.Values
	if len(got) == 1 && got[0].IsTuple {
		got = got[0].Tuple
	}
	if len(got) != len(g.Inputs) {
		return nil, fmt.Errorf("%s returns %d values, want the gradients of %d inputs", g.Program.Calls[0].Target, len(got), len(g.Inputs))
	}
	for i, name := range g.Inputs {
		if got[i].Tensor == nil && got[i].Plain != nil {
			return nil, fmt.Errorf("%s returns %v as the gradient of %s", g.Program.Calls[0].Target, got[i].Plain, name)
		}
		own.Add(Place{Part: PartGrad, Owner: name}, got[i].Tensor)
	}
	return &own, nil
}
