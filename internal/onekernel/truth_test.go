package onekernel

import (
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
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

// TestNoTruth: what overflows to NaN in float64 too says nothing of a kernel, which what is NaN
// for any arguments does.
func TestNoTruth(t *testing.T) {
	want, got := vector(nan, 2), vector(300, 2)
	for _, c := range []struct {
		what   string
		part   backend.Part
		regime Regime
		exact  float64
		got    *tensor.Tensor
		truer  bool
	}{
		{"a reference without a maximum taken out", backend.PartValue, Offset, nan, got, true},
		{"of large arguments", backend.PartValue, Large, nan, got, true},
		{"of usual ones", backend.PartValue, Usual, nan, got, false},
		{"where there is a truth", backend.PartValue, Offset, 301, got, false},
		{"as near to it as an exponential of such arguments may be", backend.PartValue, Offset, 300.0004, got, true},
		{"farther than that", backend.PartValue, Offset, 300.001, got, false},
		{"another element that is off", backend.PartValue, Offset, nan, vector(300, 3), false},
		{"an infinity in the place of another", backend.PartValue, Offset, nan, vector(300, inf), false},
	} {
		r := misalignedBy(compare.NonFinite, inf, c.part, c.regime, vector(1, 7), want, c.got)
		if r.truer(&r.verdict.Differences[0], want, c.got, vector(c.exact, 2).Convert(tensor.F64)) != c.truer {
			t.Errorf("%s: %v", c.what, !c.truer)
		}
	}
	for _, c := range []struct { // a reference that has overflown where 2.1 is
		got   float64
		truer bool
	}{{2.2, true}, {2.8, true}, {3, false}, {nan, false}} {
		r := misalignedBy(compare.NonFinite, inf, backend.PartValue, Large, vector(1, 7), want, vector(300, c.got))
		if r.truer(&r.verdict.Differences[0], want, vector(300, c.got), vector(300, 2.1).Convert(tensor.F64)) != c.truer {
			t.Errorf("%g: %v", c.got, !c.truer)
		}
	}
	for _, c := range []struct { // arguments of 7 beside a limit that NaN leaves nothing of
		regime Regime
		exact  float64
		truer  bool
	}{{Large, -5e-38, true}, {Large, -5e-37, false}, {Usual, -5e-38, false}} {
		r := misalignedBy(compare.NonFinite, inf, backend.PartValue, c.regime, vector(1, 7), want, vector(0, 2))
		d := &r.verdict.Differences[0]
		d.Limit.ATol = 0
		if r.truer(d, want, vector(0, 2), vector(c.exact, 2).Convert(tensor.F64)) != c.truer {
			t.Errorf("0 for %g, %s: %v", c.exact, c.regime, !c.truer)
		}
	}
	for _, c := range []struct {
		part   backend.Part
		regime Regime
		value  float64
		untold bool
	}{
		{backend.PartGrad, Offset, nan, true}, {backend.PartGrad, Offset, 1, false}, {backend.PartGrad, Usual, nan, false}, {backend.PartValue, Offset, nan, false},
	} {
		r := misalignedBy(compare.NonFinite, inf, c.part, c.regime, vector(1, 2), want, got)
		if r.untold(&r.verdict.Differences[0], &backend.Outcome{Values: []backend.Value{{Tensor: vector(c.value, 1)}}}) != c.untold {
			t.Errorf("%+v: %v", c, !c.untold)
		}
	}
}

// TestUnboundedGradientsErrAsTheReference: of terms that cancel whole the reference leaves what it
// rounds, and a kernel by another formula as much; nothing else says how large they are.
func TestUnboundedGradientsErrAsTheReference(t *testing.T) {
	exact, want := vector(0, 1e-9).Convert(tensor.F64), vector(0.003, -0.001)
	for _, c := range []struct {
		what      string
		part      backend.Part
		regime    Regime
		got, unit float64
		truer     bool
	}{
		{"some times as far", backend.PartGrad, Usual, 0.008, 0, true},
		{"farther", backend.PartGrad, Usual, 0.03, 0, false},
		{"with a bound", backend.PartGrad, Usual, 0.008, 0x1p-24, false},
		{"a value", backend.PartValue, Usual, 0.008, 0, false},
		{"at the ends of the dtype", backend.PartGrad, Extremes, 0.008, 0, false},
	} {
		got := vector(c.got, 1e-9)
		r := misalignedBy(compare.Distance, 1e5, c.part, c.regime, vector(1, 2), want, got)
		if c.unit > 0 {
			r.verdict.Differences[0].Limit = compare.Limit{Class: op.Accumulating, Unit: compare.Number(c.unit), Error: vector(1, 1)}
		}
		if r.truer(&r.verdict.Differences[0], want, got, exact) != c.truer {
			t.Errorf("%s: %v", c.what, !c.truer)
		}
	}
}

// TestGradientsBesideAToleratedValue: what is within what a kernel may be off does not say where
// the difference is.
func TestGradientsBesideAToleratedValue(t *testing.T) {
	for ratio, want := range map[float64]bool{1.8: true, Slack + 1: false} {
		r := misalignedBy(compare.Distance, 1e5, backend.PartGrad, Usual, vector(1, 2), vector(1, 2), vector(2, 2))
		value := r.verdict.Differences[0]
		value.Where.Part, value.Diff.WorstRatio, value.Diff.MaxAbs = backend.PartValue, compare.Number(ratio), compare.Number(ratio*1e-7)
		r.verdict.Differences = append([]verdict.Difference{value}, r.verdict.Differences...)
		if r.inGradients() != want {
			t.Errorf("a value off by %v limits: %v", ratio, !want)
		}
	}
}

// TestCancelledGradientsAreTruer: what terms that cancel leave of a gradient is as uncertain
// as they are, which its limit says, where there is one.
func TestCancelledGradientsAreTruer(t *testing.T) {
	exact, want := vector(1e-7, 1e-9), vector(nan, 1e-9)
	for _, c := range []struct {
		what  string
		got   float64
		terms float64
		truer bool
	}{
		{"nothing left of terms of 100", 0, 100, true},
		{"more than they may leave", 1e-4, 100, false},
		{"terms of 0.1", 0, 0.1, false},
		{"no bound", 0, nan, false},
	} {
		got := vector(c.got, 1e-9)
		r := misalignedBy(compare.NonFinite, inf, backend.PartGrad, Tiny, vector(1, 2), want, got)
		r.verdict.Differences[0].Limit = compare.Limit{Class: op.Accumulating, Unit: 0x1p-24, Error: vector(c.terms, 1)}
		if r.truer(&r.verdict.Differences[0], want, got, exact.Convert(tensor.F64)) != c.truer {
			t.Errorf("%s: %v", c.what, !c.truer)
		}
	}
}

// TestWhatIsWidenedHasTheSameArguments: a program in float64 has the numbers that it has in its
// own dtype, drawn or expanded, complex ones too.
func TestWhatIsWidenedHasTheSameArguments(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.F32, tensor.F16, tensor.C64, tensor.I64} {
		for _, f := range []program.Fill{{Dist: program.Normal, Hi: 1, Key: 7}, {Dist: program.Uniform, Lo: -1, Hi: 1, Key: 7}, {Dist: program.Integer, Lo: -5, Hi: 5, Key: 7}} {
			for _, strides := range [][]int{nil, {0, 1}} {
				if dt == tensor.I64 && f.Dist != program.Integer {
					continue
				}
				p := &program.Program{Inputs: []program.Input{{Name: "x", DType: dt, Shape: []int{3, 4}, Strides: strides, Fill: f}}}
				was, now := p.Inputs[0].Materialize(), inFloat64(p).Inputs[0].Materialize()
				for i := range was.Len() {
					if was.At(i) != now.At(i) {
						t.Fatalf("%s of %v: %v is %v", dt, f, was.At(i), now.At(i))
					}
				}
			}
		}
	}
}

// TestOutgrownSumsErrAsTheReference: a product of matrices whose errors are beyond their bounds may be
// as far from the truth as the reference is, times what a kernel may be off by; no other result may.
func TestOutgrownSumsErrAsTheReference(t *testing.T) {
	exact, want := vector(400, -5).Convert(tensor.F64), vector(400.002, -5)
	for _, c := range []struct {
		got       float64
		contracts bool
		right     bool
	}{{-5.01, true, true}, {-5.03, true, false}, {-5.01, false, false}} {
		got := vector(400, c.got)
		r := misalignedBy(compare.Distance, 100, backend.PartValue, Usual, vector(1, 2), want, got)
		s := &Session{contracts: c.contracts}
		r.outgrown = s.outgrown(r)
		if right := r.truer(&r.verdict.Differences[0], want, got, exact); right != c.right {
			t.Errorf("%g, a product of matrices %t: %t", c.got, c.contracts, right)
		}
	}
}
