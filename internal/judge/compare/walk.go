package compare

import (
	"math"
	"math/cmplx"

	"plumb/tensor"
)

// Any reports whether any element of a tensor is of a kind.
func Any(t *tensor.Tensor, is func(complex128) bool) bool {
	for i := range t.Len() {
		if is(t.At(i)) {
			return true
		}
	}
	return false
}

// Finite reports whether a number is neither NaN nor infinite, in both parts.
func Finite(v complex128) bool { return finite(v) }

// ends are magnitudes near the largest number of a dtype.
var ends = map[tensor.DType]float64{tensor.F16: 0x1p14, tensor.BF16: 0x1p120, tensor.F32: 0x1p120, tensor.F64: 0x1p1016}

// NearEnd reports whether an element of a tensor is finite and comes near the largest
// number of its dtype: what is summed or multiplied on the way there may pass it.
func NearEnd(t *tensor.Tensor) bool {
	end, ok := ends[t.DType()]
	return ok && Any(t, func(v complex128) bool { z := cmplx.Abs(v); return z > end && !math.IsInf(z, 1) })
}

// Largest returns the largest finite magnitude among the elements.
func Largest(t *tensor.Tensor) float64 {
	largest := 0.0
	Any(t, func(v complex128) bool {
		if z := cmplx.Abs(v); z > largest && finite(v) {
			largest = z
		}
		return false
	})
	return largest
}
