package verdict

import (
	"math"
	"math/cmplx"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// decidable returns got with elements replaced by want's where the sides
// disagree about what is infinite or NaN and nobody can tell who is right; nil
// where there is none. These are:
//
//   - sums of products whose terms are finite but add up, by magnitude, to more
//     than the dtype holds: one order of them comes to an infinity or a NaN that
//     another one never meets;
//   - where the reference cannot be asked what it makes of the candidate's operands:
//     results of functions whose operands are by their rounding errors in and out of the
//     domain, and what follows from them;
//   - sums with an infinite term, of inputs some of which are finite and so
//     large that the other terms may overflow to the opposite infinity;
//   - elements where the candidate has what the reference computes in float64,
//     up to rounding, so that it is the reference that overflowed on the way;
//   - elements of which the reference itself, here or nearby, has a NaN or an
//     infinity that it does not have in float64, or the reverse: rounding decides
//     there (0/0 where a difference cancels), and the candidate has what the
//     reference has in one of its runs, or lies between these;
//   - gradients that one side has infinite or NaN and the other not, or otherwise,
//     of a program whose gradients pass a pole: 0·∞, a zero slope of what
//     multiplies or picks by a mask, is 0 by one formula and NaN by another.
func (j *judge) decidable(w Where, want, got *tensor.Tensor) *tensor.Tensor {
	bounds := j.bounds(w)
	b := pickBound(bounds, w)
	edges := b
	if edges != nil && (!j.policy.Recorded || edges.Error == nil || edges.Error.Len() != want.Len() || edges.Value.Len() != want.Len()) {
		edges = nil
	}
	if b != nil && (b.Terms == nil || b.Terms.Len() != want.Len()) {
		b = nil
	}
	truth := j.wide(w, want)
	poles := w.Part == backend.PartGrad && bounds != nil && bounds.Poles
	if b == nil && edges == nil && truth == nil && !poles {
		return nil
	}
	var out *tensor.Tensor
	huge := j.hugeInputs(largest(want.DType()))
	for i := range want.Len() {
		if !nonFinite(want.At(i)) && !nonFinite(got.At(i)) || !poles && !ends(edges, i) && !open(b, i, want.DType(), huge) && !computes(truth, i, got) && !j.policy.Oracle.wavers(w, i, want, got) {
			continue
		}
		if out == nil {
			out = got.Clone()
		}
		out.Set(i, want.At(i))
	}
	return out
}

// ends reports whether the errors of its operands take an element out of the domain.
func ends(b *compare.Bound, i int) bool {
	return b != nil && math.IsInf(b.Error.Float(i), 1) && !nonFinite(b.Value.At(i))
}

// open reports whether the order of a sum decides about an overflow.
func open(b *compare.Bound, i int, d tensor.DType, huge bool) bool {
	if b == nil {
		return false
	}
	terms := b.Terms.Float(i)
	if math.IsInf(terms, 0) || math.IsNaN(terms) {
		return huge
	}
	return terms >= largest(d)
}

// wide returns what the reference computes in float64; nil where it was not
// asked or has nothing wider.
func (j *judge) wide(w Where, want *tensor.Tensor) *tensor.Tensor {
	if j.policy.Oracle == nil {
		return nil
	}
	t := At(j.policy.Oracle.Truth, w)
	if t == nil || t.Len() != want.Len() || t.DType() == want.DType() {
		return nil
	}
	return t
}

// computes reports whether the candidate has the truth, rounded to its dtype
// and off by no more than the relative tolerance that is PyTorch's default.
func computes(truth *tensor.Tensor, i int, got *tensor.Tensor) bool {
	if truth == nil {
		return false
	}
	d, v := got.DType(), got.At(i)
	e := tensor.Scalar(d, truth.At(i)).At(0)
	if e == v || nonFinite(e) || nonFinite(v) {
		return e == v
	}
	size := cmplx.Abs(e)
	return cmplx.Abs(v-e) <= float64(compare.Default(d).RTol)*size+compare.Spacing(size, d)
}

// wavers reports whether rounding decides what the reference has at element i,
// and the candidate has what it may come to.
func (o *Oracle) wavers(w Where, i int, want, got *tensor.Tensor) bool {
	if o == nil || want.DType().IsComplex() {
		return false
	}
	runs := [][2]*tensor.Tensor{{want, At(o.Truth, w)}}
	for _, n := range o.Near {
		runs = append(runs, [2]*tensor.Tensor{At(n.Reference, w), At(n.Truth, w)})
	}
	g := real(got.At(i))
	low, high, slack, disagree, same := math.Inf(1), math.Inf(-1), 0.0, false, false
	for _, r := range runs {
		if r[0] == nil || r[1] == nil || r[0].Len() != want.Len() || r[1].Len() != want.Len() {
			continue
		}
		a, b := real(r[0].At(i)), real(r[1].At(i))
		disagree = disagree || kindOf(a) != kindOf(b)
		if kindOf(a) == 0 && kindOf(b) == 0 {
			slack = max(slack, errorFactor(want.DType())*math.Abs(a-b))
		}
		for _, v := range []float64{a, b} {
			same = same || kindOf(v) == kindOf(g)
			if kindOf(v) == 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return disagree && same && (kindOf(g) != 0 || low-slack <= g && g <= high+slack)
}

// kindOf is 0 for finite numbers, and tells infinities and NaN apart.
func kindOf(v float64) int {
	switch {
	case math.IsNaN(v):
		return 2
	case math.IsInf(v, 1):
		return 1
	case math.IsInf(v, -1):
		return -1
	}
	return 0
}

func nonFinite(v complex128) bool { return cmplx.IsNaN(v) || cmplx.IsInf(v) }

// hugeInputs reports whether an input has a finite element so large that a few
// thousand times it are more than most.
func (j *judge) hugeInputs(most float64) bool {
	for i := range j.p.Inputs {
		if !j.p.Inputs[i].DType.IsDifferentiable() {
			continue
		}
		x := j.p.Inputs[i].Materialize()
		for k := range x.Len() {
			if v := x.At(k); !nonFinite(v) && math.Hypot(real(v), imag(v)) >= most*0x1p-12 {
				return true
			}
		}
	}
	return false
}

// largest returns the largest finite number of a dtype's parts, less what
// rounding may add to a sum of a few thousand terms.
func largest(d tensor.DType) float64 {
	const slack = 1 - 0x1p-7
	switch d {
	case tensor.F16:
		return 65504 * slack
	case tensor.F64, tensor.C128:
		return math.MaxFloat64 * slack
	}
	return math.MaxFloat32 * slack
}
