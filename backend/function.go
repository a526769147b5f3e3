package backend

import (
	"fmt"
	"slices"

	"plumb/program"
)

// Function is one call that computes what a program computes, for a subject that has
// it so alone: its gradients, as batch_norm_backward does, or its results, as adam does.
type Function struct {
	Program *program.Program // of the one call
	Of      *program.Program
	// Returns names what the results are: of an input of Of its gradient, of a call of Of
	// its value; "" for one of which Of has none.
	Returns []string
}

// Part is what the function gave as the part that it is of the outcome of the program
// Of. The error says that its results are no such part.
func (f *Function) Part(o *Outcome) (*Outcome, error) {
	own := *o
	own.Values, own.Call = nil, f.first()
	inBackward := o.Call == len(f.Program.Calls) && len(o.Values) > 0
	if o.Status != OK && !inBackward {
		return &own, nil
	}
	own.Values, own.Call = make([]Value, len(f.Of.Calls)), len(f.Of.Calls)
	got := o.Values
	if len(got) == 1 && got[0].IsTuple {
		got = got[0].Tuple
	}
	returns := f.Returns
	// A subject without gradients may have a function that is one.
	own.ForwardOnly = o.ForwardOnly && f.first() < len(f.Of.Calls)
	if own.ForwardOnly || o.Status != OK {
		returns = slices.DeleteFunc(slices.Clone(returns), f.isInput)
	}
	if len(got) != len(returns) {
		return nil, fmt.Errorf("%s returns %d values, want %d: %q", f.Program.Calls[0].Target, len(got), len(returns), returns)
	}
	for i, name := range returns {
		switch {
		case name == "":
		case !f.isInput(name):
			own.Values[f.Call(name)] = got[i]
		case got[i].Tensor == nil && got[i].Plain != nil:
			return nil, fmt.Errorf("%s returns %v as the gradient of %s", f.Program.Calls[0].Target, got[i].Plain, name)
		default:
			own.Add(Place{Part: PartGrad, Owner: name}, got[i].Tensor)
		}
	}
	return &own, nil
}

// Beside is the outcome ref of the program with the part that a function is of it.
func (f *Function) Beside(ref, part *Outcome) *Outcome {
	own := *ref
	if part.Status != OK {
		own = *part
		own.Values = ref.Values[:part.Call]
		if len(part.Values) == 0 {
			return &own
		}
	}
	if own.ForwardOnly, own.NoGradients = part.ForwardOnly, part.NoGradients; own.ForwardOnly {
		own = *own.Without(Part.IsGradient)
	}
	own.Values = slices.Clone(ref.Values)
	for _, name := range f.Returns {
		if name != "" && !f.isInput(name) {
			at := f.Call(name)
			own.Values[at], own.Computed = part.Values[at], append(own.Computed, at)
			own.Values[at].RequiresGrad = ref.Values[at].RequiresGrad // a function knows of none
		}
	}
	return own.Holding(part.Slots)
}

// first is the first call whose value the function returns; as many as there are
// where it returns gradients alone.
func (f *Function) first() int {
	first := len(f.Of.Calls)
	for _, name := range f.Returns {
		if name != "" && !f.isInput(name) {
			first = min(first, f.Call(name))
		}
	}
	return first
}

func (f *Function) isInput(name string) bool {
	return slices.ContainsFunc(f.Of.Inputs, func(in program.Input) bool { return in.Name == name })
}

// Call is the call of Of whose value a result is; -1 for none.
func (f *Function) Call(name string) int {
	return slices.IndexFunc(f.Of.Calls, func(c program.Call) bool { return c.Result == name })
}

// Fits reports whether all that the function returns is of its program: a file may name
// what is not.
func (f *Function) Fits() bool {
	return !slices.ContainsFunc(f.Returns, func(name string) bool { return name != "" && !f.isInput(name) && f.Call(name) < 0 })
}
