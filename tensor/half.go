package tensor

import "math"

// Float16 holds the bits of an IEEE 754 binary16 number.
type Float16 uint16

// BFloat16 holds the bits of a bfloat16 number: the upper half of a binary32.
type BFloat16 uint16

// Float32 returns the exact value of h.
func (h Float16) Float32() float32 {
	sign := uint32(h>>15) << 31
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h) & 0x3ff
	switch {
	case exp == 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
	}
	return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
}

// Float32 returns the exact value of b.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// ToFloat16 rounds f to the nearest Float16, ties to even; values beyond the
// range become infinities and a NaN becomes the quiet NaN of its sign, as in PyTorch.
func ToFloat16(f float32) Float16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	abs := bits &^ (1 << 31)
	switch {
	case abs > 0xff<<23:
		return Float16(sign | 0x7e00)
	case abs >= 0x477ff000: // 65520 and above round to infinity
		return Float16(sign | 0x7c00)
	case abs < 0x38800000: // below 2^-14: subnormal; the addition rounds to 2^-24 steps
		shifted := math.Float32bits(math.Float32frombits(abs) + 0.5)
		return Float16(sign | uint16(shifted-math.Float32bits(0.5)))
	}
	abs += 0xfff + abs>>13&1
	return Float16(sign | uint16(abs>>13-(127-15)<<10))
}

// ToBFloat16 rounds f to the nearest BFloat16, ties to even; every NaN becomes
// the quiet NaN 0x7fc0, as in PyTorch.
func ToBFloat16(f float32) BFloat16 {
	bits := math.Float32bits(f)
	if f != f {
		return 0x7fc0
	}
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float64ToFloat16 rounds f to Float16 through float32, as PyTorch's
// conversion from double does.
func Float64ToFloat16(f float64) Float16 { return ToFloat16(float32(f)) }

// Float64ToBFloat16 rounds f to BFloat16 through float32, as PyTorch's
// conversion from double does.
func Float64ToBFloat16(f float64) BFloat16 { return ToBFloat16(float32(f)) }
