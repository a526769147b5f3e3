package onekernel

import (
	"context"
	"fmt"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// cancelling makes the elements of an input of Cancelling: near 1 in size, the first
// input's negative in the second half of each row. Sums and products over rows grow to
// half their terms before they come back to near 0, by which an accumulator of a half
// dtype loses digits that one of float32 keeps.
func cancelling(in *program.Input, key uint64, signed bool) program.Fill {
	drawn := program.Input{DType: in.DType, Shape: in.Shape, Fill: program.Fill{Dist: program.Uniform, Lo: 0.5, Hi: 1.5, Key: key}}
	data := drawn.Materialize()
	if width := len(in.Shape) - 1; signed && width >= 0 {
		n := in.Shape[width]
		for i := range data.Len() {
			if 2*(i%n) >= n {
				data.Set(i, -data.At(i))
			}
		}
	}
	return program.Fill{Dist: program.Literal, Data: data}
}

// rising returns what an input is filled with, each row in ascending order.
func rising(in *program.Input) program.Fill {
	drawn := program.Input{DType: in.DType, Shape: in.Shape, Fill: in.Fill}
	data := drawn.Materialize()
	if width := len(in.Shape) - 1; width >= 0 {
		row := make([]float64, in.Shape[width])
		for at := 0; at < data.Len(); at += len(row) {
			for i := range row {
				row[i] = data.Float(at + i)
			}
			slices.Sort(row)
			for i, v := range row {
				data.Set(at+i, complex(v, 0))
			}
		}
	}
	return program.Fill{Dist: program.Literal, Data: data}
}

// sumsInHalf judges a case of Cancelling in a half dtype more closely: the running bound
// of a sum has one rounding in the dtype for all of its terms, since a reference may add
// what it has rounded. Here the result, in float32 rounded once, is as near to the truth as
// the reference's; the distance that is allowed times slack is the reference's own largest,
// and one rounding of the largest element.
func (s *Session) sumsInHalf(ctx context.Context, r *result, job *backend.Job) error {
	if r.Regime != Cancelling || !half(r.DType) || s.cfg.HalfSums || r.verdict.Word != verdict.Aligned && !r.tolerated() {
		return nil
	}
	p := inFloat64(job.Program)
	p.Backward = nil
	truth, err := s.reference.Run(ctx, backend.NewJob(p))
	if err != nil || truth.Status != backend.OK {
		return err
	}
	for i, v := range r.ref.Values {
		if i >= len(truth.Values) || i >= len(r.kernel.Values) {
			break
		}
		want, got, exact := leaves(v), leaves(r.kernel.Values[i]), leaves(truth.Values[i])
		for k, t := range want {
			if k < len(got) && k < len(exact) && t.DType() == r.DType && got[k].Len() == t.Len() && exact[k].Len() == t.Len() {
				r.near(i, t, got[k], exact[k])
			}
		}
	}
	return nil
}

// near holds a result to the truth as nearly as the reference is to it.
func (r *result) near(call int, want, got, exact *tensor.Tensor) {
	err, size := 0.0, 0.0
	for i := range want.Len() {
		err = max(err, verdict.Distance(want.At(i), exact.At(i)))
		size = max(size, math.Abs(real(exact.At(i))))
	}
	unit := compare.Roundoff(want.DType())
	allowed := err + unit*size
	if math.IsInf(allowed, 0) || math.IsNaN(allowed) {
		return
	}
	limit := compare.Limit{ATol: compare.Number(allowed), Reason: "the reference's own distance from the truth, and one rounding"}
	diff := compare.Judge(want, got, limit, compare.Options{})
	if diff.OK || diff.Rule != compare.Distance || float64(diff.WorstRatio) <= r.slack {
		return
	}
	w := verdict.Where{Part: backend.PartValue, Call: call, Name: resultName}
	r.verdict = &verdict.Verdict{
		Word: verdict.Misaligned, Kind: verdict.Kind(backend.PartValue), Where: &w,
		Reason:      fmt.Sprintf("long cancelling sums lose digits, as by an accumulator of %s: at %v got %s, want %s", want.DType(), diff.Worst, diff.Got, diff.Want),
		Differences: []verdict.Difference{{Where: w, Kind: verdict.Kind(backend.PartValue), Limit: limit, Diff: diff}},
	}
}

func half(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }

// keyOf is the key of a case's input k.
func (c *Case) keyOf(k int) uint64 { return choice.Derive(c.Key, uint64(k)) }
