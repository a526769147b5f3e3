package rounding

import (
	"math"

	"plumb/op"
	"plumb/tensor"
)

// roundings counts those of one result element.
func (c *applied) roundings() float64 {
	k := max(1, c.limit(c.call.Def.Tol.ULP))
	if tol := c.call.Def.Tol; tol.Class == op.Accumulating {
		terms := 1
		if tol.Terms != nil {
			terms = tol.Terms(c.call.Args)
		}
		k = c.sumRoundings(terms, c.distinct(terms))
		if tol.InPlace && c.half() {
			k = 1 + min(float64(max(terms, 1)), c.longest())
		}
	}
	for _, v := range c.call.Args.AllValues() {
		if v.DType().IsComplex() {
			return 2 * k
		}
	}
	return k
}

// longest returns how many terms the longest sum of a call has, or no fewer than its
// longest product of n has factors: half of what it makes of twos, 2ⁿ⁻¹.
func (c *applied) longest() float64 {
	out, err := c.magnitudeOf(func(v op.Value) *tensor.Tensor { return twos(v.Shape()) }, func(p op.Param, _ op.Scalar) float64 {
		if p.HasDefault { // a factor, as alpha
			return 1
		}
		return 2
	})
	if err != nil {
		return math.Inf(1)
	}
	most := 0.0
	for _, t := range out {
		for i := range t.Len() {
			most = max(most, t.Float(i)/2)
		}
	}
	return most
}

func twos(shape []int) *tensor.Tensor {
	t := tensor.New(tensor.F64, shape...)
	data := tensor.Data[float64](t)
	for i := range data {
		data[i] = 2
	}
	return t
}

// sumRoundings counts those of a sum whose terms have so many values. Those of equal terms
// are equal while the sum is of one order of magnitude, and add up.
func (s *errorSession) sumRoundings(terms, distinct int) float64 {
	k := float64(max(terms, 1))
	k = min(k, 2*k/math.Sqrt(float64(max(distinct, 1))))
	if s.half() {
		k *= 0x1p-24 / s.unit
	}
	return k + 1
}

// half reports whether the program computes in a half dtype, whose sums and
// functions are computed in float32 and rounded once.
func (s *errorSession) half() bool { return s.unit > 0x1p-12 }

// limit is an operator's limit in units in the last place.
func (s *errorSession) limit(ulp float64) float64 {
	if s.half() {
		return min(ulp, 2)
	}
	return ulp
}

// few is how many values a tensor has at most of which it repeats each.
const few = 64

// distinct is how many values the terms of a sum have at least: no fewer than those of the
// operand that repeats itself least.
func (c *applied) distinct(terms int) int {
	most := 0
	for _, v := range c.call.Args.AllValues() {
		if v.DType() != tensor.F64 {
			continue
		}
		x := tensorOf(v)
		n := terms
		for dim, size := range x.Shape() {
			if size > 1 && constant(x, dim) {
				n = max(1, n/size)
			}
		}
		if m := values(reals(x)); m <= few {
			n = min(n, max(1, m))
		}
		most = max(most, n)
	}
	if most == 0 {
		return terms
	}
	return most
}

// constant reports whether elements are equal along a dimension.
func constant(x *tensor.Tensor, dim int) bool {
	shape := x.Shape()
	n, inner, data := shape[dim], tensor.NumElements(shape[dim+1:]), reals(x)
	for i := range data {
		if i/inner%n != 0 && data[i] != data[i-inner] {
			return false
		}
	}
	return true
}

// values is how many different ones there are, or more than few.
func values(of []float64) int {
	seen := map[float64]bool{}
	for _, v := range of {
		if seen[v] = true; len(seen) > few {
			break
		}
	}
	return len(seen)
}
