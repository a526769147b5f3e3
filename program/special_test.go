package program

import (
	"math"
	"slices"
	"testing"

	"plumb/tensor"
)

// TestSpecialsAreWhatTheySay fills a tensor of each dtype with edge values and
// looks for each of them, and for nothing else beside the range.
func TestSpecialsAreWhatTheySay(t *testing.T) {
	for _, d := range tensor.DTypes {
		for _, kind := range AllSpecials.Kinds() {
			f := Fill{Dist: Uniform, Lo: -1, Hi: 1, Key: 5, Special: kind}
			if !d.IsDifferentiable() {
				f.Dist, f.Lo, f.Hi = Integer, 0, 2
			}
			x := (&Input{DType: d, Shape: []int{4096}, Fill: f}).Materialize()
			f.Special = 0
			plain := (&Input{DType: d, Shape: []int{4096}, Fill: f}).Materialize()
			changed := 0
			for i := range x.Len() {
				if x.At(i) != plain.At(i) {
					changed++
				}
			}
			var possible []float64
			if d.IsDifferentiable() {
				possible = kind.reals(d, 0)
			}
			striking := len(possible) > 0 || d.IsInt() && kind == Extremes
			if mute := d == tensor.Bool || kind == Infs || kind == NaNs || kind == Subnormals; mute && !d.IsDifferentiable() && changed > 0 || striking && changed < x.Len()/8 {
				t.Errorf("%s %s: %d of %d elements changed, of %v", d, kind, changed, x.Len(), possible)
			}
			if d.IsDifferentiable() {
				for _, want := range possible {
					if !holds(x, want) && kind != Ties {
						t.Errorf("%s %s: no %v", d, kind, want)
					}
				}
			}
		}
	}
}

// holds reports whether a tensor has an element with exactly the bits of v.
func holds(x *tensor.Tensor, v float64) bool {
	for i := range x.Len() {
		got := real(x.At(i))
		if got == v && math.Signbit(got) == math.Signbit(v) || math.IsNaN(got) && math.IsNaN(v) {
			return true
		}
	}
	return false
}

func TestEdgesOfDTypes(t *testing.T) {
	for d, e := range edges {
		for _, c := range []struct {
			name      string
			v         float64
			subnormal bool
		}{{"least", e.least, true}, {"last subnormal", e.lastSubnormal, true}, {"normal", e.normal, false}, {"most", e.most, false}} {
			x := tensor.Scalar(d, complex(c.v, 0))
			if x.Float(0) != c.v {
				t.Errorf("%s: %s %v is rounded to %v", d, c.name, c.v, x.Float(0))
			}
			if (c.v < e.normal) != c.subnormal {
				t.Errorf("%s: %s %v beside the smallest normal %v", d, c.name, c.v, e.normal)
			}
		}
		if half := tensor.Scalar(d, complex(e.least/2, 0)); half.Float(0) != 0 && d != tensor.F64 {
			t.Errorf("%s: %v is not the least", d, e.least)
		}
		if over := tensor.Scalar(d, complex(e.most*1.01, 0)); !math.IsInf(over.Float(0), 1) {
			t.Errorf("%s: %v is not the most", d, e.most)
		}
	}
	want := []int64{math.MinInt16, math.MaxInt16, math.MinInt16 + 1, math.MaxInt16 - 1}
	if got := Extremes.integers(tensor.I16, 0); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Extremes.integers(tensor.I64, 0); got[0] != math.MinInt64 || got[1] != math.MaxInt64 {
		t.Error(got)
	}
	if got := Extremes.integers(tensor.U8, 0); got[0] != 0 || got[1] != 255 {
		t.Error(got)
	}
}

// TestSpecialsDoNotDependOnTheLength: element i follows from the key alone.
func TestSpecialsDoNotDependOnTheLength(t *testing.T) {
	in := Input{DType: tensor.F32, Fill: Fill{Dist: Uniform, Lo: -1, Hi: 1, Key: 11, Kinks: true, Special: AllSpecials}}
	in.Shape = []int{64}
	long := in.Materialize()
	in.Shape, in.Strides = []int{3, 5}, []int{2, 7}
	short := in.Materialize()
	for i := range short.Len() {
		if a, b := short.Float(i), long.Float(i); a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
			t.Errorf("element %d is %v and %v", i, a, b)
		}
	}
}
