package compare

import (
	"math"
	"testing"

	"plumb/tensor"
)

// spaced returns the elements in a storage with gaps.
func spaced(t *tensor.Tensor) *tensor.Tensor {
	s := tensor.NewStrided(t.DType(), t.Shape(), tensor.SpacedStrides(t.Shape(), 2))
	s.CopyFrom(t)
	return s
}

// TestDensePasses: passes over contiguous elements say what those by element say.
func TestDensePasses(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		want := tensor.Of(tensor.F64, []int{9}, []float64{1, -2, 0, inf, nan, 3, 1e-30, -inf, 5}).Convert(d)
		for at, v := range []float64{1.25, -2.5, 1, 7, 7, nan, 2e-30, inf, 5.5} {
			got := want.Clone()
			got.Set(at, complex(v, 0))
			if a, b := meanRel(want, got), meanRel(spaced(want), spaced(got)); a != b && (a == a || b == b) {
				t.Errorf("%s: mean relative error %v, by element %v", d, a, b)
			}
			value := want.Convert(tensor.F64)
			value.Set(at, complex(v, 0))
			for _, e := range []*tensor.Tensor{nil, tensor.Of(tensor.F64, []int{9}, []float64{0x1p21, 1, 0x1p60, 1, 1, 1, 1, 1, 0x1p24})} {
				b := &Bound{Value: value, Error: e, Unit: 0x1p-24}
				if dense, strided := b.Holds(want), b.Holds(spaced(want)); dense != strided {
					t.Errorf("%s: with %v for element %d the bound holds: %t, by element %t", d, v, at, dense, strided)
				}
			}
		}
	}
}
