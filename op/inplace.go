package op

import (
	"slices"
	"strings"

	"plumb/tensor"
)

// assigning are the Python operators that change their left operand, such as
// operator.iadd. A tensor has no __imatmul__: x @= y makes a new one.
var assigning = []string{"iadd", "iand", "ifloordiv", "ilshift", "imod", "imul", "ior", "ipow", "irshift", "isub", "itruediv", "ixor"}

// InPlace reports whether a public name is one of a function that changes its
// first tensor: Tensor.relu_, torch.nn.functional.relu_, operator.iadd, operator.setitem.
func InPlace(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.HasPrefix(name, "operator.") {
		return last == "setitem" || slices.Contains(assigning, last)
	}
	return last == "__setitem__" || strings.HasSuffix(last, "_") && !strings.HasSuffix(last, "__")
}

// Assigning returns the name under which Python changes the left operand of an
// operator in place, such as operator.iadd of operator.add, or, of
// operator.matmul, only assigns its result; "" for none.
func Assigning(name string) string {
	base, ok := strings.CutPrefix(name, "operator.")
	if base = strings.TrimSuffix(base, "_"); ok && (base == "matmul" || slices.Contains(assigning, "i"+base)) {
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
	if i := c.Args.Sig.Index("inplace"); i >= 0 && c.Args.Vals[i] == true {
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
