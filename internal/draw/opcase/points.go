package opcase

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// special numbers stand at the edges of elementwise functions.
var special = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, -0.5, 1e-40, 65504, 3e38}

// extreme numbers stand at the ends of the order of all numbers, and beside it.
var extreme = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}

// specials puts edge points, NaN and infinities among them, into the inputs of an elementwise operator, or of one
// that goes by the order or the class of elements, in a quarter of the cases. They are not
// differentiated there: at a pole or a kink every gradient is a convention; nor are
// they put into what an in-place form changes, because what follows from a known
// fault there is told by no name. Of an order each stands once at most, because which
// of equal elements comes first is a convention too. It reports whether it did.
func (c *call) specials(dt tensor.DType) bool {
	scalar, order := c.def.ScalarFunction(), c.def.Traits&(op.Monotone|op.FollowsOrder|op.Compares|op.Classifies) != 0 || c.takesExtremes()
	if op.InPlace(c.target) || !scalar && !order || !dt.IsFloat() || c.src.Int(0, 4) != 0 {
		return false
	}
	met := map[int]complex128{} // what an argument before has in a place, which is there in half of the others
	for i := range c.Inputs {
		in := &c.Inputs[i]
		if in.DType != dt {
			continue
		}
		data := in.Fill.Data.Clone()
		c.src.Own(func() {
			if !scalar && data.Len() > 0 {
				for _, v := range extreme {
					if c.src.Bool() {
						data.Set(c.src.Index(data.Len()), complex(v, 0))
					}
				}
				return
			}
			for j := range data.Len() {
				if v, ok := met[j]; ok && c.src.Bool() {
					data.Set(j, v)
				} else if c.src.Int(0, 4) == 0 {
					met[j] = complex(special[c.src.Index(len(special))], 0)
					data.Set(j, met[j])
				}
			}
			if len(c.Inputs) == 1 || c.src.Bool() {
				for _, v := range extreme[:min(len(extreme), data.Len())] { // by chance a small tensor would have none
					data.Set(c.src.Index(data.Len()), complex(v, 0))
				}
			}
		})
		in.Fill.Data, in.RequiresGrad = data, false
	}
	return true
}

// takesExtremes reports whether an argument names a reduction by the order of elements.
func (c *call) takesExtremes() bool {
	return slices.ContainsFunc(c.arguments(), func(v any) bool {
		id, named := v.(string)
		def := c.table.Def(id)
		return named && def != nil && def.Traits.Has(op.Monotone)
	})
}

// far numbers are where a function has left its middle: where one of its terms is
// nothing beside another, or overflows. None is an integer, at which functions have poles.
var far = []float64{20.5, -20.5, 100.25, -100.25, 1e-6, -1e-6, 1e-12, 30000.25}

// points puts in some cases what draws from a range do not meet: into a function of
// numbers, or along a dimension, what lies far from its middle; zeros into all arguments
// at once, where a quotient in a gradient is 0/0 (what selects has a convention there);
// rows of one value along a dimension or under a maximum; and whole numbers at the ends of
// their dtype and beyond what a float holds. Gradients are asked for as ever, save beside
// infinities and of a maximum of equal elements.
func (c *call) points(dt tensor.DType) {
	if op.InPlace(c.target) || len(c.Inputs) == 0 || c.src.Int(0, 4) != 0 {
		return
	}
	switch scalar := c.def.ScalarFunction(); {
	case dt.IsInt():
		c.wholeEnds(dt)
	case !dt.IsFloat():
	case scalar && len(c.Inputs) > 1 && c.def.Tol.Class != op.Exact && c.src.Bool():
		c.put(dt, len(c.Inputs), []float64{0})
	case scalar:
		c.put(dt, 1, far)
	case c.alongDim() && c.src.Bool():
		c.put(dt, 1, far)
	case c.alongDim() || c.def.Traits.Has(op.Monotone) && len(c.def.Sigs()[0].Results) == 1:
		c.rows(dt)
	}
}

