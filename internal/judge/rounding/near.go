package rounding

import (
	"maps"
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/tensor"
)

// Near is how many times its bound an error may be where a decision follows from it: a kernel
// may be off by eight limits of twice the bound. The other side of a decision is as far.
const Near = 16

// onto is how near in float64 a number is on a decision, which a rule of its own decides: a half is
// rounded to even. Beside a given number that a dtype has not, as 0.9, rounding decides.
const onto = 0x1p-40

// asks reports whether anybody asks about decisions; in float64 hardly any is near.
func (s *errorSession) asks() bool { return s.choose != nil && s.unit > 0x1p-40 }

// uncertain reports an operand that is no number of a float dtype, and may be another one by a
// decision that was near.
func (c *applied) uncertain() bool {
	return c.asks() && slices.ContainsFunc(c.call.Args.AllValues(), c.decidedOperand)
}

func (c *applied) decidedOperand(v op.Value) bool {
	return !v.DType().IsDifferentiable() && c.of(v).err != nil
}

// either bounds a call of uncertain operands: what its results are as these were decided, and
// how far they are from those of the other decision, element by element.
func (c *applied) either() []*state {
	where := map[*tensor.Tensor]*tensor.Tensor{}
	if len(c.out) != 1 {
		return nil
	}
	asDecided := *c.call
	asDecided.Args = c.call.Args.MapValues(func(v op.Value) op.Value {
		if !c.decidedOperand(v) {
			return v
		}
		t, st := tensorOf(v).Clone(), *c.of(v)
		where[tensorOf(v)], st.err = st.err, nil
		c.set(t, &st)
		return t
	})
	states := c.propagate(&asDecided, c.out)
	if states[0].unknown {
		return nil
	}
	may := func(i int) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(where)), func(e *tensor.Tensor) bool {
			at, err := e.Expand(c.shape()...)
			return err != nil || at.Float(i) != 0
		})
	}
	flipped, err := c.with(func(v op.Value) *tensor.Tensor { return c.nudged(tensorOf(v), where[tensorOf(v)], -1) })
	if err != nil || !slices.Equal(flipped.Shape(), c.shape()) {
		return nil
	}
	covers := func(may func(int) bool) bool {
		for i := range flipped.Len() {
			if flipped.At(i) != tensorOf(c.out[0]).At(i) && !may(i) {
				return false
			}
		}
		return true
	}
	if !covers(may) {
		if may = c.carried(); may == nil || !covers(may) {
			return nil
		}
	}
	return c.moving(states[0], may)
}

// carried tells to which places a call that moves what is true or false takes what is uncertain;
// nil where it is none.
func (c *applied) carried() func(i int) bool {
	if !c.exact || !sumsProducts(c.call) || c.out[0].DType() != tensor.Bool {
		return nil
	}
	to, err := c.with(func(v op.Value) *tensor.Tensor {
		switch e := c.of(v).err; {
		case v.DType() != tensor.Bool:
			return tensorOf(v)
		case e != nil:
			return e
		}
		return tensor.New(tensor.F64, v.Shape()...)
	})
	if err != nil || !slices.Equal(to.Shape(), c.shape()) {
		return nil
	}
	return func(i int) bool { return to.Float(i) != 0 }
}

// decides reports a call whose results jump, of operands that have errors.
func (c *applied) decides() bool {
	if !c.asks() || !c.inexact || len(c.out) != 1 {
		return false
	}
	same := len(c.call.Args.AllValues()) == 1 && slices.Equal(c.shape(), c.call.Args.AllValues()[0].Shape())
	d := c.call.Def
	return d.Traits.Has(op.Compares) || !anyDifferentiable(c.out) && d.Traits.Has(op.View) && same || anyDifferentiable(c.out) && c.exact && c.isElementwise() && same && !c.continuous()
}

func (c *applied) shape() []int { return tensorOf(c.out[0]).Shape() }

// jumps bounds it by how far the results may be from those of the other side.
func (c *applied) jumps() []*state {
	if c.call.Def.Traits.Has(op.Compares) {
		return c.compared()
	}
	y := tensorOf(c.out[0])
	var beside [2]*tensor.Tensor
	for k, sign := range []float64{-1, 1} {
		var err error
		if beside[k], err = c.with(func(v op.Value) *tensor.Tensor { return scaled(tensorOf(v), 1+sign*onto) }); err != nil {
			return nil
		}
	}
	x := c.call.Args.AllValues()[0]
	return c.moving(&state{integral: c.integral && whole(c.out)}, func(i int) bool {
		if Near*c.unit*c.of(x).err.Float(i) >= 0.5 { // decided before, whole numbers
			return true
		}
		jump := max(cmplx.Abs(y.At(i)-beside[0].At(i)), cmplx.Abs(y.At(i)-beside[1].At(i)))
		return jump <= 4*onto*cmplx.Abs(tensorOf(x).At(i))
	})
}

