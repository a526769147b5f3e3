package verdict

import (
	"math"
	"math/cmplx"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Relative is the class of a limit that follows from the reference's own
// distance from the truth.
const Relative op.Class = "relative"

// Oracle holds what decides who is right: the reference's outcome in float64
// on the same inputs, and on inputs nearby.
type Oracle struct {
	Reference *backend.Outcome // what is judged against
	Truth     *backend.Outcome // the widened program on the same inputs
	Near      []Nearby
	// Errors, where set, stands for Near: by element, the largest distance of the
	// reference from the truth on Inputs nearby inputs.
	Errors *backend.Outcome
	Inputs int
	// All asks for the distances of every comparison, not only of those that
	// break a limit.
	All bool
}

// Nearby is the reference at inputs that differ a little (see nudge): as the
// program says, and widened.
type Nearby struct{ Reference, Truth *backend.Outcome }

// Truth says how far both sides are from the truth at one place.
type Truth struct {
	Where     Where          `json:"where"`
	Reference compare.Number `json:"reference"` // largest |reference − truth|
	Candidate compare.Number `json:"candidate"` // largest |candidate − truth|
	// Ratio is the largest |candidate − truth| ÷ what is allowed; at most 1
	// decides in the candidate's favour.
	Ratio compare.Number `json:"ratio"`
	// At is where Ratio is taken; Exact the truth there.
	At    []int  `json:"at,omitempty"`
	Exact string `json:"exact"`
	Near  int    `json:"near"` // how many nearby inputs the reference was run on

	values *tensor.Tensor
}

// fill tells the truth of each sample.
func (t *Truth) fill(samples []compare.Sample) {
	for i := range samples {
		samples[i].Truth = t.Of(samples[i].Index)
	}
}

// Of tells the truth of an element.
func (t *Truth) Of(index []int) string {
	v := t.values
	for d, k := range index {
		v = v.Narrow(d, k, 1, 1)
	}
	return compare.Element(v, 0)
}

// NearInputs is how many nearby inputs an oracle is asked about.
const NearInputs = 15

// errorFactor is how many times the reference's own largest error, over the
// nearby inputs, a candidate's error may be. In the half dtypes results lie on
// a coarse grid, so that the errors of a few inputs are no fair sample; the
// factor there is the one that torch._dynamo.utils.same has for few elements.
func errorFactor(d tensor.DType) float64 {
	if isHalf(d) {
		return 8
	}
	return 4
}

// settle decides about the tensors of one place, which differ by more than the
// limit; nil when the oracle knows no better than the reference.
//
// An element within the limit stands. Any other passes when its distance from
// the truth is within the operator's own limit, where that applies, so that an
// error of the reference is not held against the candidate; or within
// errorFactor times the largest error that the reference makes at this element
// on this input and on NearInputs others. An exact limit leaves a candidate
// only the truth itself.
//
// Scalar is the exact result where it is known without an oracle, which may
// then be nil.
func (o *Oracle) settle(w Where, want, got *tensor.Tensor, limit compare.Limit, scalar *tensor.Tensor) *Truth {
	exact := scalar
	if exact == nil && o != nil {
		if exact = At(o.Truth, w); exact != nil && exact.DType() == want.DType() && want.DType().IsDifferentiable() {
			return nil
		}
	}
	if exact == nil || exact.Len() != want.Len() || limit.Class == compare.Explicit {
		return nil
	}
	t := &Truth{Where: w, values: exact}
	if o != nil {
		t.Near = len(o.Near) + o.Inputs
	}
	over := compare.Over(want, got, limit)
	own := o.ownErrors(w, want)
	for i := range want.Len() {
		e := exact.At(i)
		ref, cand := Distance(want.At(i), e), Distance(got.At(i), e)
		t.Reference = max(t.Reference, compare.Number(ref))
		t.Candidate = max(t.Candidate, compare.Number(cand))
		if !over(i) {
			continue
		}
		allowed := 0.0
		if limit.Class != op.Exact || limit.RTol > 0 { // inputs that differ leave no exact limit
			allowed = max(relativeLimit(own[i], e, want.DType()), ownLimit(limit, i, e, want.DType()))
		}
		if r := compare.Number(quotient(cand, allowed)); r > t.Ratio || t.At == nil {
			t.Ratio, t.At, t.Exact = r, coordinates(i, want.Shape()), compare.Element(exact, i)
		}
	}
	return t
}

// Distance returns |a − b|: 0 for equal infinities and for two NaNs, infinite
// where one side alone is a NaN.
func Distance(a, b complex128) float64 {
	if a == b || cmplx.IsNaN(a) && cmplx.IsNaN(b) {
		return 0
	}
	d := math.Hypot(real(a)-real(b), imag(a)-imag(b))
	if math.IsNaN(d) {
		return math.Inf(1)
	}
	return d
}

func quotient(err, allowed float64) float64 {
	if err == 0 {
		return 0
	}
	return err / allowed
}

// ownLimit returns half of a two-sided bound, or the ULP limit in absolute terms.
func ownLimit(l compare.Limit, i int, exact complex128, d tensor.DType) float64 {
	size := math.Hypot(real(exact), imag(exact))
	if l.Error != nil {
		return l.Own(i) + compare.Spacing(size, d)
	}
	return float64(l.ULP) * compare.Spacing(size, d)
}

// relativeLimit returns errorFactor times the reference's own error, and at
// least one unit in the last place.
func relativeLimit(own float64, exact complex128, d tensor.DType) float64 {
	return errorFactor(d)*own + compare.Spacing(math.Hypot(real(exact), imag(exact)), d)
}

// ownErrors returns, for each element, the reference's largest error over the
// input and the nearby ones. In a half dtype a result can come out exact on all
// of them by its coarse rounding alone, so the root mean square over the tensor
// is the least that counts.
func (o *Oracle) ownErrors(w Where, want *tensor.Tensor) []float64 {
	worst := make([]float64, want.Len())
	if o == nil {
		return worst
	}
	addErrors(worst, want, At(o.Truth, w))
	for _, n := range o.Near {
		addErrors(worst, At(n.Reference, w), At(n.Truth, w))
	}
	if e := At(o.Errors, w); e != nil && e.Len() == len(worst) {
		for i := range worst {
			worst[i] = max(worst[i], e.Float(i))
		}
	}
	if isHalf(want.DType()) {
		sum := 0.0
		for _, e := range worst {
			sum += e * e
		}
		rms := math.Sqrt(sum / float64(max(len(worst), 1)))
		for i, e := range worst {
			worst[i] = max(e, rms)
		}
	}
	return worst
}

func isHalf(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }

func coordinates(i int, shape []int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d] = i % shape[d]
		i /= shape[d]
	}
	return out
}

