package diopi

import (
	"slices"

	"plumb/tensor"
)

// summed is numpy's sum of all elements, which DIOPI compares where there is a
// parameter sorted: in the dtype of a float or complex tensor, pairwise (numpy's
// loops_utils.h.src), and in int64 of all others. Float16 is summed in float32
// and rounded after each buffer.
func summed(t *tensor.Tensor) *tensor.Tensor {
	t = t.Contiguous()
	n := t.Len()
	switch t.DType() {
	case tensor.F64:
		return tensor.Scalar(tensor.F64, complex(inBlocks(tensor.Data[float64](t)[:n], exactly), 0))
	case tensor.F32:
		return tensor.Scalar(tensor.F32, complex(float64(inBlocks(tensor.Data[float32](t)[:n], exactly)), 0))
	case tensor.F16:
		half := func(v float32) float32 { return tensor.ToFloat16(v).Float32() }
		return tensor.Scalar(tensor.F16, complex(float64(inBlocks(tensor.Data[float32](t.Convert(tensor.F32))[:n], half)), 0))
	case tensor.C128:
		return tensor.Scalar(tensor.C128, complexSum[float64](t))
	case tensor.C64:
		return tensor.Scalar(tensor.C64, complexSum[float32](t))
	case tensor.BF16: // numpy has none
		return tensor.Scalar(tensor.F64, complex(inBlocks(tensor.Data[float64](t.Convert(tensor.F64))[:n], exactly), 0))
	}
	var sum int64
	for _, v := range tensor.Data[int64](t.Convert(tensor.I64))[:n] {
		sum += v
	}
	out := tensor.New(tensor.I64)
	tensor.Data[int64](out)[0] = sum
	return out
}

// The numbers of numpy's summation: how many sums run side by side, from how
// many elements on two halves are summed, and how many a buffer holds.
const (
	sideBySide = 8
	pairBlock  = 128
	buffer     = 8192
)

func exactly[T float](v T) T { return v }

// inBlocks adds the pairwise sums of what a buffer holds, rounding each sum.
func inBlocks[T float](a []T, round func(T) T) (sum T) {
	for block := range slices.Chunk(a, buffer) {
		sum = round(sum + pairwise(block))
	}
	return sum
}

type float interface{ float32 | float64 }

// pairwise is numpy's pairwise sum.
func pairwise[T float](a []T) T {
	var sum T
	switch n := len(a); {
	case n < sideBySide:
		for _, v := range a {
			sum += v
		}
	case n <= pairBlock:
		r := strided(a, 1)
		sum = r[0]
		for _, v := range a[n-n%sideBySide:] {
			sum += v
		}
	default:
		half := n / 2
		half -= half % sideBySide
		sum = pairwise(a[:half]) + pairwise(a[half:])
	}
	return sum
}

// complexPairwise is that of complex numbers, as their parts one after the other.
func complexPairwise[T float](a []T) (re, im T) {
	switch n := len(a); {
	case n < sideBySide:
		for i := 0; i < n; i += 2 {
			re, im = re+a[i], im+a[i+1]
		}
	case n <= pairBlock:
		r := strided(a, 2)
		re, im = r[0], r[1]
		for i := n - n%sideBySide; i < n; i += 2 {
			re, im = re+a[i], im+a[i+1]
		}
	default:
		half := n / 2
		half -= half % sideBySide
		re, im = complexPairwise(a[:half])
		more, also := complexPairwise(a[half:])
		re, im = re+more, im+also
	}
	return re, im
}

// strided sums every eighth element and adds the eight sums in pairs until as
// many are left as a number has parts.
func strided[T float](a []T, parts int) []T {
	r := make([]T, sideBySide)
	copy(r, a)
	for i := sideBySide; i < len(a)-len(a)%sideBySide; i++ {
		r[i%sideBySide] += a[i]
	}
	for len(r) > parts {
		for i := 0; i < len(r); i += 2 * parts {
			for k := range parts {
				r[i/2+k] = r[i+k] + r[i+parts+k]
			}
		}
		r = r[:len(r)/2]
	}
	return r
}

func complexSum[T float](t *tensor.Tensor) complex128 {
	parts := make([]T, 0, 2*t.Len())
	for i := range t.Len() {
		v := t.At(i)
		parts = append(parts, T(real(v)), T(imag(v)))
	}
	var re, im T
	for block := range slices.Chunk(parts, 2*buffer) {
		more, also := complexPairwise(block)
		re, im = re+more, im+also
	}
	return complex(float64(re), float64(im))
}
