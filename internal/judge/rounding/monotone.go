package rounding

import (
	"math"

	"plumb/op"
	"plumb/tensor"
)

// monotone bounds operators that select elements and whose results move with
// their operands: the results lie between those for operands that all lie as
// low, and as high, as their errors allow. Indices hold where the order of the
// elements does.
func (c *applied) monotone() []*state {
	low, errLow := c.shifted(-1)
	high, errHigh := c.shifted(1)
	if errLow != nil || errHigh != nil {
		return nil
	}
	ordered := c.ordered()
	return each(len(c.out), func(i int) *state {
		y := tensorOf(c.out[i])
		switch {
		case y.DType() == tensor.F64:
			return &state{err: spread(y, low[i], high[i], c.unit)}
		case ordered && !y.DType().IsDifferentiable():
			return &state{integral: true}
		case c.asks() && !y.DType().IsDifferentiable():
			return &state{unknown: true, rivals: c.rivals(i)}
		}
		return &state{unknown: true}
	})
}

// shifted computes the call with every operand moved by its error, in the
// direction of sign.
func (c *applied) shifted(sign float64) ([]*tensor.Tensor, error) {
	args := c.call.Args.MapValues(func(v op.Value) op.Value {
		x, e := tensorOf(v), c.of(v).err
		if e == nil {
			return x
		}
		x = x.Clone()
		for i := range x.Len() {
			x.Set(i, x.At(i)+complex(sign*c.unit*e.Float(i), 0))
		}
		return x
	})
	return (&op.Call{Def: c.call.Def, Args: args}).Execute()
}

// spread returns how far y lies from low and high, in units of the roundoff,
// with what float64 itself rounds.
func spread(y, low, high *tensor.Tensor, unit float64) *tensor.Tensor {
	err := tensor.New(tensor.F64, y.Shape()...)
	data, values, lows, highs := tensor.Data[float64](err), reals(y), reals(low), reals(high)
	for i, v := range values {
		if d := max(v-lows[i], highs[i]-v); d > 0 {
			data[i] = (d + 0x1p-52*math.Abs(v)) / unit
		}
	}
	return err
}
