package rounding

import (
	"math"
	"math/bits"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// rivals are the places that rounding may have an operator take in the place of those which its
// result i names, that of an element each: as many tensors as there are such for one of them. Where
// an element has fewer, they name the place that it has. Of numbers that are equal in float64 a rule
// decides and not rounding: these are no rivals.
//
// Which elements one is taken from is the operator's to know. Of two of them the positions differ
// in a bit; where all that have it as the first has are as low as their errors allow, and the
// others as high, the second is taken if it may be.
func (c *applied) rivals(i int) (all []*tensor.Tensor) {
	values := c.call.Args.AllValues()
	if len(values) != 1 || c.of(values[0]).err == nil || !below([]*tensor.Tensor{absolute(c.of(values[0]).err)}, math.MaxFloat64) {
		return nil
	}
	x, err, taken := tensorOf(values[0]), c.of(values[0]).err, tensorOf(c.out[i])
	split := func(bit, low int, by func(k int) float64) *tensor.Tensor {
		moved := x.Clone()
		for k := range moved.Len() {
			sign := 1.0
			if k>>bit&1 == low {
				sign = -1
			}
			moved.Set(k, complex(x.Float(k)+sign*by(k), 0))
		}
		out, failed := (&op.Call{Def: c.call.Def, Args: c.call.Args.MapValues(func(op.Value) op.Value { return moved })}).Execute()
		if failed != nil {
			return taken
		}
		return out[i]
	}
	for bit := range bits.Len(uint(max(0, x.Len()-1))) {
		for low := range 2 {
			near := split(bit, low, func(k int) float64 { return Near * c.unit * err.Float(k) })
			level := split(bit, low, func(k int) float64 { return onto * math.Abs(x.Float(k)) })
			for k := range near.Len() {
				if near.Int(k) != taken.Int(k) && level.Int(k) == taken.Int(k) {
					all = withRival(all, taken, k, near.Int(k))
				}
			}
		}
	}
	return all
}

// withRival adds a place for element k.
func withRival(all []*tensor.Tensor, taken *tensor.Tensor, k int, place int64) []*tensor.Tensor {
	for _, t := range all {
		switch t.Int(k) {
		case place:
			return all
		case taken.Int(k):
			t.SetInt(k, place)
			return all
		}
	}
	other := taken.Clone()
	other.SetInt(k, place)
	return append(all, other)
}

// rivalled reports a sum of elements at places, one each, some of which have rivals.
func (c *applied) rivalled() bool {
	places, terms := c.placed()
	return places != nil && terms != nil && c.asks() && len(c.out) == 1 && sumsProducts(c.call) && c.table.Def(c.call.Def.Magnitude) == c.call.Def
}

// placed are the operands of a call of two: places that have rivals, and an element for each.
func (c *applied) placed() (places, terms op.Value) {
	operands := c.call.Args.AllValues()
	for _, v := range operands {
		switch st := c.of(v); {
		case len(st.rivals) > 0:
			places = v
		case v.DType().IsDifferentiable() && !st.unknown:
			terms = v
		}
	}
	if len(operands) != 2 || places == nil || terms == nil || !slices.Equal(places.Shape(), terms.Shape()) {
		return nil, nil
	}
	return places, terms
}

// anywhere bounds such a sum: an element that may be at another place is missing, or too much,
// at either. Where it is too much it is as the kernel has computed it, with its errors.
func (c *applied) anywhere() []*state {
	places, terms := c.placed()
	decided := tensorOf(places).Clone()
	c.set(decided, &state{integral: true})
	as := *c.call
	as.Args = c.call.Args.MapValues(func(v op.Value) op.Value {
		if v == places {
			return decided
		}
		return v
	})
	st := c.propagate(&as, c.out)[0]
	if st.unknown {
		return nil
	}
	total := tensor.New(tensor.F64, c.shape()...)
	if st.err != nil {
		total = st.err.Clone().Contiguous()
	}
	size := absolute(tensorOf(terms))
	if e := c.of(terms).err; e != nil {
		for k := range size.Len() {
			size.Set(k, complex(size.Float(k)+Near*c.unit*e.Float(k), 0))
		}
	}
	for _, other := range c.of(places).rivals {
		moving := size.Clone()
		for k := range moving.Len() {
			if other.Int(k) == decided.Int(k) {
				moving.Set(k, 0)
			}
		}
		for _, at := range []*tensor.Tensor{decided, other} {
			off, err := c.with(func(v op.Value) *tensor.Tensor {
				if v == places {
					return at
				}
				return moving
			})
			if err != nil || !below([]*tensor.Tensor{off}, math.MaxFloat64) {
				return nil
			}
			for k := range off.Len() {
				total.Set(k, complex(total.Float(k)+off.Float(k)/(Near*c.unit), 0))
			}
		}
	}
	c.near, st.err = true, total
	return []*state{st}
}
