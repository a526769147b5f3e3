package rounding

import (
	"math/cmplx"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// decision tells whether results that are no real numbers, such as those of a
// comparison, come out the same however the operands were rounded.
func (c *applied) decision() []*state {
	traits := c.call.Def.Traits
	certain := traits.Has(op.Classifies) && c.finiteReals() ||
		traits.Has(op.FollowsOrder) && c.ordered() ||
		traits.Has(op.Compares) && c.apart()
	if !certain {
		return nil
	}
	return []*state{{integral: true}}
}

// apart reports whether the two sides of a comparison are farther from each
// other than their errors reach.
func (c *applied) apart() bool {
	shape := c.out[0].Shape()
	x, xErr, okX := c.side("input", shape)
	y, yErr, okY := c.side("other", shape)
	if !okX || !okY {
		return false
	}
	for i := range tensor.NumElements(shape) {
		room := 4*c.unit*xErr(i) + 4*c.unit*yErr(i)
		if room != 0 && !(cmplx.Abs(x(i)-y(i)) > room) {
			return false
		}
	}
	return true
}

// side returns the elements of an argument, a tensor or a number, in a shape,
// and the bounds of their errors.
func (c *applied) side(name op.TensorArg, shape []int) (at func(i int) complex128, err func(i int) float64, ok bool) {
	exact := func(int) float64 { return 0 }
	v := c.call.Args.Value(name)
	if v == nil {
		number := c.call.Args.Any(name).(op.Scalar).Complex()
		return func(int) complex128 { return number }, exact, true
	}
	x, failed := tensorOf(v).Expand(shape...)
	if failed != nil {
		return nil, nil, false
	}
	e := c.of(v).err
	if e == nil {
		return x.At, exact, true
	}
	e, failed = e.Expand(shape...)
	return x.At, func(i int) float64 { return e.Float(i) }, failed == nil
}

// finiteReals reports whether the operands are real and finite, roundings included.
func (c *applied) finiteReals() bool {
	for _, v := range c.call.Args.AllValues() {
		if v.DType().IsComplex() || !below([]*tensor.Tensor{absolute(tensorOf(v))}, 0x1p126) {
			return false
		}
	}
	return true
}

// ordered reports whether no two elements of an operand could change places
// by their errors.
func (c *applied) ordered() bool {
	for _, v := range c.call.Args.AllValues() {
		e := c.of(v).err
		if e == nil {
			continue
		}
		x, room := slices.Clone(reals(tensorOf(v))), 8*c.unit*largest(e)
		slices.Sort(x)
		for i := range x[:max(len(x)-1, 0)] {
			if !(x[i+1]-x[i] > room) {
				return false
			}
		}
	}
	return true
}
