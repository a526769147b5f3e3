package onekernel

import (
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// TestTruer: where a reference in float16 has NaN or an infinity on its way, a kernel that
// has what the reference gives in float64 is right, and no other one is.
func TestTruer(t *testing.T) {
	halves := func(v ...float64) *tensor.Tensor { return vector(v...).Convert(tensor.F16) }
	exact := vector(0.25, 1e-9, 7e4, -3).Convert(tensor.F64)
	want := halves(nan, 0, inf, -3)
	for _, c := range []struct {
		what  string
		part  backend.Part
		got   *tensor.Tensor
		truer bool
	}{
		{"the truth, rounded", backend.PartGrad, halves(0.25, 0, inf, -3), true},
		{"some roundings off", backend.PartValue, halves(0.2503, 6e-8, inf, -3.002), true},
		{"more than some", backend.PartValue, halves(0.2515, 0, inf, -3), false},
		{"a gradient off by a rounding of its largest", backend.PartGrad, halves(0.255, 0, inf, -3), true},
		{"a gradient off by more", backend.PartGrad, halves(0.27, 0, inf, -3), false},
		{"finite beyond the largest number", backend.PartValue, halves(0.25, 0, 6e4, -3), false},
		{"NaN where the reference has none", backend.PartValue, halves(0.25, nan, inf, -3), false},
		{"an infinity in the place of NaN", backend.PartValue, halves(inf, 0, inf, -3), false},
		{"NaN as the reference has it", backend.PartValue, halves(nan, 0, inf, -3), true},
	} {
		r := misalignedBy(compare.NonFinite, inf, c.part, Tiny, vector(1, 2, 3, 4), want, c.got)
		if got := r.truer(&r.verdict.Differences[0], want, c.got, exact); got != c.truer {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
