package rounding

import (
	"math"

	"plumb/op"
)

// roundings counts those of one result element.
func (c *applied) roundings() float64 {
	k := max(1, c.limit(c.call.Def.Tol.ULP))
	if tol := c.call.Def.Tol; tol.Class == op.Accumulating {
		terms := 1
		if tol.Terms != nil {
			terms = tol.Terms(c.call.Args)
		}
		k = c.sumRoundings(terms)
	}
	for _, v := range c.call.Args.AllValues() {
		if v.DType().IsComplex() {
			return 2 * k
		}
	}
	return k
}

// sumRoundings counts those of a sum.
func (s *errorSession) sumRoundings(terms int) float64 {
	k := float64(max(terms, 1))
	k = min(k, 2*math.Sqrt(k))
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
