package onekernel

import (
	"context"
	"math/cmplx"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// replaced are what NaN and infinities are exchanged for to see which results depend on
// them: beyond all other elements on either side, and finite in every dtype.
var replaced = []float64{1e4, -1e4}

// far are what infinities are exchanged for, with their sign, to see to what the reference's
// result goes as they grow.
var far = []float64{1e4, 3e4}

// residue is what of an infinity's growth is left at most where it is multiplied by 0, in
// float64: half its digits. A logarithm grows by more.
const residue = 0x1p-26

// followsNonFinite reports whether what a case of NonFinite holds against a kernel follows
// from the order of operations alone: it has an infinity where the reference has NaN, as
// (x−m)·w has for an infinite w and x·w−m·w has not; or it differs in elements that do not
// depend on any NaN or infinity, and which the reference multiplies by 0 on the way, as
// attention does what is masked; or it has, within its limit, that to which the reference goes as
// infinities grow, where the reference has NaN for ∞−∞ or ∞·0: exp(x−logsumexp(x)) is 0 beside
// an infinity, and so is what decays as exp(w·t) is beyond t = 0 for an infinite rate; or
// it has NaN or the other infinity where the reference's is one times what rounding has left
// of 0, as (x−m)·w is in a row that is constant; or it has NaN for an infinity of a product of
// matrices, to which it may add terms of zeros: what pads a block, the state before the first;
// or of attention, where scores are masked before a softmax: those that are NaN or ∞ stay NaN
// beside a mask of -∞ that is added; or for one of lerp, the reference's or its own, which its
// documentation says is NaN: x + m·(y−x); or for a mean beside a variance, which Welford's formula
// has by differences from the mean so far.
func (s *Session) followsNonFinite(ctx context.Context, r *result, job *backend.Job) (bool, error) {
	lerps := s.lerps(r)
	if r.Regime != NonFinite || s.pointwise && !lerps || r.verdict.Word != verdict.Misaligned || r.verdict.Kind != verdict.Kind(backend.PartValue) {
		return false, nil
	}
	masks := uses(r.refSeen.Operators, safe...) || uses(r.refSeen.Operators, "aten::_softmax") && uses(r.refSeen.Operators, "aten::masked_fill", "aten::where")
	exchanged := func(by float64, signed bool) *program.Program { return exchanged(job.Program, by, signed, masks) }
	var free []*backend.Outcome
	for k, by := range slices.Concat(replaced, far, far) {
		p := exchanged(by, k >= len(replaced))
		if k >= len(replaced)+len(far) {
			p = inFloat64(p)
		}
		o, err := s.reference.Run(ctx, backend.NewJob(p))
		if err != nil || o.Status != backend.OK {
			return false, err
		}
		free = append(free, o)
	}
	grown := *free[2]
	undefined := lerps || uses(r.refSeen.Operators, moments...) || s.contracts || s.traced != nil && s.traced.contracts(r.program)
	for _, d := range r.verdict.Differences {
		if d.Diff.Rule == compare.Distance && float64(d.Diff.WorstRatio) <= r.slack {
			continue
		}
		if d.Diff.Rule != compare.NonFinite {
			return false, nil
		}
		want, got := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where)
		a, b := verdict.At(free[0], d.Where), verdict.At(free[1], d.Where)
		near, beyond := verdict.At(free[2], d.Where), verdict.At(free[3], d.Where)
		wide := [2]*tensor.Tensor{verdict.At(free[4], d.Where), verdict.At(free[5], d.Where)}
		for _, t := range []*tensor.Tensor{want, got, a, b, near, beyond, wide[0], wide[1]} {
			if t == nil || t.Len() != want.Len() {
				return false, nil
			}
		}
		if !follows(want, got, a, b, near, beyond, wide, undefined, masks) {
			return false, nil
		}
		grown.Values = replacedAt(grown.Values, near, approached(want, got, a, b, near, beyond))
	}
	return s.within(ctx, r, exchanged(far[0], true), free[2], &grown, s.asks)
}

// approached is the result as infinities grow, with the kernel's numbers where the reference
// has NaN of infinities and goes to one number.
func approached(want, got, a, b, near, beyond *tensor.Tensor) *tensor.Tensor {
	limit := near.Clone()
	for i := range want.Len() {
		if goesTo(want, near, beyond, i) && compare.Finite(got.At(i)) && a.At(i) != b.At(i) {
			limit.Set(i, got.At(i))
		}
	}
	return limit
}

