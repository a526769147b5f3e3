package kernel

import "math"

// And sets dst to whether a and b are both non-zero.
func And[T number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] != 0 && b[i] != 0)
	}
}

// Or sets dst to whether a or b is non-zero.
func Or[T number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] != 0 || b[i] != 0)
	}
}

// Xor sets dst to whether exactly one of a and b is non-zero.
func Xor[T number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth((a[i] != 0) != (b[i] != 0))
	}
}

// BitAnd sets dst to the bits that a and b share.
func BitAnd(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

// BitOr sets dst to the bits of a and b.
func BitOr(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

// BitXor sets dst to the bits in which a and b differ.
func BitXor(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] ^ b[i]
	}
}

// BitNot sets dst to the complement of a.
func BitNot(dst, a []int64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = ^a[i]
	}
}

// ShiftLeft makes dst = a·2^b in integers of the width; 0 for a b beyond it.
func ShiftLeft(width int64) func(dst, a, b []int64) {
	return func(dst, a, b []int64) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			var shifted int64
			if b[i] >= 0 && b[i] < width {
				shifted = a[i] << uint64(b[i])
			}
			dst[i] = shifted
		}
	}
}

// ShiftRight makes dst = ⌊a / 2^b⌋ in integers of the width; a b beyond it
// leaves the sign.
func ShiftRight(width int64) func(dst, a, b []int64) {
	return func(dst, a, b []int64) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			n := b[i]
			if n < 0 || n >= width {
				n = 63
			}
			dst[i] = a[i] >> uint64(n)
		}
	}
}

// Closeness is the rule of isclose: |a - b| ≤ Abs + |Rel·b|, or a = b. Finite
// differences only; with EqualNaN, two NaN are close.
type Closeness struct {
	Rel, Abs float64
	EqualNaN bool
}

// Close32 returns the rule in float32, every step rounded by round.
func (c Closeness) Close32(round func(float32) float32) func(dst []uint8, a, b []float32) {
	rel, abs := round(float32(c.Rel)), round(float32(c.Abs))
	exact := c.Rel == 0 && c.Abs == 0
	return func(dst []uint8, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			x, y := a[i], b[i]
			allowed := round(abs + float32(math.Abs(float64(round(rel*y)))))
			off := float32(math.Abs(float64(round(x - y))))
			within := !exact && off <= allowed && !math.IsInf(float64(off), 0)
			dst[i] = truth(x == y || within || c.EqualNaN && x != x && y != y)
		}
	}
}

// Close64 returns the rule in float64.
func (c Closeness) Close64(dst []uint8, a, b []float64) {
	exact := c.Rel == 0 && c.Abs == 0
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		off := math.Abs(x - y)
		within := !exact && off <= c.Abs+math.Abs(c.Rel*y) && !math.IsInf(off, 0)
		dst[i] = truth(x == y || within || c.EqualNaN && x != x && y != y)
	}
}

// CloseComplex returns the rule for complex numbers; one is NaN when a part is.
func (c Closeness) CloseComplex(dst []uint8, a, b []complex128) {
	exact := c.Rel == 0 && c.Abs == 0
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		off := math.Hypot(real(x-y), imag(x-y))
		within := !exact && off <= c.Abs+c.Rel*math.Hypot(real(y), imag(y)) && !math.IsInf(off, 0)
		dst[i] = truth(x == y || within || c.EqualNaN && partNaN(x) && partNaN(y))
	}
}

func partNaN(z complex128) bool { return math.IsNaN(real(z)) || math.IsNaN(imag(z)) }
