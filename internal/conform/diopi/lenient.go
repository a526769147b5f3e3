package diopi

import (
	"fmt"
	"math"
	"math/cmplx"

	"plumb/internal/conform/config"
	"plumb/tensor"
)

// Lenient compares as DIOPI's conformance test does: numpy.isclose with
// equal_nan, of shapes that merely broadcast, of dtypes that merely promote,
// and as many mismatches as MismatchRatio of the elements. It is there to tell
// what a looser rule would have said; no verdict follows from it.
type Lenient struct {
	ATol, RTol    float64
	MismatchRatio float64
	// Sums compares the sums alone, as DIOPI does for each case that has the
	// parameter sorted, whatever its value, in numpy's dtype.
	Sums bool
}

// LenientRule returns the rule that DIOPI compares the case by.
func LenientRule(c *config.Case) Lenient {
	atol, rtol := c.Tolerance()
	para, _ := c.Item.Get("para").(*config.Dict)
	return Lenient{ATol: atol, RTol: rtol, MismatchRatio: c.MismatchRatio(), Sums: para != nil && para.Get("sorted") != nil}
}

// Accepts says whether got passes for want, and why not.
func (l Lenient) Accepts(want, got *tensor.Tensor) (bool, string) {
	if l.Sums {
		want, got = summed(want), summed(got)
	}
	shape, err := tensor.BroadcastShapes(want.Shape(), got.Shape())
	if err != nil {
		return false, fmt.Sprintf("shapes %s and %s do not broadcast", tensor.ShapeString(want.Shape()), tensor.ShapeString(got.Shape()))
	}
	want, got = expanded(want, shape), expanded(got, shape)
	n, bad := tensor.NumElements(shape), 0
	near := l.closeness(want.DType(), got.DType())
	for i := range n {
		if !near(want.At(i), got.At(i)) {
			bad++
		}
	}
	if float64(bad) <= l.MismatchRatio*float64(n) {
		return true, ""
	}
	return false, fmt.Sprintf("%d of %d elements differ, and %g of them may", bad, n, l.MismatchRatio)
}

func expanded(t *tensor.Tensor, shape []int) *tensor.Tensor {
	out, err := t.Expand(shape...)
	if err != nil {
		panic(err) // BroadcastShapes allowed it
	}
	return out
}

// closeness is numpy.isclose(got, want, equal_nan=True) of one element, in the
// precision in which numpy computes it: |got − want| in the dtype that both
// promote to, and the limit in that of want.
func (l Lenient) closeness(want, got tensor.DType) func(want, got complex128) bool {
	exact := inexact(want)
	limit, difference := rounding(exact), rounding(promoted(exact, got))
	return func(w, g complex128) bool {
		if !finite(w) || !finite(g) {
			return w == g && want.IsComplex() == got.IsComplex() || isNaN(want, w) && isNaN(got, g)
		}
		most := limit(limit(l.ATol) + limit(limit(l.RTol)*limit(cmplx.Abs(w))))
		return difference(modulus(g, w, difference)) <= most
	}
}

func modulus(g, w complex128, round func(float64) float64) float64 {
	re, im := round(round(real(g))-round(real(w))), round(round(imag(g))-round(imag(w)))
	if im == 0 {
		return math.Abs(re)
	}
	return math.Hypot(re, im)
}

func finite(v complex128) bool { return !cmplx.IsInf(v) && !hasNaN(v) }

// isNaN is numpy's after its multiplication by one, which makes the other part
// of an infinite complex number NaN.
func isNaN(d tensor.DType, v complex128) bool {
	return hasNaN(v) || d.IsComplex() && cmplx.IsInf(v)
}

func hasNaN(v complex128) bool { return math.IsNaN(real(v)) || math.IsNaN(imag(v)) }

// inexact is numpy's result_type(d, 1.0).
func inexact(d tensor.DType) tensor.DType {
	if d.IsFloat() || d.IsComplex() {
		return d
	}
	return tensor.F64
}

// promoted is numpy's result type of a floating or complex dtype and any other:
// integers of two bytes need float32, of four and more float64.
func promoted(float, d tensor.DType) tensor.DType {
	switch {
	case d.IsFloat() || d.IsComplex():
		return tensor.Promote(float, d)
	case d.Size() >= 4:
		return tensor.Promote(float, tensor.F64)
	case d.Size() == 2:
		return tensor.Promote(float, tensor.F32)
	}
	return float
}

// rounding rounds to the real dtype of d.
func rounding(d tensor.DType) func(float64) float64 {
	switch d.Real() {
	case tensor.F16:
		return func(v float64) float64 { return float64(tensor.Float64ToFloat16(v).Float32()) }
	case tensor.BF16:
		return func(v float64) float64 { return float64(tensor.Float64ToBFloat16(v).Float32()) }
	case tensor.F32:
		return func(v float64) float64 { return float64(float32(v)) }
	}
	return func(v float64) float64 { return v }
}
