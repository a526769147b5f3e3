package backend

import (
	"cmp"
	"slices"

	"plumb/program"
	"plumb/tensor"
)

// Part is a part of an outcome.
type Part string

// The parts of an outcome.
const (
	PartValue  Part = "value"  // the result of a call
	PartChange Part = "change" // what a call left in an input or an earlier result
	// PartParam and PartState are a module's parameter and its buffer after the
	// last call. Slots have both as PartState: backends do not tell them apart.
	PartParam     Part = "param"
	PartState     Part = "state"
	PartGrad      Part = "grad"       // the gradient of an input, or of a leaf that a call made
	PartParamGrad Part = "param_grad" // of a module's parameter
	// The gradients of the second order.
	PartSecondGrad      Part = "grad2"
	PartSecondParamGrad Part = "param_grad2"
	PartStep            Part = "step" // a module's parameter after the optimizer's step
)

// parts are in the order in which they are compared.
var parts = []Part{PartValue, PartChange, PartParam, PartState, PartGrad, PartParamGrad, PartSecondGrad, PartSecondParamGrad, PartStep}

// IsGradient reports whether the part holds gradients.
func (p Part) IsGradient() bool {
	return p == PartGrad || p == PartParamGrad || p.IsSecond()
}

// IsSecond reports whether the part holds gradients of the second order.
func (p Part) IsSecond() bool { return p == PartSecondGrad || p == PartSecondParamGrad }

// Place says which tensor of an outcome a slot holds.
type Place struct {
	Part  Part
	Call  int    // the call that gave it, of PartValue, or changed it, of PartChange; 0 of other parts
	Owner string // the input, result or module, by its name in the program
	Name  string // of a module's parameter or buffer; empty for others
}

// String returns the name under which the program knows the tensor, such as "x"
// or "m.weight".
func (at Place) String() string {
	if at.Name == "" {
		return at.Owner
	}
	return at.Owner + "." + at.Name
}

// Slot holds one tensor of an outcome.
type Slot struct {
	Place
	Tensor *tensor.Tensor // nil for a gradient that did not arrive
}

// Add appends a slot.
func (o *Outcome) Add(at Place, t *tensor.Tensor) { o.Slots = append(o.Slots, Slot{at, t}) }

// Size returns how many bytes the elements of the values and slots take.
func (o *Outcome) Size() int {
	return o.sum(func(t *tensor.Tensor) int { return t.Len() * t.DType().Size() })
}

// Elements returns how many elements the values and slots have.
func (o *Outcome) Elements() int { return o.sum((*tensor.Tensor).Len) }

func (o *Outcome) sum(of func(*tensor.Tensor) int) int {
	n := 0
	for i := range o.Values {
		n += o.Values[i].sum(of)
	}
	for i := range o.Slots {
		if t := o.Slots[i].Tensor; t != nil {
			n += of(t)
		}
	}
	return n
}

// Part returns what a path of places leads to in tuples; the zero Value for nothing.
func (v Value) Part(path []int) Value {
	for _, i := range path {
		if i >= len(v.Tuple) {
			return Value{}
		}
		v = v.Tuple[i]
	}
	return v
}

func (v *Value) sum(of func(*tensor.Tensor) int) int {
	n := 0
	if v.Tensor != nil {
		n = of(v.Tensor)
	}
	for i := range v.Tuple {
		n += v.Tuple[i].sum(of)
	}
	return n
}

// Bare returns how the program ended, without values and slots.
func (o *Outcome) Bare() *Outcome {
	b := *o
	b.Values, b.Slots, b.Initial = nil, nil, nil
	return &b
}

// At returns the tensor at a place; nil where there is none.
func (o *Outcome) At(at Place) *tensor.Tensor {
	for i := range o.Slots {
		if o.Slots[i].Place == at {
			return o.Slots[i].Tensor
		}
	}
	return nil
}

// Within returns the tensor at a place, of PartValue the one at a path of positions in
// tuples; nil where there is none.
func (o *Outcome) Within(at Place, path []int) *tensor.Tensor {
	if at.Part != PartValue {
		return o.At(at)
	}
	v := o.Values[at.Call]
	for _, i := range path {
		if i >= len(v.Tuple) {
			return nil
		}
		v = v.Tuple[i]
	}
	return v.Tensor
}

