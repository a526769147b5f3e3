package kernel

import (
	"math"
	"math/cmplx"
)

type number interface {
	float32 | float64 | int64 | complex128
}

type float interface{ float32 | float64 }

// Add sets dst to a + b.
func Add[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// AddScaled32 makes dst = a + alpha·b with one rounding.
func AddScaled32(alpha float32) func(dst, a, b []float32) {
	k := float64(alpha)
	return func(dst, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = float32(float64(a[i]) + k*float64(b[i]))
		}
	}
}

// AddScaledHalf makes dst = a + alpha·b with every step rounded to a half
// type, as PyTorch computes it.
func AddScaledHalf(alpha float32, round func(float32) float32) func(dst, a, b []float32) {
	k := round(alpha)
	return func(dst, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] + round(k*b[i])
		}
	}
}

// AddScaled64 makes dst = a + alpha·b with one rounding.
func AddScaled64(alpha float64) func(dst, a, b []float64) {
	return func(dst, a, b []float64) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = math.FMA(alpha, b[i], a[i])
		}
	}
}

// AddScaled makes dst = a + alpha·b.
func AddScaled[T int64 | complex128](alpha T) func(dst, a, b []T) {
	return func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] + alpha*b[i]
		}
	}
}

// Sub sets dst to a - b.
func Sub[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

// Mul sets dst to a·b.
func Mul[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// Div sets dst to a / b.
func Div[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// DivComplex sets dst to a / b.
func DivComplex(dst, a, b []complex128) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = divComplex(a[i], b[i])
	}
}

// divComplex is a·conj(b) / |b|² with b scaled by its larger part, as in
// PyTorch's vectorised division: a zero or infinite divisor gives NaN.
func divComplex(a, b complex128) complex128 {
	scale := max(math.Abs(real(b)), math.Abs(imag(b)))
	c, d := real(b)/scale, imag(b)/scale
	norm := (c*c + d*d) * scale
	return complex((real(a)*c+imag(a)*d)/norm, (imag(a)*c-real(a)*d)/norm)
}

// DivTrunc sets dst to a / b rounded towards zero.
func DivTrunc[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Trunc(float64(a[i] / b[i])))
	}
}

// DivFloor sets dst to a / b rounded down, by way of the exact remainder as
// Python does.
func DivFloor[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = floorDiv(a[i], b[i])
	}
}

func floorDiv[T float](a, b T) T {
	if b == 0 {
		return a / b
	}
	mod := T(math.Mod(float64(a), float64(b)))
	div := (a - mod) / b
	if mod != 0 && (b < 0) != (mod < 0) {
		div--
	}
	if div == 0 {
		return T(math.Copysign(0, float64(a/b)))
	}
	floor := T(math.Floor(float64(div)))
	if div-floor > 0.5 {
		floor++
	}
	return floor
}

// DivTruncInt sets dst to a / b rounded towards zero; no b is 0.
func DivTruncInt(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// DivFloorInt sets dst to a / b rounded down; no b is 0.
func DivFloorInt(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		q := a[i] / b[i]
		if a[i]%b[i] != 0 && (a[i] < 0) != (b[i] < 0) {
			q--
		}
		dst[i] = q
	}
}

// PowInt sets dst to a raised to b with wrap-around. For a negative b only the
// bases 1 and -1 give something else than 0.
func PowInt(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = powInt(a[i], b[i])
	}
}

func powInt(base, exp int64) int64 {
	if exp < 0 {
		switch {
		case base == 1 || base == -1 && exp%2 == 0:
			return 1
		case base == -1:
			return -1
		}
		return 0
	}
	result := int64(1)
	for ; exp > 0; exp >>= 1 {
		if exp&1 == 1 {
			result *= base
		}
		base *= base
	}
	return result
}

// PowComplex sets dst to a raised to b.
func PowComplex(dst, a, b []complex128) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = powComplex(a[i], b[i])
	}
}

func powComplex(a, b complex128) complex128 {
	if a == 0 {
		return cmplx.Exp(b * cmplx.Log(a))
	}
	return cmplx.Pow(a, b)
}

// PowConst returns a block function for a fixed exponent that the hardware
// computes directly, as PyTorch does: 2, 3, 0.5 and their negatives, -1. It is nil for others.
func PowConst[T float](exponent float64) func(dst, a []T) {
	var f func(x T) T
	switch exponent {
	case 2:
		f = func(x T) T { return x * x }
	case 3:
		f = func(x T) T { return x * x * x }
	case -1:
		f = func(x T) T { return 1 / x }
	case -2:
		f = func(x T) T { return 1 / (x * x) }
	case 0.5:
		f = func(x T) T { return T(math.Sqrt(float64(x))) }
	case -0.5:
		f = func(x T) T { return T(1 / math.Sqrt(float64(x))) }
	default:
		return nil
	}
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i])
		}
	}
}

