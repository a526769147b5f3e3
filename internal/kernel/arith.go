package kernel

import (
	"math"

	"plumb/tensor"
)

// MapTernary is Map1 for three operands of one lane type.
func MapTernary[D, T Lane](out, a, b, c *tensor.Tensor, f func(dst []D, a, b, c []T)) {
	p, ts := mapPlan(out, a, b, c)
	w, ra := newWriter[D](p, out), newReader[T](p, 1, ts[0])
	rb, rc := newReader[T](p, 2, ts[1]), newReader[T](p, 3, ts[2])
	Parallel(p.total, mapGrain, func(lo, hi int) {
		w, ra, rb, rc := w, ra, rb, rc
		for lo < hi {
			n := p.block(lo, hi)
			f(w.block(lo, n), ra.block(lo, n), rb.block(lo, n), rc.block(lo, n))
			w.flush(lo, n)
			lo += n
		}
	})
}

// Zip makes a block function of a function of two numbers, computed in float64.
func Zip[T float](f func(x, y float64) float64) func(dst, a, b []T) {
	return func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = T(f(float64(a[i]), float64(b[i])))
		}
	}
}

// ZipInt makes a block function of a function of two integers.
func ZipInt(f func(x, y int64) int64) func(dst, a, b []int64) {
	return func(dst, a, b []int64) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
}

// Minimum sets dst to the smaller of a and b; NaN if either is NaN.
func Minimum[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		dst[i] = pick(x != x, x, pick(x < y, x, y))
	}
}

// MinimumInt is Minimum of integers.
func MinimumInt(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if x < y {
			y = x
		}
		dst[i] = y
	}
}

// Fmax sets dst to the larger of a and b; a NaN loses to a number.
func Fmax[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		dst[i] = pick(y != y, x, pick(x > y, x, y))
	}
}

// Fmin sets dst to the smaller of a and b; a NaN loses to a number.
func Fmin[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		dst[i] = pick(y != y, x, pick(x < y, x, y))
	}
}

// FmodInt returns the remainder of x / y rounded towards zero; y is not 0.
func FmodInt(x, y int64) int64 { return x % y }

// Remainder returns the remainder of x / y rounded down, which has the sign of y.
func Remainder(x, y float64) float64 {
	mod := math.Mod(x, y)
	if mod != 0 && (y < 0) != (mod < 0) {
		mod += y
	}
	return mod
}

// RemainderInt is Remainder of integers; y is not 0.
func RemainderInt(x, y int64) int64 {
	mod := x % y
	if mod != 0 && (y < 0) != (mod < 0) {
		mod += y
	}
	return mod
}

// Logaddexp returns log(e^x + e^y).
func Logaddexp(x, y float64) float64 {
	if math.IsInf(x, 0) && x == y {
		return x
	}
	return larger(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
}

// Logaddexp2 returns log2(2^x + 2^y).
func Logaddexp2(x, y float64) float64 {
	if math.IsInf(x, 0) && x == y {
		return x
	}
	return larger(x, y) + math.Log1p(math.Exp2(-math.Abs(x-y)))*(1/math.Ln2)
}

func larger(x, y float64) float64 {
	if x > y {
		return x
	}
	return y
}

// Xlogy returns x·log y, and 0 for x = 0 unless y is NaN.
func Xlogy(x, y float64) float64 {
	switch {
	case math.IsNaN(y):
		return y
	case x == 0:
		return 0
	}
	return x * Log(y)
}

// Xlog1py returns x·log(1 + y), and 0 for x = 0 unless y is NaN.
func Xlog1py(x, y float64) float64 {
	switch {
	case math.IsNaN(y):
		return y
	case x == 0:
		return 0
	}
	return x * math.Log1p(y)
}

// NextAfter32 sets dst to the number beside a on the way to b, and to b where
// they are equal, zeros of either sign too, as C's nextafter does.
func NextAfter32(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, x := range a {
		y := b[i]
		if x != y {
			y = math.Nextafter32(x, y)
		}
		dst[i] = y
	}
}

// NextAfter64 is NextAfter32 in float64.
func NextAfter64(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, x := range a {
		y := b[i]
		if x != y {
			y = math.Nextafter(x, y)
		}
		dst[i] = y
	}
}

// NextAfterBF16 is NextAfter32 for numbers of bfloat16, on bfloat16's grid.
func NextAfterBF16(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	const step = 1 << 16 // the last bit of a bfloat16 in a float32
	for i, x := range a {
		y := b[i]
		bits := math.Float32bits(x)
		switch {
		case x != x || y != y:
			dst[i] = x + y
			continue
		case x == y:
			dst[i] = y
			continue
		case x == 0:
			bits = step | math.Float32bits(y)&(1<<31)
		case (y > x) == (x > 0):
			bits += step
		default:
			bits -= step
		}
		dst[i] = math.Float32frombits(bits)
	}
}

// Heaviside sets dst to 1 where a > 0, to b where a = 0 and to 0 elsewhere,
// for NaN too.
func Heaviside[T realLane](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		v := b[i]
		if a[i] != 0 {
			v = 0
			if a[i] > 0 {
				v = 1
			}
		}
		dst[i] = v
	}
}

