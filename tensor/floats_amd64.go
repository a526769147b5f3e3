package tensor

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var (
	useAVX2 = cpu.X86.HasAVX2
	useF16C = cpu.X86.HasAVX2 && cpu.X86.HasF16C
)

// The loops return how many elements they have converted: whole turns, of src's
// length, which dst has too.

func fromFloat16s(dst []float32, src []Float16) int {
	n := len(src) &^ 7
	if !useF16C || n == 0 {
		return 0
	}
	fromFloat16AVX2(&dst[0], (*uint16)(unsafe.SliceData(src)), n)
	return n
}

func toFloat16s(dst []Float16, src []float32) int {
	n := len(src) &^ 7
	if !useF16C || n == 0 {
		return 0
	}
	toFloat16AVX2((*uint16)(unsafe.SliceData(dst)), &src[0], n)
	return n
}

func fromBFloat16s(dst []float32, src []BFloat16) int {
	n := len(src) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	fromBFloat16AVX2(&dst[0], (*uint16)(unsafe.SliceData(src)), n)
	return n
}

func toBFloat16s(dst []BFloat16, src []float32) int {
	n := len(src) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	toBFloat16AVX2((*uint16)(unsafe.SliceData(dst)), &src[0], n)
	return n
}

func singles(dst []float32, src []float64) int {
	n := len(src) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	_ = dst[n-1]
	singleAVX2(&dst[0], &src[0], n)
	return n
}

func doubles(dst []float64, src []float32) int {
	n := len(src) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	_ = dst[n-1]
	doubleAVX2(&dst[0], &src[0], n)
	return n
}