// compared tells which results of a comparison may come out the other way.
func (c *applied) compared() []*state {
	shape := c.shape()
	x, xErr, okX := c.side("input", shape)
	y, yErr, okY := c.side("other", shape)
	if !okX || !okY {
		return nil
	}
	st, err := &state{integral: true}, tensor.New(tensor.F64, shape...)
	for i := range err.Len() {
		apart := cmplx.Abs(x(i) - y(i))
		ruled := apart <= onto*cmplx.Abs(x(i)) && (xErr(i) != 0 || c.has(x(i))) && (yErr(i) != 0 || c.has(y(i)))
		if room := Near * c.unit * (xErr(i) + yErr(i)); !ruled && (apart <= room || math.IsInf(room, 1)) {
			err.Set(i, complex(1/(Near*c.unit), 0))
			st.err, c.near = err, true
		}
	}
	return []*state{st}
}

// has reports whether the dtype whose errors are bounded has a real number.
func (c *applied) has(v complex128) bool {
	m, _ := math.Frexp(real(v))
	m /= c.unit
	return m == math.Trunc(m)
}

// moving adds to what is known of a result how far it moves with its operands, where it may. What
// is infinite by a decision, as what a mask fills, is the number of the other one, and as far off.
func (c *applied) moving(st *state, may func(i int) bool) []*state {
	y := tensorOf(c.out[0])
	total := tensor.New(tensor.F64, y.Shape()...)
	if st.err != nil {
		total = st.err.Clone().Contiguous()
	}
	off, finite := make([]float64, y.Len()), map[int]complex128{}
	for _, sign := range []float64{-1, 1} {
		moved, err := c.with(func(v op.Value) *tensor.Tensor { return c.nudged(tensorOf(v), c.of(v).err, sign) })
		if err != nil || !slices.Equal(moved.Shape(), y.Shape()) {
			return nil
		}
		for i := range off {
			if v, w := y.At(i), moved.At(i); v != w && !(cmplx.IsNaN(v) && cmplx.IsNaN(w)) {
				off[i] = max(off[i], cmplx.Abs(v-w))
				if !compare.Finite(v) && compare.Finite(w) {
					finite[i] = w
				}
			}
		}
	}
	for i, by := range off {
		if by != 0 && may(i) {
			if math.IsNaN(by) {
				return nil
			}
			total.Set(i, total.At(i)+complex(by/(Near*c.unit), 0))
			st.err, c.near = total, true
			if w, ok := finite[i]; ok {
				y.Set(i, w)
			}
		}
	}
	return []*state{st}
}

// with computes the call with other operands.
func (c *applied) with(of func(op.Value) *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := (&op.Call{Def: c.call.Def, Args: c.call.Args.MapValues(func(v op.Value) op.Value { return of(v) })}).Execute()
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// rounded is what some roundings of a number of a size add to its error. Where more than the size
// has been moved by a decision it is that which rounds: by the reference's choice there may be 0.
func (c *applied) rounded(count, size, moved float64) float64 {
	if c.near && count > 0 {
		size = max(size, Near*c.unit*moved)
	}
	return count * size
}

// scaled returns a tensor times a number.
func scaled(x *tensor.Tensor, by float64) *tensor.Tensor {
	x = x.Clone()
	for i := range x.Len() {
		x.Set(i, x.At(i)*complex(by, 0))
	}
	return x
}

// nudged returns a tensor moved as far as its errors may; what is true or false is the other.
func (c *applied) nudged(x, err *tensor.Tensor, sign float64) *tensor.Tensor {
	if err == nil {
		return x
	}
	x = x.Clone()
	for i := range x.Len() {
		by := sign * Near * c.unit * err.Float(i)
		switch {
		case by == 0:
		case x.DType() == tensor.Bool:
			x.Set(i, 1-x.At(i))
		case x.DType().IsDifferentiable():
			x.Set(i, x.At(i)+complex(by, 0))
		default:
			x.Set(i, x.At(i)+complex(math.Round(by), 0))
		}
	}
	return x
}
