package rounding

import (
	"math"
	"math/cmplx"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// elementwise bounds a function of elements: its own roundings, and the errors
// of its operands times its derivatives there.
func (c *applied) elementwise() []*state {
	if len(c.out) != 1 {
		return nil
	}
	y := tensorOf(c.out[0])
	err, sizes := tensor.New(tensor.F64, y.Shape()...), tensor.Data[float64](absolute(y))
	e, k := tensor.Data[float64](err), c.roundings()
	if c.exact {
		k = 0
	}
	if c.exact && !c.continuous() {
		return nil
	}
	slopes, ok := c.slopes(y.Shape())
	if !ok {
		return nil
	}
	for _, sl := range slopes {
		from := tensor.Data[float64](sl.err)
		for i, d := range tensor.Data[float64](sl.slope) {
			if c.exact {
				d = max(d, 1) // it may be 0 at a kink
			}
			switch {
			case math.IsInf(from[i], 1):
				e[i] = from[i]
			case from[i] != 0:
				e[i] += d * from[i]
			}
		}
	}
	least := c.leastTerm()
	for i, size := range sizes {
		if size < least {
			size, c.near = least, true
		}
		e[i] += c.rounded(k, size, e[i])
	}
	c.edges(e, y)
	return []*state{{err: err}}
}

// leastTerm is how large a number that the results are computed of is at least, where somebody asks
// whether another formula explains what a kernel has; else 0.
func (c *applied) leastTerm() float64 {
	if c.asks() && c.call.Def.Tol.Vanishes {
		return 1
	}
	return 0
}

// edges makes the errors of those results infinite that the errors of the operands take out
// of the function's domain, or to a pole: what rounds otherwise has a NaN or an infinity there.
func (c *applied) edges(e []float64, y *tensor.Tensor) {
	if c.exact {
		return
	}
	var steep []int // a function ends with a slope that makes of an error its root, or more
	for i, size := range tensor.Data[float64](absolute(y)) {
		if c.unit*e[i] > math.Sqrt(c.unit)/4*size && !math.IsInf(size, 0) {
			steep = append(steep, i)
		}
	}
	if len(steep) == 0 {
		return
	}
	for _, sign := range []float64{-1, 1} {
		moved, err := c.shifted(sign)
		if err != nil {
			return
		}
		for _, i := range steep {
			if v := moved[0].At(i); cmplx.IsNaN(v) || cmplx.IsInf(v) {
				e[i] = math.Inf(1)
			}
		}
	}
}

// continuous reports whether the results move no farther than the operands
// do when these move by their errors: whether no jump is that near.
func (c *applied) continuous() bool {
	reach := 0.0
	for _, v := range c.call.Args.AllValues() {
		if e := c.of(v).err; e != nil {
			reach = max(reach, c.unit*largest(e))
		}
	}
	low, errLow := c.shifted(-1)
	high, errHigh := c.shifted(1)
	if errLow != nil || errHigh != nil {
		return false
	}
	for i := range low[0].Len() {
		a, b := low[0].At(i), high[0].At(i)
		if !(math.Hypot(real(a)-real(b), imag(a)-imag(b)) <= 4*reach+0x1p-50*math.Hypot(real(a), imag(a))) {
			return false
		}
	}
	return true
}

// slope is |∂f/∂x| beside the error of x, element by element of the result.
type slope struct{ slope, err *tensor.Tensor }

// slopes differentiates the call by its own gradient rule; it fails for
// functions that jump.
func (c *applied) slopes(shape []int) ([]slope, bool) {
	session := eager.New(c.table)
	leaves := map[op.Value]*eager.Var{}
	var errs []op.Value
	args := c.call.Args.MapValues(func(v op.Value) op.Value {
		if !v.DType().IsDifferentiable() || c.of(v).err == nil {
			return tensorOf(v)
		}
		if leaves[v] == nil {
			x, err := tensorOf(v).Expand(shape...)
			if err != nil {
				return tensorOf(v)
			}
			leaves[v] = session.Leaf(x.Contiguous(), true)
			errs = append(errs, v)
		}
		return leaves[v]
	})
	if len(errs) == 0 {
		return nil, true
	}
	out, err := session.Execute(&op.Call{Def: c.call.Def, Args: args})
	if err != nil || !eager.RequiresGrad(out[0]) {
		return nil, false
	}
	ones := tensor.New(out[0].DType(), shape...)
	for i := range ones.Len() {
		ones.Set(i, 1)
	}
	cot, err := session.Backward(out[:1], []op.Value{session.Leaf(ones, false)}, false)
	if err != nil {
		return nil, false
	}
	var list []slope
	for _, v := range errs {
		g, ok := cot[leaves[v]]
		e, err := c.of(v).err.Expand(shape...)
		if !ok || err != nil {
			return nil, false
		}
		list = append(list, slope{absolute(tensorOf(g)), e.Contiguous()})
	}
	return list, true
}