// Maximum sets dst to the larger of a and b; NaN if either is NaN.
func Maximum[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		dst[i] = pick(x != x, x, pick(x > y, x, y))
	}
}

// MaximumInt is Maximum of integers.
func MaximumInt(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if x > y {
			y = x
		}
		dst[i] = y
	}
}

// Eq sets dst to a = b.
func Eq[T number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] == b[i])
	}
}

// Ne sets dst to a ≠ b.
func Ne[T number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] != b[i])
	}
}

// Gt sets dst to a > b.
func Gt[T realLane](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] > b[i])
	}
}

// Ge sets dst to a ≥ b.
func Ge[T realLane](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] >= b[i])
	}
}

// Lt sets dst to a < b.
func Lt[T realLane](dst []uint8, a, b []T) { Gt(dst, b, a) }

// Le sets dst to a ≤ b.
func Le[T realLane](dst []uint8, a, b []T) { Ge(dst, b, a) }

// Where sets dst to a where c is non-zero and to b elsewhere.
func Where[T number](dst []T, c []uint8, a, b []T) {
	switch dst := any(dst).(type) {
	case []float32:
		whereFloat(dst, c, any(a).([]float32), any(b).([]float32))
		return
	case []float64:
		whereFloat(dst, c, any(a).([]float64), any(b).([]float64))
		return
	}
	c, a, b = c[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if c[i] != 0 {
			y = x
		}
		dst[i] = y
	}
}

func whereFloat[T float](dst []T, c []uint8, a, b []T) {
	c, a, b = c[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = pick(c[i] != 0, a[i], b[i])
	}
}

// Neg sets dst to -a.
func Neg[T number](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = -a[i]
	}
}

func abs32(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(math.Float32bits(a[i]) &^ (1 << 31))
	}
}

// Abs64 sets dst to |a|.
func Abs64(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Abs(a[i])
	}
}

// AbsInt sets dst to |a|.
func AbsInt(dst, a []int64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], -a[i])
	}
}

// AbsComplex sets dst to the modulus of a.
func AbsComplex(dst []float64, a []complex128) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Hypot(real(a[i]), imag(a[i]))
	}
}

// AngleComplex sets dst to the argument of a.
func AngleComplex(dst []float64, a []complex128) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.Atan2(imag(a[i]), real(a[i]))
	}
}

// AngleReal sets dst to the argument of a as a complex number: 0, or π below 0.
func AngleReal[T float32 | float64](dst, a []T) {
	a = a[:len(dst)]
	for i, v := range a {
		switch {
		case v < 0:
			dst[i] = math.Pi
		case v != v:
			dst[i] = v
		default:
			dst[i] = 0
		}
	}
}

// Sign sets dst to the sign of a: -1, 0 or 1, and 0 for NaN.
func Sign[T realLane](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(int8(truth(a[i] > 0)) - int8(truth(a[i] < 0)))
	}
}

// Relu sets dst to max(a, 0); NaN stays NaN.
func Relu[T float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = pick(a[i] < 0, 0, a[i])
	}
}

// ReluInt is Relu of integers.
func ReluInt(dst, a []int64) {
	a = a[:len(dst)]
	for i := range dst {
		v := a[i]
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

// LeakyRelu makes dst = a where a > 0 and slope·a elsewhere.
func LeakyRelu[T float](slope T) func(dst, a []T) {
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = pick(a[i] > 0, a[i], a[i]*slope)
		}
	}
}

// Sqrt sets dst to the square root of a.
func Sqrt[T float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Sqrt(float64(a[i])))
	}
}

// Copy sets dst to a.
func Copy[T number](dst, a []T) { copy(dst, a) }

// PowConstComplex is PowConst for complex elements: 2, 3, 0.5 and -1, -2.
func PowConstComplex(exponent float64) func(dst, a []complex128) {
	switch exponent {
	case 2:
		return EachComplex(func(z complex128) complex128 { return z * z })
	case 3:
		return EachComplex(func(z complex128) complex128 { return z * z * z })
	case -1:
		return EachComplex(func(z complex128) complex128 { return divComplex(1, z) })
	case -2:
		return EachComplex(func(z complex128) complex128 { return divComplex(1, z*z) })
	case 0.5:
		return EachComplex(cmplx.Sqrt)
	}
	return nil
}
