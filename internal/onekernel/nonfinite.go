package onekernel

import (
	"context"
	"math/cmplx"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// replaced are what NaN and infinities are exchanged for to see which results depend on
// them: beyond all other elements on either side, and finite in every dtype.
var replaced = []float64{1e4, -1e4}

// followsNonFinite reports whether what a case of NonFinite holds against a kernel follows
// from the order of operations alone: it has an infinity where the reference has NaN, as
// (x−m)·w has for an infinite w and x·w−m·w has not; or it differs in elements that do not
// depend on any NaN or infinity, and which the reference multiplies by 0 on the way, as
// attention does what is masked.
func (s *Session) followsNonFinite(ctx context.Context, r *result, job *backend.Job) (bool, error) {
	if r.Regime != NonFinite || s.pointwise || r.verdict.Word != verdict.Misaligned || r.verdict.Kind != verdict.Kind(backend.PartValue) {
		return false, nil
	}
	var free []*backend.Outcome
	for _, by := range replaced {
		p := exchanged(job.Program, by)
		p.Backward = nil
		o, err := s.reference.Run(ctx, backend.NewJob(p))
		if err != nil || o.Status != backend.OK {
			return false, err
		}
		free = append(free, o)
	}
	for _, d := range r.verdict.Differences {
		want, got := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where)
		a, b := verdict.At(free[0], d.Where), verdict.At(free[1], d.Where)
		if want == nil || got == nil || a == nil || b == nil || got.Len() != want.Len() || a.Len() != want.Len() || b.Len() != want.Len() {
			return false, nil
		}
		for i := range want.Len() {
			w, g := want.At(i), got.At(i)
			switch {
			case compare.Finite(w) && compare.Finite(g), w == g, cmplx.IsNaN(w) && !compare.Finite(g):
			case !compare.Finite(w) && compare.Finite(g) && a.At(i) == b.At(i):
			default:
				return false, nil
			}
		}
	}
	return true, nil
}

// exchanged is a program whose inputs have a number in the place of NaN and infinities.
func exchanged(p *program.Program, by float64) *program.Program {
	q := p.Clone()
	for i := range q.Inputs {
		in := &q.Inputs[i]
		if !in.DType.IsFloat() {
			continue
		}
		plain := *in
		plain.Strides = nil
		data := plain.Materialize()
		for k := range data.Len() {
			if !compare.Finite(data.At(k)) {
				data.Set(k, complex(by, 0))
			}
		}
		in.Fill, in.RequiresGrad = program.Fill{Dist: program.Literal, Data: data}, false
	}
	return q
}