// At returns the tensor of a place in an outcome; nil when it has none.
func At(o *backend.Outcome, w Where) *tensor.Tensor {
	if o == nil {
		return nil
	}
	if w.Part != backend.PartValue {
		return o.At(w.place())
	}
	if w.Call >= len(o.Values) {
		return nil
	}
	return o.Values[w.Call].Part(w.Path).Tensor
}

// Arguable reports whether an oracle could change the verdict: a difference is
// a matter of distance or of an overflow, or errors lean to one side.
func (v *Verdict) Arguable() bool {
	if v.Word != Misaligned {
		return v.Suspect
	}
	for _, d := range v.Differences {
		if d.Diff.Rule == compare.Distance || d.Diff.Rule == compare.NonFinite {
			return true
		}
	}
	return false
}

func widenAll(ts []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(ts))
	for i, t := range ts {
		out[i] = widen(t)
	}
	return out
}

func widen(t *tensor.Tensor) *tensor.Tensor {
	u := tensor.NewStrided(program.Wide(t.DType()), t.Shape(), t.Strides())
	u.CopyFrom(t)
	return u
}

func widenState(all map[string]backend.State) map[string]backend.State {
	out := map[string]backend.State{}
	for name, st := range all {
		for _, n := range st {
			out[name] = append(out[name], backend.Named{Name: n.Name, Tensor: widen(n.Tensor)})
		}
	}
	return out
}