// Replaced returns the outcome with what by makes of each of its tensors, which it is told as
// Within takes it.
func (o *Outcome) Replaced(by func(at Place, path []int, t *tensor.Tensor) *tensor.Tensor) *Outcome {
	c := *o
	c.Values, c.Slots = slices.Clone(o.Values), slices.Clone(o.Slots)
	for i := range c.Values {
		at := Place{Part: PartValue, Call: i}
		c.Values[i] = c.Values[i].replaced(nil, func(path []int, t *tensor.Tensor) *tensor.Tensor { return by(at, path, t) })
	}
	for i, s := range c.Slots {
		if s.Tensor != nil {
			c.Slots[i].Tensor = by(s.Place, nil, s.Tensor)
		}
	}
	return &c
}

func (v Value) replaced(path []int, by func(path []int, t *tensor.Tensor) *tensor.Tensor) Value {
	if v.Tensor != nil {
		v.Tensor = by(path, v.Tensor)
	}
	v.Tuple = slices.Clone(v.Tuple)
	for i := range v.Tuple {
		v.Tuple[i] = v.Tuple[i].replaced(append(path, i), by)
	}
	return v
}

// Has reports whether the outcome has slots of a part.
func (o *Outcome) Has(part Part) bool {
	return slices.ContainsFunc(o.Slots, func(s Slot) bool { return s.Part == part })
}

// Grad returns the gradient of an input; nil where none arrived.
func (o *Outcome) Grad(input string) *tensor.Tensor {
	return o.At(Place{Part: PartGrad, Owner: input})
}

// Of returns the tensors of a part that belong to one module.
func (o *Outcome) Of(part Part, module string) State {
	var state State
	for _, s := range o.Slots {
		if s.Part == part && s.Owner == module {
			state = append(state, Named{s.Name, s.Tensor})
		}
	}
	return state
}

// With returns the outcome with a tensor at a place.
func (o *Outcome) With(at Place, t *tensor.Tensor) *Outcome {
	c := *o
	c.Slots = slices.Clone(o.Slots)
	i := slices.IndexFunc(c.Slots, func(s Slot) bool { return s.Place == at })
	if i < 0 {
		c.Add(at, t)
	} else {
		c.Slots[i].Tensor = t
	}
	return &c
}

// Holding returns the outcome with tensors at the places of slots.
func (o *Outcome) Holding(slots []Slot) *Outcome {
	for _, s := range slots {
		o = o.With(s.Place, s.Tensor)
	}
	return o
}

// Without returns the outcome without the parts that drop tells.
func (o *Outcome) Without(drop func(Part) bool) *Outcome {
	c := *o
	c.Slots = slices.DeleteFunc(slices.Clone(o.Slots), func(s Slot) bool { return drop(s.Part) })
	return &c
}

// Places returns the places of the outcomes' slots in the order in which they
// are compared: by part, call and owner as in the program, then by module as
// the first outcome has them. What belongs to no name of the program has none.
func Places(p *program.Program, outcomes ...*Outcome) []Place {
	var all []Place
	for _, o := range outcomes {
		first := all == nil
		all = slices.Grow(all, max(0, len(o.Slots)-len(all)))
		for i := range o.Slots {
			// Outcomes mostly have the same places in the same order.
			at := o.Slots[i].Place
			if first || !(i < len(all) && all[i] == at) && !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	position := make(map[string]int, len(p.Inputs)+len(p.Calls))
	for i := range p.Inputs {
		position[p.Inputs[i].Name] = i
	}
	for i := range p.Calls {
		position[p.Calls[i].Result] = len(p.Inputs) + i
	}
	all = slices.DeleteFunc(all, func(at Place) bool {
		_, known := position[at.Owner]
		return !known
	})
	slices.SortStableFunc(all, func(a, b Place) int {
		return cmp.Or(slices.Index(parts, a.Part)-slices.Index(parts, b.Part), a.Call-b.Call, position[a.Owner]-position[b.Owner])
	})
	return all
}
