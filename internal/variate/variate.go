// Package variate turns random words into numbers of a law, and stores those in
// the element types of tensors. Every function works on a block that fits into
// the nearest cache, in vector instructions where the machine has them; the
// bits are the same everywhere.
package variate

//go:generate go run -C ../asmgen ./variate -out ../variate/variate_amd64.s -stubs ../variate/variate_stub_amd64.go -pkg variate

import "math"

// Uniforms makes a real low + u·(high-low) of each word, whose 53 highest bits
// are the digits of u in [0, 1): of [low, high), or low where they are equal.
func Uniforms(dst []float64, words []uint64, low, high float64) {
	width, top := high-low, high
	if !(high > low) {
		top = math.NaN()
	}
	for i := uniforms(dst, words, low, width, top); i < len(dst); i++ {
		v := low + scaled(words[i], width)
		if v >= top {
			v = low
		}
		dst[i] = v
	}
}

// Integers makes an integer low + ⌊u·(high-low)⌋ of each word, whose 53 highest
// bits are the digits of u in [0, 1). Low and high are whole, low is less, and
// both lie within ±2³¹.
func Integers(dst []int32, words []uint64, low, high float64) {
	for i := integers(dst, words, low, high-low); i < len(dst); i++ {
		dst[i] = int32(int64(low + math.Floor(scaled(words[i], high-low))))
	}
}

func scaled(word uint64, width float64) float64 {
	return float64(float64(int64(word>>11)) * 0x1p-53 * width)
}
