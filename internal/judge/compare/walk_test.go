package compare

import (
	"math"
	"math/cmplx"
	"testing"

	"plumb/tensor"
)

// TestElementWalks: of strided tensors too, whose gaps are no elements.
func TestElementWalks(t *testing.T) {
	of := func(dt tensor.DType, values ...float64) *tensor.Tensor {
		x := tensor.New(dt, len(values))
		for i, v := range values {
			x.Set(i, complex(v, 0))
		}
		return x
	}
	plain, odd := of(tensor.F32, 1, -3, 2), of(tensor.F32, 1, math.NaN(), math.Inf(1))
	if Any(plain, cmplx.IsNaN) || !Any(odd, cmplx.IsNaN) || Any(of(tensor.F32), cmplx.IsNaN) {
		t.Error("NaN is where there is none, or is not where it is")
	}
	for v, want := range map[complex128]bool{1: true, complex(0, math.Inf(1)): false, complex(math.NaN(), 0): false} {
		if Finite(v) != want {
			t.Errorf("%v is finite: %v", v, !want)
		}
	}
	if got := Largest(plain); got != 3 {
		t.Errorf("the largest of 1, -3, 2 is %g", got)
	}
	if got := Largest(of(tensor.F32, math.NaN(), -2, math.Inf(-1))); got != 2 {
		t.Errorf("the largest beside NaN and an infinity is %g", got)
	}
	for _, c := range []struct {
		t    *tensor.Tensor
		want bool
	}{
		{of(tensor.F16, 1<<13), false}, {of(tensor.F16, -1<<15), true}, {of(tensor.F16, math.Inf(1)), false},
		{of(tensor.F32, 1<<15), false}, {of(tensor.F32, 1e38), true}, {of(tensor.F64, 1e38), false}, {of(tensor.I64, 1<<62), false},
	} {
		if NearEnd(c.t) != c.want {
			t.Errorf("%s %v near its end: %v", c.t.DType(), c.t.At(0), !c.want)
		}
	}
}