// goesTo reports whether element i is NaN of infinities and one number as they grow.
func goesTo(want, near, beyond *tensor.Tensor, i int) bool {
	return cmplx.IsNaN(want.At(i)) && near.At(i) == beyond.At(i)
}

// replacedAt are values with one tensor in the place of another.
func replacedAt(values []backend.Value, old, by *tensor.Tensor) []backend.Value {
	values = slices.Clone(values)
	for i := range values {
		if values[i].Tensor == old {
			values[i].Tensor = by
		}
		values[i].Tuple = replacedAt(values[i].Tuple, old, by)
	}
	return values
}

// within reports whether a result is as near the reference's of another program as that of
// a case has to be.
func (s *Session) within(ctx context.Context, r *result, p *program.Program, ref, got *backend.Outcome, asks judge.Ask) (bool, error) {
	v, err := s.judge.Judge(ctx, backend.NewJob(p), ref, got, asks)
	if err != nil {
		return false, err
	}
	other := result{Case: r.Case, verdict: v, kernel: got, ref: ref, slack: r.slack}
	return v.Word == verdict.Aligned || other.tolerated(), nil
}

// lerps reports whether the reference has a lerp in a case, or the kernel in any that recorded it.
func (s *Session) lerps(r *result) bool {
	one := func(o observed) bool { return uses(o.Operators, "aten::lerp") }
	return one(r.refSeen) || one(r.seen) || slices.ContainsFunc(s.outcomes, func(r *result) bool { return one(r.seen) })
}

// safe begin the names of operators that have 0 in a row of which all scores are -∞, where the
// formula that PyTorch's documentation has for attention is NaN.
var safe = []string{"aten::scaled_dot_product", "aten::_scaled_dot_product", "aten::_safe_softmax"}

// moments begin the names of operators that have a mean and a variance.
var moments = []string{"aten::var", "aten::std", "aten::native_batch_norm", "aten::native_layer_norm", "aten::native_group_norm"}

// uses reports whether the name of an operator begins as one of some do.
func uses(operators []string, begins ...string) bool {
	return slices.ContainsFunc(operators, func(name string) bool {
		return slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(name, begin) })
	})
}

// follows reports whether each element of a kernel's result is as the reference's, or
// differs by the order of operations alone, by what the reference gives where NaN and
// infinities are replaced, and where infinities alone are, by far numbers and farther ones,
// in its dtype and in float64; undefined says whether another order has 0·∞ or ∞−∞, and masks
// that the reference leaves scores out before a softmax, to which a kernel may add -∞.
func follows(want, got, a, b, near, beyond *tensor.Tensor, wide [2]*tensor.Tensor, undefined, masks bool) bool {
	for i := range want.Len() {
		w, g := want.At(i), got.At(i)
		switch {
		case compare.Finite(w) && compare.Finite(g), w == g, cmplx.IsNaN(w) && !compare.Finite(g):
		case !compare.Finite(w) && compare.Finite(g) && a.At(i) == b.At(i):
		case goesTo(want, near, beyond, i) && compare.Finite(g): // which is held to its limit
		case undefined && cmplx.IsInf(w) && cmplx.IsNaN(g):
		case masks && cmplx.IsNaN(g):
		case cmplx.IsInf(w) && !compare.Finite(g) && cmplx.Abs(wide[1].At(i)-wide[0].At(i)) < residue*(far[1]-far[0]):
		default:
			return false
		}
	}
	return true
}

// exchanged is the forward pass of a program whose inputs have a number in the place of NaN and
// infinities, or of infinities alone, with their sign; where scores are masked, a small number in
// that of NaN then, on which what is masked does not depend.
func exchanged(p *program.Program, by float64, signed, masks bool) *program.Program {
	q := p.Clone()
	q.Backward = nil
	for i := range q.Inputs {
		in := &q.Inputs[i]
		if !in.DType.IsFloat() {
			continue
		}
		plain := *in
		plain.Strides = nil
		data := plain.Materialize()
		for k := range data.Len() {
			switch v := data.At(k); {
			case compare.Finite(v), signed && !masks && cmplx.IsNaN(v):
			case signed && cmplx.IsNaN(v):
				data.Set(k, complex(by/far[0], 0))
			case signed && real(v) < 0:
				data.Set(k, complex(-by, 0))
			default:
				data.Set(k, complex(by, 0))
			}
		}
		in.Fill, in.RequiresGrad = program.Fill{Dist: program.Literal, Data: data}, false
	}
	return q
}
