package global

import (
	"math"

	"plumb/tensor"
)

var negativeZero = math.Copysign(0, -1)

// fill sets every element.
func fill(t *tensor.Tensor, v complex128) {
	for i := range t.Len() {
		t.Set(i, v)
	}
}

// add adds x to sum, element by element, rounded as the dtype rounds. A sum of
// bools is whether one of them is true.
func add(sum, x *tensor.Tensor) {
	if sum.IsContiguous() {
		x = x.Contiguous()
		switch sum.DType() {
		case tensor.F32:
			addTo(tensor.Data[float32](sum), tensor.Data[float32](x)[:x.Len()])
			return
		case tensor.F64:
			addTo(tensor.Data[float64](sum), tensor.Data[float64](x)[:x.Len()])
			return
		}
	}
	for i := range sum.Len() {
		switch d := sum.DType(); {
		case d == tensor.Bool:
			sum.SetInt(i, sum.Int(i)|x.Int(i))
		case d.IsInt():
			sum.SetInt(i, sum.Int(i)+x.Int(i))
		default:
			sum.Set(i, sum.At(i)+x.At(i))
		}
	}
}

func addTo[T float32 | float64](sum, x []T) {
	for i, v := range x {
		sum[i] += v
	}
}
