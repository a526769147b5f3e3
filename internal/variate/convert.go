package variate

// Round rounds reals to float32; those above top become top.
func Round(dst []float32, src []float64, top float32) {
	for i := round(dst, src, top); i < len(dst); i++ {
		dst[i] = min(float32(src[i]), top)
	}
}

// Truncate drops the digits after the point of numbers within ±2³¹.
func Truncate(dst []int32, src []float32) {
	for i := truncate(dst, src); i < len(dst); i++ {
		dst[i] = int32(src[i])
	}
}

// Narrow8 keeps the lowest eight bits.
func Narrow8(dst []int8, src []int32) {
	for i := narrow8(dst, src); i < len(dst); i++ {
		dst[i] = int8(src[i])
	}
}

// Narrow16 keeps the lowest sixteen bits.
func Narrow16(dst []int16, src []int32) {
	for i := narrow16(dst, src); i < len(dst); i++ {
		dst[i] = int16(src[i])
	}
}

// Widen extends integers to 64 bits.
func Widen(dst []int64, src []int32) {
	for i := widen(dst, src); i < len(dst); i++ {
		dst[i] = int64(src[i])
	}
}
