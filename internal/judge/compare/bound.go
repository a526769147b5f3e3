package compare

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"plumb/backend"
	"plumb/op"
	"plumb/tensor"
)

// Bound limits the rounding error of a tensor to first order: whatever the
// order of the sums, |computed − exact| ≤ u·Error element by element, u the unit
// roundoff of the dtype or, where that is coarser, Unit. Tensors are contiguous and in float64 or complex128.
//
// K additions of one sum count as min(K, 2√K) roundings, of D different terms as min(K, 2K/√D): rounding errors
// uniform in ±u make the error of a sequential sum of K terms of one sign, which
// is the worst case, a random walk of standard deviation √K/3·u·Σ|terms|, so
// 2√K is six of them. The growth by √K is that of Higham and Mary, "A New
// Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41 (2019).
type Bound struct {
	Value *tensor.Tensor // the exact results
	Error *tensor.Tensor // nil: nothing rounds, because all terms of all sums are integers below 1/u
	// Terms is Σ|terms| and Count the roundings of one sum, where the tensor
	// results from sums of products.
	Terms *tensor.Tensor
	Count float64
	// Unit is the unit roundoff of the coarsest dtype that was computed in: a
	// result in float64 of what was computed in float32 is no better than that.
	Unit float64
	// Functions says that functions were applied on the way, which another
	// implementation may write otherwise: 1 − (1 − t²) for t².
	Functions bool
	// Elementwise says, of a bound that is outlined only, that it will have Error
	// and no Terms.
	Elementwise bool
}

// Adopt puts elements of got in the places of those that are no further from them than so many
// times the error; of floats, which have a limit beside, only infinities.
func (b *Bound) Adopt(into, got *tensor.Tensor, times float64) {
	if got == nil || got.DType() != into.DType() || !slices.Equal(got.Shape(), into.Shape()) {
		return
	}
	for i := range into.Len() {
		if v := got.At(i); (cmplx.IsInf(v) || !into.DType().IsDifferentiable()) && cmplx.Abs(v-into.At(i)) <= times*b.Unit*b.Error.Float(i)*(1+0x1p-20) {
			into.Set(i, v)
		}
	}
}

// otherFormula is how many times the error another way of writing a function
// may have: ten bits, what is lost where terms cancel to a thousandth.
const otherFormula = 1 << 10

// NothingRounds is the reason of a limit where a bound says that sums are exact.
const NothingRounds = "every term is an integer and Σ|terms| stays below 1/u, so sums are exact in any order"

// Bounds holds the bounds of an outcome's tensors, those that have one.
type Bounds struct {
	Values []ValueBound // by call
	Slots  map[backend.Place]*Bound
	// Poles says that the gradient of a call's result, from which others follow,
	// is infinite or NaN somewhere, or beyond the range of float32.
	Poles bool
}

// ValueBound is the bound of a tensor, nil for none, or those of a tuple's values.
type ValueBound struct {
	Bound *Bound
	Tuple []ValueBound
}

