package kernel

import (
	"math"
	"math/cmplx"
)

// Each32 makes a float32 block function of a function of one float64: the
// result is rounded once.
func Each32(f func(float64) float64) func(dst, a []float32) {
	return viaFloat64(func(x []float64) {
		for i, v := range x {
			x[i] = f(v)
		}
	})
}

// Atan2 returns the angle of (x, y), of y's sign also where y / x underflows.
func Atan2(y, x float64) float64 { return math.Copysign(math.Atan2(y, x), y) }

// Asin returns the arc sine of x. 1 - x² is factored, so that it keeps its
// digits near 1.
func Asin(x float64) float64 {
	if math.Abs(x) > 1 {
		return math.NaN()
	}
	return math.Atan2(x, math.Sqrt((1-x)*(1+x)))
}

// Acos returns the arc cosine of x, by the half angle.
func Acos(x float64) float64 {
	if math.Abs(x) > 1 {
		return math.NaN()
	}
	return 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x))
}

// Log2 returns the binary logarithm of x. math.Log2 adds the exponent to the
// logarithm of the fraction; near 1 the two cancel.
func Log2(x float64) float64 {
	if x > 0.5 && x < 2 {
		return math.Log(x) * (1 / math.Ln2)
	}
	return math.Log2(x)
}

// Log returns the natural logarithm of x. Subnormal numbers are scaled by 2^54,
// for math.Log takes them for normal ones on amd64.
func Log(x float64) float64 {
	if x > 0 && x < 0x1p-1022 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// Log10 returns the decimal logarithm of x.
func Log10(x float64) float64 { return Log(x) * (1 / math.Ln10) }

// Reciprocal sets dst to 1 / a.
func Reciprocal[T float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = 1 / a[i]
	}
}

// ReciprocalComplex returns 1 / z.
func ReciprocalComplex(z complex128) complex128 { return divComplex(1, z) }

// Rsqrt returns 1 / √x.
func Rsqrt(x float64) float64 { return 1 / math.Sqrt(x) }

// RsqrtComplex returns 1 / √z.
func RsqrtComplex(z complex128) complex128 { return divComplex(1, cmplx.Sqrt(z)) }

// Square sets dst to a².
func Square[T number](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * a[i]
	}
}

// Frac returns x - trunc(x).
func Frac(x float64) float64 { return x - math.Trunc(x) }

// Log2Complex returns the binary logarithm of z.
func Log2Complex(z complex128) complex128 { return scaleComplex(LogComplex(z), 1/math.Ln2) }

// Log10Complex returns the decimal logarithm of z.
func Log10Complex(z complex128) complex128 { return scaleComplex(LogComplex(z), 1/math.Ln10) }

func scaleComplex(z complex128, k float64) complex128 { return complex(real(z)*k, imag(z)*k) }

// timesI returns i·z, and overI z / i, without a product that could round.
func timesI(z complex128) complex128 { return complex(-imag(z), real(z)) }

func overI(z complex128) complex128 { return complex(imag(z), -real(z)) }

// TanComplex returns the tangent of z.
func TanComplex(z complex128) complex128 { return overI(TanhComplex(timesI(z))) }

// The inverse functions follow Kahan, "Branch cuts for complex elementary
// functions" (1987), whose formulas do not cancel.

// AsinComplex returns the principal arc sine of z.
func AsinComplex(z complex128) complex128 {
	lower, upper := cmplx.Sqrt(1-z), cmplx.Sqrt(1+z)
	return complex(math.Atan2(real(z), real(lower*upper)), math.Asinh(imag(cmplx.Conj(lower)*upper)))
}

// AcosComplex returns the principal arc cosine of z.
func AcosComplex(z complex128) complex128 {
	lower, upper := cmplx.Sqrt(1-z), cmplx.Sqrt(1+z)
	return complex(2*math.Atan2(real(lower), real(upper)), math.Asinh(imag(cmplx.Conj(upper)*lower)))
}

// AcoshComplex returns the principal inverse hyperbolic cosine of z.
func AcoshComplex(z complex128) complex128 {
	lower, upper := cmplx.Sqrt(z-1), cmplx.Sqrt(z+1)
	return complex(math.Asinh(real(cmplx.Conj(lower)*upper)), 2*math.Atan2(imag(lower), real(upper)))
}

// AsinhComplex returns the principal inverse hyperbolic sine of z.
func AsinhComplex(z complex128) complex128 { return overI(AsinComplex(timesI(z))) }

// AtanhComplex returns the principal inverse hyperbolic tangent of z.
func AtanhComplex(z complex128) complex128 {
	x, y := real(z), imag(z)
	re := math.Copysign(math.Log1p(4*math.Abs(x)/((1-math.Abs(x))*(1-math.Abs(x))+y*y))/4, x)
	return complex(re, math.Atan2(2*y, (1-x)*(1+x)-y*y)/2)
}

// AtanComplex returns the principal arc tangent of z.
func AtanComplex(z complex128) complex128 { return overI(AtanhComplex(timesI(z))) }