// held reports whether an argument may hold any number.
func (c *call) held(i int) bool {
	for p, domain := range c.def.Domains {
		if domain != op.Anything && domain != op.NoNaN && i < len(c.params) && p.Name() == c.params[i] {
			return true
		}
	}
	return false
}

// put puts numbers into half of the elements of the first n inputs of the case's dtype.
func (c *call) put(dt tensor.DType, n int, numbers []float64) {
	for i := range min(n, len(c.Inputs)) {
		in := &c.Inputs[i]
		if in.DType != dt || c.held(i) {
			continue
		}
		data := in.Fill.Data.Clone()
		c.src.Own(func() {
			for j := range data.Len() {
				if c.src.Bool() {
					data.Set(j, complex(numbers[c.src.Index(len(numbers))], 0))
				}
			}
		})
		in.Fill.Data = data
	}
}

// alongDim reports whether the operator computes numbers along a dimension of its input.
func (c *call) alongDim() bool {
	sig := c.def.Sigs()[0]
	return (sig.Takes(arg.Dim) || sig.Takes(arg.DimInts)) && len(sig.Results) == 1 && !c.held(0) &&
		c.def.Traits&(op.View|op.ShapeOnly|op.Random) == 0 && c.def.Tol.Class == op.Accumulating
}

// rows makes one row along the last dimension of the first input, or all of them, -∞, ∞ or 0.
func (c *call) rows(dt tensor.DType) {
	in := &c.Inputs[0]
	if in.DType != dt || len(in.Shape) == 0 || in.Fill.Data.Len() == 0 {
		return
	}
	data := in.Fill.Data.Clone()
	n := in.Shape[len(in.Shape)-1]
	v := []float64{math.Inf(-1), math.Inf(1), 0}[c.src.Index(3)]
	first, end := 0, data.Len()
	if c.src.Bool() {
		first = n * c.src.Index(data.Len()/n)
		end = first + n
	}
	for j := first; j < end; j++ {
		data.Set(j, complex(v, 0))
	}
	in.Fill.Data, in.RequiresGrad = data, in.RequiresGrad && v == 0 && !c.def.Traits.Has(op.Monotone)
}

// wholeEnds puts whole numbers at the ends of their dtype, and beside what floats hold,
// into the first input of a function of numbers, of sums of products, or of an order,
// there each at most once.
func (c *call) wholeEnds(dt tensor.DType) {
	in := &c.Inputs[0]
	sums := c.def.Tol.Class == op.Accumulating && (c.def.Magnitude != "" || c.def.Tol.OwnMagnitude)
	order := c.def.Traits&(op.Monotone|op.FollowsOrder|op.Compares) != 0
	if in.DType != dt || c.held(0) || in.Fill.Data.Len() == 0 || !sums && !c.def.ScalarFunction() && !order {
		return
	}
	ends := endsOf(dt)
	data := in.Fill.Data.Clone()
	c.src.Own(func() {
		if !sums && !c.def.ScalarFunction() {
			for _, v := range ends {
				if c.src.Bool() {
					data.SetInt(c.src.Index(data.Len()), v)
				}
			}
			return
		}
		for j := range data.Len() {
			if c.src.Bool() {
				data.SetInt(j, ends[c.src.Index(len(ends))])
			}
		}
	})
	in.Fill.Data = data
}

// endsOf returns the ends of an integer dtype, those beside them, and the first whole
// numbers of either sign that float16, float32 and float64 have not.
func endsOf(dt tensor.DType) []int64 {
	bits := 8 * dt.Size()
	lo, hi := int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits)
	if dt == tensor.U8 {
		lo, hi = 0, 255
	}
	ends := []int64{lo, lo + 1, hi - 1, hi}
	for _, digits := range []int{11, 24, 53} {
		if v := int64(1)<<digits + 1; v < hi {
			ends = append(ends, v, -v)
		}
	}
	return ends
}
