package verdict

import (
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// farApart is how many units of roundoff of the largest element a result has to be off before a
// call is analysed by itself.
const farApart = 256

// ownBound bounds the rounding errors of a call by itself, where its inputs have the same bits on
// both sides and its result is far apart: what came before has no part in that, however wide the
// bound of a long program has grown. Nil where the program's bound serves as well.
func (j *judge) ownBound(w Where, want, got *tensor.Tensor, basis *compare.Basis) *compare.Bound {
	if !basis.Same || w.Part != backend.PartValue || w.Call == 0 || w.Call >= len(j.p.Calls) {
		return nil
	}
	c := &j.p.Calls[w.Call]
	if inPlace(c) || strings.HasPrefix(c.Target, "Module.") || program.IsModule(c.Target) || !j.behindOthers(c) || !apart(want, got) {
		return nil
	}
	p := j.singleCall(w.Call)
	if p == j.p {
		return nil
	}
	w.Call = len(p.Calls) - 1
	return pickBound(j.policy.Rounding.Call(p), w)
}

// behindOthers reports whether a call reads what another one gave.
func (j *judge) behindOthers(c *program.Call) (behind bool) {
	c.EachRef(func(r program.Ref) {
		behind = behind || !slices.ContainsFunc(j.p.Inputs, func(in program.Input) bool { return in.Name == string(r) })
	})
	return behind
}

// apart reports whether numbers differ by more than a few roundings of the largest.
func apart(want, got *tensor.Tensor) bool {
	if !slices.Equal(want.Shape(), got.Shape()) {
		return false
	}
	most := mostRounded(want)
	for i := range want.Len() {
		if Distance(want.At(i), got.At(i)) > most {
			return true
		}
	}
	return false
}

func mostRounded(want *tensor.Tensor) float64 {
	return farApart * compare.Roundoff(want.DType()) * compare.Largest(want)
}

// noteWide notes the first value that is far apart and passes by the bound of a program: whether
// its call is wrong, the reference can tell at what the candidate has before it.
func (j *judge) noteWide(c *comparison) {
	if j.v.Wide != nil || !c.diff.OK || c.sameInputs || c.where.Part != backend.PartValue || c.limit.Error == nil ||
		float64(c.diff.MaxRel) <= farApart*compare.Roundoff(c.want.DType()) || float64(c.diff.MaxAbs) <= mostRounded(c.want) {
		return
	}
	at := c.where
	j.v.Wide = &at
}
