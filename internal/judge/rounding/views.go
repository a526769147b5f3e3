package rounding

import (
	"math"

	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// intoView adds the gradient of a part of a tensor to what there is of the whole one's, in
// place, and reports whether it did: by the rule of the view it is a whole tensor of zeros for
// each part, which takes the square of the steps of a recurrence.
func (s *errorSession) intoView(n *autograd.Node, cot autograd.Cotangents) bool {
	d := n.Call.Def
	if !s.silent || !d.Traits.Has(op.View) || d.InPlace.NoGradView || len(n.Out) != 1 {
		return false
	}
	x, whole := n.Call.Args.Vals[0].(op.Value)
	if !whole || cot[x] == nil || cot[n.Out[0]] == nil || !eager.RequiresGrad(x) {
		return false
	}
	sum, part := tensorOf(cot[x]), tensorOf(cot[n.Out[0]])
	of, added := s.of(sum), s.of(part)
	if sum.DType() != tensor.F64 || part.DType() != tensor.F64 || of.unknown || added.unknown || 2*part.Len() > sum.Len() {
		return false
	}
	if s.own[x] != sum {
		sum, of = s.owned(x, sum, of)
	}
	within := func(t *tensor.Tensor) (*tensor.Tensor, error) {
		return d.View(n.Call.Args.MapValues(func(op.Value) op.Value { return t }))
	}
	value, err := within(sum)
	if err != nil {
		return false
	}
	errs, err := within(of.err)
	if err != nil {
		return false
	}
	for i := range part.Len() {
		was, more := value.Float(i), part.Float(i)
		e := errs.Float(i)
		if added.err != nil {
			e += added.err.Float(i)
		}
		now := was + more
		if !(was == 0 && errs.Float(i) == 0) && !(of.integral && added.integral && added.err == nil) {
			e += math.Abs(now)
		}
		value.Set(i, complex(now, 0))
		errs.Set(i, complex(e, 0))
	}
	of.integral = of.integral && added.integral
	of.functions = of.functions || added.functions
	cot[x] = s.Leaf(sum, false)
	return true
}

// owned returns a copy of the gradient of x that no other value shares, with its errors.
func (s *errorSession) owned(x op.Value, g *tensor.Tensor, of *state) (*tensor.Tensor, *state) {
	sum, errs := tensor.New(tensor.F64, g.Shape()...), tensor.New(tensor.F64, g.Shape()...)
	for i := range g.Len() {
		sum.Set(i, g.At(i))
		if of.err != nil {
			errs.Set(i, of.err.At(i))
		}
	}
	own := &state{err: errs, integral: of.integral, functions: of.functions}
	s.set(sum, own)
	s.own[x] = sum
	return sum, own
}
