package variate

import (
	"math"

	"golang.org/x/sys/cpu"
)

// useAVX2 is changed by tests only.
var useAVX2 = cpu.X86.HasAVX2

// whole is how many of n elements fill turns of a loop.
func whole(use bool, n int) int {
	if !use {
		return 0
	}
	return n &^ 7
}

func normals(dst []float32, words []uint64, signs uint32) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = words[n/2-1]
		normalsAVX2(&dst[0], &words[0], n, signs, quantile())
	}
	return n
}

func normals64(dst []float64, words []uint64, signs uint32) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = words[n-1]
		normals64AVX2(&dst[0], &words[0], n, signs, quantile())
	}
	return n
}

// uniforms leaves alone what 2⁻⁶⁴·width would round.
func uniforms(dst []float64, words []uint64, low, width, top float64) int {
	n := whole(useAVX2 && (width == 0 || math.Abs(width) >= 0x1p-900), len(dst))
	if n > 0 {
		_ = words[n-1]
		uniformsAVX2(&dst[0], &words[0], n, low, 0x1p-64*width, top)
	}
	return n
}

func integers(dst []int32, words []uint64, low, width float64) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = words[n-1]
		integersAVX2(&dst[0], &words[0], n, low, 0x1p-64*width)
	}
	return n
}

func round(dst []float32, src []float64, top float32) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = src[n-1]
		roundAVX2(&dst[0], &src[0], n, top)
	}
	return n
}

func truncate(dst []int32, src []float32) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = src[n-1]
		truncateAVX2(&dst[0], &src[0], n)
	}
	return n
}

func narrow8(dst []int8, src []int32) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = src[n-1]
		narrow8AVX2(&dst[0], &src[0], n)
	}
	return n
}

func narrow16(dst []int16, src []int32) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = src[n-1]
		narrow16AVX2(&dst[0], &src[0], n)
	}
	return n
}

func widen(dst []int64, src []int32) int {
	n := whole(useAVX2, len(dst))
	if n > 0 {
		_ = src[n-1]
		widenAVX2(&dst[0], &src[0], n)
	}
	return n
}
