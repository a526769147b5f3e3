package compare

import (
	"fmt"
	"math"

	"plumb/tensor"
)

// Bound limits the rounding error of a tensor to first order: whatever the
// order of the sums, |computed − exact| ≤ Units·u·Magnitude element by element,
// u the unit roundoff of the dtype.
type Bound struct {
	// Magnitude is Σ|terms| of each element, in float64, contiguous.
	Magnitude *tensor.Tensor
	// Units counts the roundings on the way to a result. K additions of one sum
	// count as min(K, 2√K): rounding errors uniform in ±u make the error of a
	// sequential sum of K terms of one sign, which is the worst case, a random
	// walk of standard deviation √K/3·u·Σ|terms|, so 2√K is six of them. The
	// growth by √K is that of Higham and Mary, "A New Approach to Probabilistic
	// Rounding Error Analysis", SIAM J. Sci. Comput. 41 (2019).
	Units float64
	// Integral says that every term is an integer: the sums are exact in any
	// order as long as Magnitude stays below 1/u.
	Integral bool
}

// Bounds holds the bounds of an outcome's tensors, those that have one.
type Bounds struct {
	Values     []*Bound // by call
	Grads      map[string]*Bound
	ParamGrads map[string]map[string]*Bound // by module and parameter
}

// Roundoff returns the unit roundoff u of a floating or complex dtype: half
// the distance from 1 to the next number.
func Roundoff(d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return 0x1p-11
	case tensor.BF16:
		return 0x1p-8
	case tensor.F32, tensor.C64:
		return 0x1p-24
	}
	return 0x1p-53
}

// Holds reports whether want can be what the bound is about: no element is
// larger than its magnitude. Where one is, the bound says nothing.
func (b *Bound) Holds(want *tensor.Tensor) bool {
	if b == nil || b.Magnitude.Len() != want.Len() {
		return false
	}
	slack := 1 + 8*b.Units*Roundoff(want.DType()) + 1e-12
	for i, m := range tensor.Data[float64](b.Magnitude)[:want.Len()] {
		v := want.At(i)
		if a := math.Hypot(real(v), imag(v)); !(a <= m*slack+smallest(want.DType())) {
			return false
		}
	}
	return true
}

// smallest returns the smallest normal number of a dtype, which underflow may cost.
func smallest(d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return 0x1p-14
	case tensor.F64, tensor.C128:
		return 0x1p-1022
	}
	return 0x1p-126
}

// exact reports whether the bound leaves no room for any rounding.
func (b *Bound) exact(d tensor.DType) bool {
	if !b.Integral {
		return false
	}
	for _, m := range tensor.Data[float64](b.Magnitude)[:b.Magnitude.Len()] {
		if m > 1/Roundoff(d) {
			return false
		}
	}
	return true
}

// accumulating returns the limit 2·Units·u·Σ|terms|: both sides are within
// half of it of the exact result.
func (b *Bound) accumulating(d tensor.DType) Limit {
	if b.exact(d) {
		return Exactly("every term is an integer and Σ|terms| stays below 1/u, so sums are exact in any order")
	}
	return Limit{
		Units: Number(2 * b.Units), Magnitude: b.Magnitude, Unit: Number(Roundoff(d)),
		Reason: fmt.Sprintf("%.3g roundings on each side, times the unit roundoff of %s, times Σ|terms|", b.Units, d),
	}
}

// at returns what the limit allows at element i, given |want|.
func (l *Limit) at(i int, magnitude float64, d tensor.DType) float64 {
	if l.Magnitude == nil {
		return clean(l.ATol) + float64(clean(l.RTol)*magnitude)
	}
	return float64(l.Units)*float64(l.Unit)*l.Magnitude.Float(i) + smallest(d)
}

// At returns Σ|terms| of the element at an index; 0 without a Magnitude.
func (l *Limit) At(index []int) float64 {
	if l.Magnitude == nil {
		return 0
	}
	m := l.Magnitude
	for d, i := range index {
		m = m.Narrow(d, i, 1, 1)
	}
	return m.Float(0)
}

// Over returns a function that reports whether element i is beyond the limit.
func Over(want, got *tensor.Tensor, limit Limit) func(i int) bool {
	r, d := limit.rule(), want.DType()
	return func(i int) bool {
		w, g := want.At(i), got.At(i)
		if w == g {
			return false
		}
		err := math.Hypot(real(g)-real(w), imag(g)-imag(w))
		size := math.Hypot(real(w), imag(w))
		return !(err <= limit.at(i, size, d)) && !(r.ulp > 0 && err <= r.ulp*Spacing(size, d))
	}
}

// Judge compares as Tensors does, under any limit, also one that differs from
// element to element.
func Judge(want, got *tensor.Tensor, limit Limit, o Options) Diff {
	if limit.Magnitude == nil || want == nil || got == nil {
		return Tensors(want, got, limit, o)
	}
	d := Tensors(want, got, Limit{RTol: math.MaxFloat64, ATol: math.MaxFloat64}, o)
	if !d.OK {
		return d
	}
	d.Hist, d.WorstRatio, d.First, d.Worst, d.Want, d.Got = Hist{}, 0, nil, nil, "", ""
	for i := range want.Len() {
		w, g := want.At(i), got.At(i)
		if w == g || math.IsNaN(real(w)) || math.IsNaN(imag(w)) {
			continue
		}
		ratio := math.Hypot(real(g)-real(w), imag(g)-imag(w)) / limit.at(i, 0, want.DType())
		if ratio > 1 {
			d.Mismatches++
			if d.First == nil {
				d.First = coordinates(i, want.Shape())
			}
		}
		if Number(ratio) > d.WorstRatio {
			d.WorstRatio, d.Worst = Number(ratio), coordinates(i, want.Shape())
			d.Want, d.Got = Element(want, i), Element(got, i)
		}
	}
	if d.Mismatches > 0 {
		d.OK, d.Rule = false, Distance
		d.Message = fmt.Sprintf("%d of %d elements differ; worst at %s: got %s, want %s, error is %.3g x the limit",
			d.Mismatches, d.Total, tensor.ShapeString(d.Worst), d.Got, d.Want, float64(d.WorstRatio))
	}
	return d
}

func coordinates(i int, shape []int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d] = i % shape[d]
		i /= shape[d]
	}
	return out
}

// Spacing returns the distance from a magnitude to the next larger number of
// the dtype's grid.
func Spacing(magnitude float64, d tensor.DType) float64 {
	u := Roundoff(d)
	if magnitude < smallest(d) || math.IsNaN(magnitude) {
		return 2 * u * smallest(d)
	}
	_, e := math.Frexp(magnitude)
	return math.Ldexp(2*u, e-1)
}
