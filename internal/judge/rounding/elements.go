package rounding

import (
	"math"
	"slices"

	"plumb/tensor"
)

// reals returns the elements of real numbers in order.
func reals(t *tensor.Tensor) []float64 {
	if t.DType() != tensor.F64 {
		t = t.Convert(tensor.F64)
	}
	return tensor.Data[float64](t.Contiguous())[:t.Len()]
}

// absolute returns |t| in float64, contiguous.
func absolute(t *tensor.Tensor) *tensor.Tensor {
	m := tensor.New(tensor.F64, t.Shape()...)
	data := tensor.Data[float64](m)
	if t.DType() == tensor.F64 {
		for i, v := range reals(t) {
			data[i] = math.Abs(v)
		}
		return m
	}
	for i := range data {
		v := t.At(i)
		data[i] = math.Hypot(real(v), imag(v))
	}
	return m
}

func largest(e *tensor.Tensor) float64 {
	m := 0.0
	for _, v := range reals(e) {
		m = max(m, v)
	}
	return m
}

func addScaled(x, e *tensor.Tensor, by float64) {
	data, errs := tensor.Data[float64](x)[:x.Len()], reals(e)
	for i := range data {
		data[i] += by * errs[i]
	}
}

func below(ts []*tensor.Tensor, limit float64) bool {
	for _, t := range ts {
		if slices.ContainsFunc(tensor.Data[float64](t)[:t.Len()], func(m float64) bool { return !(m <= limit) }) {
			return false
		}
	}
	return true
}
