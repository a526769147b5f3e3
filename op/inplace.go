package op

import (
	"slices"
	"strings"

	"plumb/tensor"
)

// InPlaceRules say how an operator that stores its result into its first tensor
// argument differs there from the operator as a function.
type InPlaceRules struct {
	// Through writes a call as an in-place call on a view of the tensor, of
	// which it returns the id and arguments; "" where it stores its own result.
	Through func(b Builder, a Args) (id string, args []any)
	// NoResult says that the call is a statement of Python, which has no value.
	NoResult bool
	// Fit rejects a result that the tensor cannot hold, before what holds for
	// every operator: Castable, and equal shapes.
	Fit func(a Args, result Value) error
	// Resizes says that PyTorch gives the tensor the shape of the result.
	Resizes bool
	// Expanded says that the tensor may have several indices for one element.
	Expanded bool
	// Detaches says that it changes no element but ends the tensor's history.
	Detaches bool
	// Untracked says that PyTorch leaves the tensor's gradient as it was.
	Untracked bool
	// NoGradView says of a View that it is not supported where a gradient is wanted.
	NoGradView bool
	// FrozenViews says that PyTorch refuses to change the results, which are
	// views, where that is differentiated.
	FrozenViews bool
	// NoGrad is what PyTorch refuses the call with if an argument requires a gradient.
	NoGrad string
	// NoBackward returns what PyTorch refuses to differentiate the call with
	// once a gradient is asked for; "" where it has one. Nil always has one.
	NoBackward func(a Args) string
	// Called returns the arguments of the pure call that computes what a call by the
	// name of the in-place form does, where PyTorch's function of the pure name refuses
	// what its kernel takes; nil: they are the same.
	Called func(a Args) Args
}

// Differentiable reports whether PyTorch differentiates the call in place.
func (r *InPlaceRules) Differentiable(a Args) bool { return r.NoGrad == "" && r.Refusal(a) == "" }

// Refusal returns what a backward pass through the call is refused with; "" for none.
func (r *InPlaceRules) Refusal(a Args) string {
	if r.NoBackward == nil {
		return ""
	}
	return r.NoBackward(a)
}

// assigning are the Python operators that change their left operand, such as
// operator.iadd. A tensor has no __imatmul__: x @= y makes a new one.
var assigning = []string{"iadd", "iand", "ifloordiv", "ilshift", "imod", "imul", "ior", "ipow", "irshift", "isub", "itruediv", "ixor"}

// InPlace reports whether a public name is one of a function that changes its
// first tensor: Tensor.relu_, torch.nn.functional.relu_, operator.iadd, operator.setitem.
func InPlace(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.HasPrefix(name, "operator.") {
		return name == "operator.setitem" || slices.Contains(assigning, last)
	}
	return last == "__setitem__" || strings.HasSuffix(last, "_") && !strings.HasSuffix(last, "__")
}

// Assigning returns the name under which Python changes the left operand of an
// operator in place, such as operator.iadd of operator.add, or, of
// operator.matmul, only assigns its result; "" for none.
func Assigning(name string) string {
	base, ok := strings.CutPrefix(name, "operator.")
	if base = strings.TrimSuffix(base, "_"); ok && (name == "operator.matmul" || slices.Contains(assigning, "i"+base)) {
		return "operator.i" + base
	}
	return ""
}

// inPlace notes on a bound call that it changes its first tensor: by its name,
// or because an argument says so. The arguments become those of the operator
// that computes what the tensor becomes.
func (c *Call) inPlace(name string) {
	_, tensor := c.Args.Vals[0].(Value)
	c.InPlace = tensor && InPlace(name)
	if c.InPlace && c.Def.InPlace.Called != nil {
		c.Args = c.Def.InPlace.Called(c.Args)
	}
	if i := c.Args.Sig.index("inplace"); i >= 0 && c.Args.Vals[i] == true {
		c.InPlace = true
		c.Args.Vals = slices.Clone(c.Args.Vals)
		c.Args.Vals[i] = false
	}
}

// Pure returns the call that computes what an in-place call stores.
func (c *Call) Pure() *Call {
	pure := *c
	pure.InPlace = false
	return &pure
}

// BadInPlaceDType refuses a result whose dtype is not the tensor's own, where
// PyTorch computes into the tensor without a conversion.
func BadInPlaceDType(own, result tensor.DType) error {
	return RuntimeError("Bad in-place call: input tensor dtype %s and output tensor dtype %s should match", own, result)
}

// Castable is torch.can_cast: whether a tensor of one dtype may hold results
// of another. A result's kind of number may not be wider.
func Castable(from, to tensor.DType) bool {
	switch {
	case from.IsComplex():
		return to.IsComplex()
	case from.IsFloat():
		return to.IsFloat() || to.IsComplex()
	case from.IsInt():
		return to != tensor.Bool
	}
	return true
}