// At returns the bound of what stands at a path of places in tuples; nil for none.
func (v ValueBound) At(path []int) *Bound {
	for _, i := range path {
		if i >= len(v.Tuple) {
			return nil
		}
		v = v.Tuple[i]
	}
	return v.Bound
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

// Holds reports whether want can be what the bound is about: each element is
// within the bound of the exact one. Where one is not, the bound says nothing.
func (b *Bound) Holds(want *tensor.Tensor) bool {
	if b == nil || !slices.Equal(b.Value.Shape(), want.Shape()) {
		return false
	}
	u, small := b.roundoff(want.DType()), smallest(want.DType())
	if want.IsContiguous() && dense64(b.Value) && (b.Error == nil || dense64(b.Error)) {
		switch want.DType() {
		case tensor.F32:
			return holds(b, tensor.Data[float32](want)[:want.Len()], u, small)
		case tensor.F64:
			return holds(b, tensor.Data[float64](want)[:want.Len()], u, small)
		}
	}
	for i := range want.Len() {
		w, v := want.At(i), b.Value.At(i)
		if w == v || !finite(w) {
			continue
		}
		e := 0.0
		if b.Error != nil {
			e = b.Error.Float(i)
		}
		slack := 2*u*e + 2*u*math.Hypot(real(v), imag(v)) + small
		if !(distance(w, v) <= slack) {
			return false
		}
	}
	return true
}

func holds[T float32 | float64](b *Bound, want []T, u, small float64) bool {
	values := tensor.Data[float64](b.Value)[:len(want)]
	var errs []float64
	if b.Error != nil {
		errs = tensor.Data[float64](b.Error)[:len(want)]
	}
	for i, x := range want {
		w, v := float64(x), values[i]
		if w == v || w-w != 0 {
			continue
		}
		e := 0.0
		if errs != nil {
			e = errs[i]
		}
		if !(math.Abs(w-v) <= 2*u*e+2*u*math.Abs(v)+small) {
			return false
		}
	}
	return true
}

func dense64(t *tensor.Tensor) bool { return t.DType() == tensor.F64 && t.IsContiguous() }

func (b *Bound) roundoff(d tensor.DType) float64 { return max(b.Unit, Roundoff(d)) }

func finite(v complex128) bool { return !cmplx.IsNaN(v) && !cmplx.IsInf(v) }

func distance(a, b complex128) float64 { return math.Hypot(real(a)-real(b), imag(a)-imag(b)) }

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

// limit returns 2·u·Error: both sides are within half of it of the exact result.
func (b *Bound) limit(d tensor.DType) Limit {
	if b.Error == nil {
		return Exactly(NothingRounds)
	}
	if b.Functions && b.roundoff(d) == 0x1p-53 {
		return b.normwise(d)
	}
	l := Limit{Class: op.Accumulating, Unit: Number(b.roundoff(d)), Error: b.Error, Terms: b.Terms, Count: Number(b.Count)}
	of := d.String()
	if b.roundoff(d) > Roundoff(d) {
		of = "what was computed in before"
	}
	l.Reason = fmt.Sprintf("E bounds the roundings on the way, in units of the roundoff of %s; either side has its own", of)
	return l
}

// normwise returns the limit where no wider dtype can tell who is right:
// 2·1024·u·(1 + max Error) for all elements.
func (b *Bound) normwise(d tensor.DType) Limit {
	most := 0.0
	for _, e := range tensor.Data[float64](b.Error)[:b.Error.Len()] {
		most = max(most, e)
	}
	if !(most < math.MaxFloat64) {
		return Default(d)
	}
	return Limit{
		Class: op.Accumulating, ATol: Number(2 * otherFormula * Roundoff(d) * (1 + most)),
		Reason: fmt.Sprintf("2·1024·u·(1 + E), u the roundoff of %s, E = %.3g the largest bound of the roundings on the way; no wider dtype can tell which formula is right", d, most),
	}
}

// at returns what the limit allows at element i, given |want|.
func (l *Limit) at(i int, magnitude float64, d tensor.DType) float64 {
	if l.Error == nil {
		return clean(l.ATol) + float64(clean(l.RTol)*magnitude)
	}
	return 2*float64(l.Unit)*l.Error.Float(i) + smallest(d)
}

// Allows returns how far from want the limit lets element i be.
func (l *Limit) Allows(want *tensor.Tensor, i int) float64 {
	w, d := want.At(i), want.DType()
	size := math.Hypot(real(w), imag(w))
	return max(l.at(i, size, d), l.rule().ulp*Spacing(size, d))
}

// Times returns a limit that allows so many times as much.
func (l Limit) Times(factor float64) Limit {
	for _, n := range []*Number{&l.RTol, &l.ATol, &l.ULP, &l.Unit} {
		*n *= Number(factor)
	}
	if factor != 1 && (l.Error != nil || l.RTol+l.ATol+l.ULP > 0) {
		l.Reason = fmt.Sprintf("%g × %s", factor, l.Reason)
	}
	return l
}

// Own returns what one side alone may be off at element i, in absolute terms.
func (l *Limit) Own(i int) float64 {
	if l.Error == nil {
		return 0
	}
	return float64(l.Unit) * l.Error.Float(i)
}

// Explain says how the limit of the element at an index came about; "" where
// its reason says all.
func (l *Limit) Explain(index []int) string {
	if l.Error == nil {
		return ""
	}
	s := fmt.Sprintf("E is %.4g", at(l.Error, index))
	if l.Terms != nil {
		s += fmt.Sprintf("; Σ|terms| of the sum is %.4g, K counts as %.3g roundings", at(l.Terms, index), float64(l.Count))
	}
	return s
}

func at(t *tensor.Tensor, index []int) float64 {
	for d, i := range index {
		t = t.Narrow(d, i, 1, 1)
	}
	return t.Float(0)
}

// Over returns a function that reports whether element i is beyond the limit.
func Over(want, got *tensor.Tensor, limit Limit) func(i int) bool {
	r, d := limit.rule(), want.DType()
	return func(i int) bool {
		w, g := want.At(i), got.At(i)
		if w == g || cmplx.IsNaN(w) && cmplx.IsNaN(g) {
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
	if limit.Error == nil || want == nil || got == nil {
		return Tensors(want, got, limit, o)
	}
	d := Tensors(want, got, Limit{RTol: math.MaxFloat64, ATol: math.MaxFloat64}, o)
	if !d.OK {
		return d
	}
	d.Hist, d.WorstRatio, d.First, d.Worst, d.Want, d.Got = Hist{}, 0, nil, nil, "", ""
	s := limit.scan(want, got)
	d.Mismatches, d.WorstRatio = s.beyond, Number(s.ratio)
	if s.worst >= 0 {
		d.Worst = coordinates(s.worst, want.Shape())
		d.Want, d.Got = Element(want, s.worst), Element(got, s.worst)
	}
	if d.Mismatches > 0 {
		d.First = coordinates(s.first, want.Shape())
		d.OK, d.Rule, d.MeanRel = false, Distance, meanRel(want, got)
		d.Message = fmt.Sprintf("%d of %d elements differ; worst at %s: got %s, want %s, error is %.3g x the limit",
			d.Mismatches, d.Total, tensor.ShapeString(d.Worst), d.Got, d.Want, float64(d.WorstRatio))
	}
	return d
}

// scanned is what a pass under a limit that differs from element to element finds.
type scanned struct {
	beyond, first int
	worst         int // -1 while every error is 0
	ratio         float64
}

func (l *Limit) scan(want, got *tensor.Tensor) scanned {
	s := scanned{worst: -1}
	switch d := want.DType(); {
	case d == tensor.F32 && l.dense(want, got):
		scanReals(&s, l, tensor.Data[float32](want)[:want.Len()], tensor.Data[float32](got), smallest(d))
	case d == tensor.F64 && l.dense(want, got):
		scanReals(&s, l, tensor.Data[float64](want)[:want.Len()], tensor.Data[float64](got), smallest(d))
	default:
		for i := range want.Len() {
			if w, g := want.At(i), got.At(i); w != g && finite(w) {
				s.add(i, distance(w, g)/l.at(i, 0, d))
			}
		}
	}
	return s
}

func (l *Limit) dense(want, got *tensor.Tensor) bool {
	return want.IsContiguous() && got.IsContiguous() && l.Error.IsContiguous()
}

func scanReals[T float32 | float64](s *scanned, l *Limit, want, got []T, small float64) {
	errs, twice := tensor.Data[float64](l.Error), 2*float64(l.Unit)
	for i, w := range want {
		g := got[i]
		if w == g || w-w != 0 {
			continue
		}
		s.add(i, math.Abs(float64(g)-float64(w))/(float64(twice*errs[i])+small))
	}
}

// add notes an element's error ÷ limit; one that is no number is beyond.
func (s *scanned) add(i int, ratio float64) {
	if math.IsNaN(ratio) {
		ratio = math.Inf(1)
	}
	if ratio > 1 {
		if s.beyond == 0 {
			s.first = i
		}
		s.beyond++
	}
	if ratio > s.ratio {
		s.ratio, s.worst = ratio, i
	}
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

// Dominates says which part of the bound of element i is the largest: the roundings
// of its own sum, or what its inputs bring along; "" where there is no bound.
func (l *Limit) Dominates(i int) string {
	if l.Error == nil {
		return ""
	}
	e := l.Error.Float(i)
	if l.Terms == nil || !(e > 0) {
		return "E gathers the roundings of each step before this result"
	}
	share := min(1, float64(l.Count)*l.Terms.Float(i)/e)
	if share >= 0.5 {
		return fmt.Sprintf("the roundings of its own sum, K·Σ|terms|, are %.0f %% of E", 100*share)
	}
	return fmt.Sprintf("errors that its inputs bring along are %.0f %% of E, its own sum the rest", 100*(1-share))
}
