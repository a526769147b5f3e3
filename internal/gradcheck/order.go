package gradcheck

import (
	"errors"
	"fmt"
	"math/cmplx"

	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

var errNothing = errors.New("no result depends differentiably on the arguments")

// first returns the weighted results of a call as a function of its leaves.
func first(c *Call) (*function, error) {
	s := c.session()
	out, err := c.apply(s)
	if err != nil {
		return nil, err
	}
	weights := weigh(out, 0)
	grads, err := backward(s, out, weights, false)
	if err != nil {
		return nil, err
	}
	f := &function{middle: total(out, weights), value: func() (sum, error) {
		out, err := c.apply(c.session())
		return total(out, weights), err
	}}
	for _, l := range c.leaves {
		f.leaves = append(f.leaves, leaf{name: l.name, Var: l.Var, grad: grads[l.Var], hermitian: c.def.Domains[op.TensorArg(l.name)] == op.Hermitian})
	}
	return f, nil
}

// second returns the weighted gradients of a call as a function of its leaves
// and of the results' weights.
func second(c *Call) (*function, error) {
	s := c.session()
	out, err := c.apply(s)
	if err != nil {
		return nil, err
	}
	cotangents := weigh(out, 0)
	for _, w := range cotangents {
		if w != nil {
			*w = *s.Leaf(w.Tensor, true)
		}
	}
	gradients := func(s *eager.Session, out []op.Value) ([]op.Value, error) {
		grads, err := backward(s, out, cotangents, true)
		var gs []op.Value
		for _, l := range c.leaves {
			gs = append(gs, grads[l.Var])
		}
		return gs, err
	}
	gs, err := gradients(s, out)
	if err != nil {
		return nil, err
	}
	weights := weigh(gs, uint64(len(out)))
	grads, err := backward(s, gs, weights, false)
	if err != nil {
		return nil, fmt.Errorf("the gradient's gradient: %w", err)
	}
	f := &function{middle: total(gs, weights), value: func() (sum, error) {
		s := c.session()
		out, err := c.apply(s)
		if err != nil {
			return sum{}, err
		}
		gs, err := gradients(s, out)
		return total(gs, weights), err
	}}
	for _, l := range c.leaves {
		f.leaves = append(f.leaves, leaf{name: l.name, Var: l.Var, grad: grads[l.Var], hermitian: c.def.Domains[op.TensorArg(l.name)] == op.Hermitian})
	}
	for i, w := range cotangents {
		if w != nil {
			f.leaves = append(f.leaves, leaf{name: fmt.Sprintf("the cotangent of result %d", i), Var: w, grad: grads[w]})
		}
	}
	return f, nil
}

// weigh draws weights for the results that have a difference quotient: those
// in the full precision, others being rounded. The rest has nil.
func weigh(out []op.Value, key uint64) []*eager.Var {
	weights := make([]*eager.Var, len(out))
	for i, v := range out {
		if v == nil || v.DType() != tensor.F64 && v.DType() != tensor.C128 {
			continue
		}
		w := tensor.New(v.DType(), v.Shape()...)
		fill := program.Fill{Dist: program.Uniform, Lo: 0.5, Hi: 1.5, Key: choice.Derive(key, uint64(i))}
		fill.Into(w)
		weights[i] = eager.Leaf(w, false)
	}
	return weights
}

// total returns Re Σ conj(w)·y.
func total(out []op.Value, weights []*eager.Var) sum {
	var s sum
	for i, v := range out {
		if weights[i] == nil || v == nil {
			continue
		}
		y, w := v.(*eager.Var), weights[i]
		for j := range w.Len() {
			term := cmplx.Conj(w.At(j)) * y.At(j)
			s.total += real(term)
			s.magnitude += cmplx.Abs(w.At(j)) + cmplx.Abs(term)
		}
	}
	return s
}

// backward differentiates the weighted results that require a gradient.
func backward(s *eager.Session, out []op.Value, weights []*eager.Var, create bool) (map[op.Value]op.Value, error) {
	var values, cotangents []op.Value
	for i, v := range out {
		if weights[i] != nil && eager.RequiresGrad(v) {
			values, cotangents = append(values, v), append(cotangents, weights[i])
		}
	}
	if len(values) == 0 {
		return nil, errNothing
	}
	return s.Backward(values, cotangents, create)
}