// Gcd returns the greatest common divisor of |x| and |y|.
func Gcd(x, y int64) int64 {
	x, y = max(x, -x), max(y, -y)
	for x != 0 {
		x, y = y%x, x
	}
	return y
}

// Lcm returns the least common multiple of |x| and |y|.
func Lcm(x, y int64) int64 {
	g := Gcd(x, y)
	if g == 0 {
		return 0
	}
	m := x / g * y
	return max(m, -m)
}

// NanToNum makes dst = a with NaN and the infinities replaced.
func NanToNum[T float](nan, posinf, neginf T) func(dst, a []T) {
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			v := a[i]
			switch {
			case v != v:
				v = nan
			case float64(v) == math.Inf(1):
				v = posinf
			case float64(v) == math.Inf(-1):
				v = neginf
			}
			dst[i] = v
		}
	}
}

// RoundDecimals makes dst = a rounded to a number of decimals, ties to even:
// a is scaled by a power of ten, every step rounded by step, as PyTorch does.
func RoundDecimals[T float](decimals int, step func(T) T) func(dst, a []T) {
	ten := step(T(math.Pow10(max(decimals, -decimals))))
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			if decimals < 0 {
				dst[i] = step(T(math.RoundToEven(float64(step(a[i]/ten))))) * ten
			} else {
				dst[i] = step(T(math.RoundToEven(float64(step(a[i]*ten))))) / ten
			}
		}
	}
}

// Addcmul makes dst = a + value·b·c.
func Addcmul[T int64 | complex128](value T) func(dst, a, b, c []T) {
	return func(dst, a, b, c []T) {
		a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
		for i := range dst {
			dst[i] = a[i] + value*b[i]*c[i]
		}
	}
}

// AddcmulFloat is Addcmul with value·b rounded to T, as by PyTorch, and the rest
// rounded once.
func AddcmulFloat[T float](value float64) func(dst, a, b, c []T) {
	v := T(value)
	return func(dst, a, b, c []T) {
		a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
		for i := range dst {
			dst[i] = T(math.FMA(float64(T(v*b[i])), float64(c[i]), float64(a[i])))
		}
	}
}

// Addcdiv makes dst = a + value·b/c with value·b rounded to T, as by PyTorch,
// and the rest in float64.
func Addcdiv[T float](value float64) func(dst, a, b, c []T) {
	v := T(value)
	return func(dst, a, b, c []T) {
		a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
		for i := range dst {
			dst[i] = T(float64(a[i]) + float64(T(v*b[i]))/float64(c[i]))
		}
	}
}

// AddcdivComplex makes dst = a + value·b/c.
func AddcdivComplex(value complex128) func(dst, a, b, c []complex128) {
	return func(dst, a, b, c []complex128) {
		a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
		for i := range dst {
			dst[i] = a[i] + divComplex(value*b[i], c[i])
		}
	}
}

// Lerp sets dst to a + c·(b - a).
func Lerp[T float](dst, a, b, c []T) {
	a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
	for i := range dst {
		dst[i] = T(Between(float64(a[i]), float64(b[i]), float64(c[i])))
	}
}

// Between returns a + w·(b - a), counted from b for w ≥ ½.
func Between(a, b, w float64) float64 {
	d := b - a
	if w < 0.5 {
		return a + w*d
	}
	return b - d*(1-w)
}

// LerpComplex is Lerp; a weight below 1/2 in modulus counts from a.
func LerpComplex(dst, a, b, c []complex128) {
	a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
	for i := range dst {
		d, w := b[i]-a[i], c[i]
		if real(w)*real(w)+imag(w)*imag(w) < 0.25 {
			dst[i] = a[i] + w*d
		} else {
			dst[i] = b[i] - d*(1-w)
		}
	}
}

// ClampTo sets dst to min(max(a, lo), hi); NaN if any is NaN.
func ClampTo[T float](dst, a, lo, hi []T) {
	Maximum(dst, a, lo)
	for i := range dst {
		v, h := dst[i], hi[i]
		dst[i] = pick(h != h, h, pick(h < v, h, v))
	}
}

// ClampToInt is ClampTo of integers.
func ClampToInt(dst, a, lo, hi []int64) {
	MaximumInt(dst, a, lo)
	for i := range dst {
		v, h := dst[i], hi[i]
		if h < v {
			v = h
		}
		dst[i] = v
	}
}
