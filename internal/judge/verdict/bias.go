package verdict

import (
	"fmt"
	"math"

	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// Bias is the rule that errors do not all lean to one side, as Cambricon's
// diff4 has it.
const Bias compare.Rule = "bias"

// minBiased is how many unequal elements it takes to speak of a bias.
const minBiased = 100

// OneSided reports whether all of at least minBiased errors have one sign.
func OneSided(d *compare.Diff) bool {
	unequal := d.Total - d.Hist[0]
	return unequal >= minBiased && math.Abs(float64(d.Bias)) == 1
}

// bias looks at errors that are within the limit but all on one side. It is a
// difference when the oracle confirms that the candidate leans, by a quarter
// of a unit in the last place or more on the average, and more than the
// reference does.
func (j *judge) bias(w Where, want, got *tensor.Tensor, d *compare.Diff) {
	if !widespread(want, got) {
		return
	}
	if j.policy.Oracle == nil {
		j.v.Suspect = true
		return
	}
	exact := At(j.policy.Oracle.Truth, w)
	if exact == nil || exact.Len() != want.Len() || exact.DType() == want.DType() {
		return
	}
	ref, cand := lean(want, exact), lean(got, exact)
	if math.Abs(cand) < 0.25 || math.Abs(cand) <= 2*math.Abs(ref) {
		return
	}
	d.OK, d.Rule = false, Bias
	d.Message = fmt.Sprintf("all %d errors lean to one side: %+.2g ULP from the truth on the average, the reference %+.2g", d.Total-d.Hist[0], cand, ref)
}

// minRegions is in how many regions of the range a bias shows, sixteen to a power
// of two: within one, the errors of any approximation have one sign.
const minRegions = 4

// widespread reports whether unequal elements have enough values in enough regions.
func widespread(want, got *tensor.Tensor) bool {
	values, regions := map[float64]bool{}, map[[2]float64]bool{}
	for i := range want.Len() {
		w := real(want.At(i))
		if w == real(got.At(i)) {
			continue
		}
		fraction, exponent := math.Frexp(w)
		values[w], regions[[2]float64{math.Floor(32 * fraction), float64(exponent)}] = true, true
		if len(values) >= minBiased && len(regions) >= minRegions {
			return true
		}
	}
	return false
}

// lean returns the mean error in units in the last place of the exact values.
func lean(t, exact *tensor.Tensor) float64 {
	sum, n := 0.0, 0
	for i := range t.Len() {
		e := real(exact.At(i))
		err := (real(t.At(i)) - e) / compare.Spacing(math.Abs(e), t.DType())
		if !math.IsNaN(err) && !math.IsInf(err, 0) {
			sum, n = sum+err, n+1
		}
	}
	return sum / float64(max(n, 1))
}
