package onekernel

import (
	"context"
	"math"
	"math/cmplx"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// nearTruth reports whether all that is held against a kernel is the reference's own error:
// each element that differs is, to a few roundings, what the reference gives in float64. A
// reference that squares and sums in float16 has an infinity or NaN on the way where a kernel
// that computes in float32 has none. What overflows to NaN in float64 too has no truth: exp(k)
// of arguments far from 0, which a kernel takes the largest from.
// A product of matrices or a convolution in float32 or float64 that no error bounds are known of,
// as where equal terms are rounded alike, beyond the bound of independent roundings, may be off by
// the reference's own error.
func (s *Session) nearTruth(ctx context.Context, r *result, job *backend.Job) (bool, error) {
	r.outgrown = s.outgrown(r)
	if r.Regime == NonFinite || !half(r.DType) && finite(r.ref) && !r.inGradients() && !r.outgrown || !r.differsIn(compare.Distance, compare.NonFinite) {
		return false, nil
	}
	truth, err := s.reference.Run(ctx, backend.NewJob(inFloat64(job.Program)))
	if err != nil || truth.Status != backend.OK {
		return false, err
	}
	for i := range r.verdict.Differences {
		d := &r.verdict.Differences[i]
		if r.untold(d, truth) {
			continue
		}
		want, got, exact := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where), verdict.At(truth, d.Where)
		if want == nil || got == nil || exact == nil || want.Len() != got.Len() || want.Len() != exact.Len() || !r.truer(d, want, got, exact) {
			return false, nil
		}
	}
	return true, nil
}

// inFloat64 is a program in float64, with the arguments that it has in its own dtypes: a fill draws
// others in another dtype.
func inFloat64(p *program.Program) *program.Program {
	w := program.Widen(p)
	for i := range w.Inputs {
		if in := &w.Inputs[i]; in.DType != p.Inputs[i].DType {
			in.Fill = program.Fill{Dist: program.Literal, Data: p.Inputs[i].Materialize().Contiguous().Convert(in.DType)}
		}
	}
	return w
}

// outgrown reports whether all that a kernel may not be off by are sums of products that no error
// bounds are known of.
func (s *Session) outgrown(r *result) bool {
	return !half(r.DType) && (s.contracts || s.traced != nil && s.traced.contracts(r.program)) && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		return !r.tolerable(&d) && (d.Diff.Rule != compare.Distance || d.Limit.Error != nil || d.Limit.Class == op.Exact)
	})
}

// inGradients reports whether all that a kernel may not be off by are gradients.
func (r *result) inGradients() bool {
	return !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool { return !d.Where.Part.IsGradient() && !r.tolerable(&d) })
}

// overflown reports whether a case's arguments are so large that a reference's exponentials of
// them may overflow in float64 too.
func (r *result) overflown() bool { return r.Regime == Offset || r.Regime == Large }

// untold reports whether a gradient is one of results that do, of which only parts are NaN.
func (r *result) untold(d *verdict.Difference, truth *backend.Outcome) bool {
	return r.overflown() && d.Where.Part == backend.PartGrad && hasNaN(truth)
}

// condition is that of an exponential of a sum of the arguments.
func (r *result) condition() float64 {
	sum := 0.0
	for k := range r.program.Inputs {
		if in := &r.program.Inputs[k]; in.DType.IsFloat() {
			sum += compare.Largest(in.Materialize())
		}
	}
	return max(1, sum)
}

// smallestHalf is the distance of float16's numbers near 0, smallestNormal that of float32 below which
// a number loses its digits, by which another factor, as large as a result, may be multiplied.
const smallestHalf, smallestNormal = 0x1p-24, 0x1p-126

// truer reports whether each element is as the reference's, or else as the truth: to a few
// roundings, or within its limit, where terms that cancel leave little. A gradient without error
// bounds may be as far from it as the reference's is, times what a kernel may be off, and so may the
// numbers of a reference that has overflown on its way.
func (r *result) truer(d *verdict.Difference, want, got, exact *tensor.Tensor) bool {
	unit, size := compare.Roundoff(want.DType()), 0.0
	rounded := exact.Convert(want.DType())
	overflown := r.overflown() && d.Where.Part == backend.PartValue
	if d.Where.Part != backend.PartValue { // of a gradient, which is a difference of terms
		for i := range exact.Len() {
			if v := exact.At(i); compare.Finite(rounded.At(i)) {
				size = max(size, 2*cmplx.Abs(v))
			}
		}
	}
	own := 0.0 // the reference's error, where nothing bounds it
	if (d.Where.Part != backend.PartValue || overflown || r.outgrown) && d.Limit.Error == nil && r.Regime != Extremes {
		for i := range exact.Len() {
			if !overflown || compare.Finite(want.At(i)) {
				own = max(own, verdict.Distance(want.At(i), exact.At(i)))
			}
		}
	}
	if !(own < math.Inf(1)) {
		own = 0
	}
	condition, largest := 1.0, 0.0
	if overflown {
		condition, largest = r.condition(), compare.Largest(exact)
	}
	for i := range want.Len() {
		g, t := got.At(i), exact.At(i)
		allowed := max(roundings*unit*max(size, cmplx.Abs(t)), r.slack*own)
		if want.DType() == tensor.F16 {
			allowed += smallestHalf
		}
		off := verdict.Distance(want.At(i), g)
		if limit := r.slack * d.Limit.Allows(rounded, i); limit < math.Inf(1) {
			allowed = max(allowed, limit)
		}
		if overflown && cmplx.IsNaN(want.At(i)) && cmplx.IsNaN(t) {
			continue
		}
		if overflown && !compare.Finite(want.At(i)) {
			allowed *= condition
			if want.DType() == tensor.F32 || want.DType() == tensor.BF16 {
				allowed += smallestNormal * max(condition, largest)
			}
		}
		if off != 0 && !(off <= r.slack*d.Limit.Allows(want, i)) && g != rounded.At(i) && !(verdict.Distance(t, g) <= allowed) {
			return false
		}
	}
	return true
}
