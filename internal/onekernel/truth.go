package onekernel

import (
	"context"
	"math"
	"math/cmplx"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// nearTruth reports whether all that is held against a kernel is the reference's own error:
// each element that differs is, to a few roundings, what the reference gives in float64. A
// reference that squares and sums in float16 has an infinity or NaN on the way where a kernel
// that computes in float32 has none.
func (s *Session) nearTruth(ctx context.Context, r *result, job *backend.Job) (bool, error) {
	if r.Regime == NonFinite || !half(r.DType) && finite(r.ref) && !gradientOnly(r) || !r.differsIn(compare.Distance, compare.NonFinite) {
		return false, nil
	}
	truth, err := s.reference.Run(ctx, backend.NewJob(program.Widen(job.Program)))
	if err != nil || truth.Status != backend.OK {
		return false, err
	}
	for i := range r.verdict.Differences {
		d := &r.verdict.Differences[i]
		want, got, exact := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where), verdict.At(truth, d.Where)
		if want == nil || got == nil || exact == nil || want.Len() != got.Len() || want.Len() != exact.Len() || !r.truer(d, want, got, exact) {
			return false, nil
		}
	}
	return true, nil
}

// smallestHalf is the distance of float16's numbers near 0.
const smallestHalf = 0x1p-24

// truer reports whether each element is as the reference's, or else as the truth: to a few
// roundings, or within its limit, where terms that cancel leave little.
func (r *result) truer(d *verdict.Difference, want, got, exact *tensor.Tensor) bool {
	unit, size := compare.Roundoff(want.DType()), 0.0
	rounded := exact.Convert(want.DType())
	if d.Where.Part != backend.PartValue { // of a gradient, which is a difference of terms
		for i := range exact.Len() {
			if v := exact.At(i); compare.Finite(rounded.At(i)) {
				size = max(size, 2*cmplx.Abs(v))
			}
		}
	}
	for i := range want.Len() {
		g, t := got.At(i), exact.At(i)
		allowed := roundings * unit * max(size, cmplx.Abs(t))
		if want.DType() == tensor.F16 {
			allowed += smallestHalf
		}
		off := verdict.Distance(want.At(i), g)
		if limit := r.slack * d.Limit.Allows(rounded, i); limit < math.Inf(1) {
			allowed = max(allowed, limit)
		}
		if off != 0 && !(off <= r.slack*d.Limit.Allows(want, i)) && g != rounded.At(i) && !(verdict.Distance(t, g) <= allowed) {
			return false
		}
	}
	return true
}
