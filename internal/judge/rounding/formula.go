package rounding

import (
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// formula computes the results a second time by the operator's formula.
func (c *applied) formula() []*state {
	silent, since := c.silent, len(c.made)
	defer func() {
		c.silent = silent
		c.forget(since, func(*tensor.Tensor) bool { return false })
	}()
	c.silent = true
	defer c.room(elements(slices.Concat(c.call.Args.AllValues(), c.out)))()
	var states []*state
	err := op.Catch(func() {
		for _, v := range c.call.Def.Formula(c.Builder(), c.call.Args) {
			states = append(states, c.of(v))
		}
	})
	if err != nil || len(states) != len(c.out) {
		return nil
	}
	for i, st := range states {
		if st.err != nil && !slices.Equal(st.err.Shape(), c.out[i].Shape()) {
			return nil
		}
	}
	return states
}

// stated has the operator itself bound the errors of its results.
func (c *applied) stated() []*state {
	r := &op.Rounding{
		Args:     c.call.Args.MapValues(func(v op.Value) op.Value { return tensorOf(v) }),
		Unit:     c.unit,
		Error:    func(p op.TensorArg) *tensor.Tensor { return c.of(c.call.Args.Value(p)).err },
		Integral: func(p op.TensorArg) bool { st := c.of(c.call.Args.Value(p)); return st.integral && st.err == nil },
		Sum:      func(terms int) float64 { return c.sumRoundings(terms, c.distinct(terms)) },
		ULP:      func(limit float64) float64 { return max(1, c.limit(limit)) },
	}
	for _, v := range c.out {
		r.Out = append(r.Out, tensorOf(v))
	}
	errs, ok := c.call.Def.Errors(r)
	if !ok {
		return nil
	}
	return each(len(errs), func(i int) *state { return &state{err: errs[i], integral: errs[i] == nil} })
}
