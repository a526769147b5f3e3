package kernel

import (
	"math"
	"math/cmplx"
)

// The float32 functions compute in float64 and round once, with the same bits
// in the processor's passes and in Go: the error is below 0.503 ULP of float32.
// Conversions have loops of their own, because a conversion waits for the
// register that it overwrites.

const log2e = 1 / math.Ln2

// viaFloat64 makes a float32 block function of a float64 one.
func viaFloat64(f func(x []float64)) func(dst, a []float32) {
	return func(dst, a []float32) {
		var buf [256]float64
		for len(dst) > 0 {
			x := buf[:min(len(dst), len(buf))]
			for i, v := range a[:len(x)] {
				x[i] = float64(v)
			}
			f(x)
			for i, v := range x {
				dst[i] = float32(v)
			}
			dst, a = dst[len(x):], a[len(x):]
		}
	}
}

// Block functions of float32: the processor's own where there are some.
var (
	// Exp32 sets dst to e^a.
	Exp32 = unaryBlock(vectors.exp, Each32(expLane))
	// Exp2Of32 sets dst to 2^a.
	Exp2Of32 = unaryBlock(vectors.exp2, Each32(exp2Lane))
	// Expm1Of32 sets dst to e^a - 1.
	Expm1Of32 = unaryBlock(vectors.expm1, Each32(expm1Lane))
	// Sigmoid32 sets dst to 1 / (1 + e^-a).
	Sigmoid32 = unaryBlock(vectors.sigmoid, Each32(sigmoidLane))
	// Silu32 sets dst to a / (1 + e^-a).
	Silu32 = unaryBlock(vectors.silu, Each32(siluLane))
	// Mish32 sets dst to a·tanh(log(1 + e^a)).
	Mish32 = unaryBlock(vectors.mish, Each32(mishLane))
	// Tanh32 sets dst to the hyperbolic tangent of a.
	Tanh32 = unaryBlock(vectors.tanh, Each32(tanhLane))
	// Sinh32 sets dst to the hyperbolic sine of a.
	Sinh32 = unaryBlock(vectors.sinh, Each32(sinhLane))
	// Cosh32 sets dst to the hyperbolic cosine of a.
	Cosh32 = unaryBlock(vectors.cosh, Each32(coshLane))
	// Erf32 sets dst to the error function of a.
	Erf32 = unaryBlock(vectors.erf, Each32(erfLane))
	// Erfc32 sets dst to 1 - erf a.
	Erfc32 = unaryBlock(vectors.erfc, Each32(erfcLane))
	// Gelu32 sets dst to a·Φ(a), where Φ is the standard normal distribution function.
	Gelu32 = unaryBlock(vectors.gelu, Each32(geluLane))
	// GeluTanh32 sets dst to a·(1 + tanh(√(2/π)·(a + 0.044715·a³)))/2.
	GeluTanh32 = unaryBlock(vectors.geluTanh, Each32(geluTanhLane))
	// Log32 sets dst to the natural logarithm of a.
	Log32 = unaryBlock(vectors.log, Each32(logLane))
	// Log2Of32 sets dst to the binary logarithm of a.
	Log2Of32 = unaryBlock(vectors.log2, Each32(log2Lane))
	// Log10Of32 sets dst to the decimal logarithm of a.
	Log10Of32 = unaryBlock(vectors.log10, Each32(log10Lane))
	// Log1pOf32 sets dst to log(1 + a).
	Log1pOf32 = unaryBlock(vectors.log1p, Each32(log1pLane))
	// LogSigmoid32 sets dst to log(1 / (1 + e^-a)).
	LogSigmoid32 = unaryBlock(vectors.logSigmoid, Each32(logSigmoidLane))
	// Asinh32 sets dst to the inverse hyperbolic sine of a.
	Asinh32 = unaryBlock(vectors.asinh, Each32(asinhLane))
	// Acosh32 sets dst to the inverse hyperbolic cosine of a.
	Acosh32 = unaryBlock(vectors.acosh, Each32(acoshLane))
	// Atanh32 sets dst to the inverse hyperbolic tangent of a.
	Atanh32 = unaryBlock(vectors.atanh, Each32(atanhLane))
	// Asin32 sets dst to the arc sine of a.
	Asin32 = unaryBlock(vectors.asin, Each32(asinLane))
	// Acos32 sets dst to the arc cosine of a.
	Acos32 = unaryBlock(vectors.acos, Each32(acosLane))
	// Atan32 sets dst to the arc tangent of a.
	Atan32 = unaryBlock(vectors.atan, Each32(atanLane))
	// Rsqrt32 sets dst to 1 / √a.
	Rsqrt32 = unaryBlock(vectors.rsqrt, Each32(rsqrtLane))
	// Sin32 sets dst to the sine of a.
	Sin32 = turning(unaryBlock(vectors.sin, Each32(sinLane)), math.Sin)
	// Cos32 sets dst to the cosine of a.
	Cos32 = turning(unaryBlock(vectors.cos, Each32(cosLane)), math.Cos)
	// Tan32 sets dst to the tangent of a.
	Tan32 = turning(unaryBlock(vectors.tan, Each32(tanLane)), math.Tan)
)

// turning is block, and f of the angles that are too large for it.
func turning(block func(dst, a []float32), f func(float64) float64) func(dst, a []float32) {
	return func(dst, a []float32) {
		block(dst, a)
		for i, x := range a[:len(dst)] {
			if math.Float32bits(x)&^(1<<31) >= 0x4d800000 {
				dst[i] = float32(f(float64(x)))
			}
		}
	}
}

// Block functions of float64, within two and a half units in the last place.
var (
	// Exp64 sets dst to e^a.
	Exp64 = unaryBlock(vectors.exp64, Each64(exp64Lane))
	// Expm1Of64 sets dst to e^a - 1.
	Expm1Of64 = inside(math.Inf(-1), 700, unaryBlock(vectors.expm1Of64, Each64(expm1Of64Lane)), Expm1)
	// Sigmoid64 sets dst to 1 / (1 + e^-a).
	Sigmoid64 = unaryBlock(vectors.sigmoid64, Each64(sigmoid64Lane))
	// Silu64 sets dst to a / (1 + e^-a).
	Silu64 = inside(-40, math.Inf(1), unaryBlock(vectors.silu64, Each64(silu64Lane)), Silu)
	// Tanh64 sets dst to the hyperbolic tangent of a.
	Tanh64 = unaryBlock(vectors.tanh64, Each64(tanh64Lane))
	// Sinh64 sets dst to the hyperbolic sine of a.
	Sinh64 = inside(-700, 700, unaryBlock(vectors.sinh64, Each64(sinh64Lane)), Sinh)
	// Cosh64 sets dst to the hyperbolic cosine of a.
	Cosh64 = inside(-700, 700, unaryBlock(vectors.cosh64, Each64(cosh64Lane)), Cosh)
	// Log64 sets dst to the natural logarithm of a.
	Log64 = subnormals(unaryBlock(vectors.log64, Each64(log64Lane)), Log)
	// Log2Of64 sets dst to the binary logarithm of a.
	Log2Of64 = subnormals(unaryBlock(vectors.log2Of64, Each64(log2Of64Lane)), Log2)
	// Log10Of64 sets dst to the decimal logarithm of a.
	Log10Of64 = subnormals(unaryBlock(vectors.log10Of64, Each64(log10Of64Lane)), Log10)
	// Log1pOf64 sets dst to log(1 + a).
	Log1pOf64 = unaryBlock(vectors.log1pOf64, Each64(log1pOf64Lane))
	// LogSigmoid64 sets dst to log(1 / (1 + e^-a)).
	LogSigmoid64 = unaryBlock(vectors.logSigmoid64, Each64(logSigmoid64Lane))
	// Asinh64 sets dst to the inverse hyperbolic sine of a.
	Asinh64 = inside(-1e150, 1e150, unaryBlock(vectors.asinh64, Each64(asinh64Lane)), math.Asinh)
	// Acosh64 sets dst to the inverse hyperbolic cosine of a.
	Acosh64 = inside(math.Inf(-1), 1e150, unaryBlock(vectors.acosh64, Each64(acosh64Lane)), math.Acosh)
	// Atanh64 sets dst to the inverse hyperbolic tangent of a.
	Atanh64 = unaryBlock(vectors.atanh64, Each64(atanh64Lane))
)

// subnormals is block, and f of positive subnormal elements.
func subnormals(block func(dst, a []float64), f func(float64) float64) func(dst, a []float64) {
	return func(dst, a []float64) {
		block(dst, a)
		for i, x := range a[:len(dst)] {
			if math.Float64bits(x)-1 < 1<<52-1 {
				dst[i] = f(x)
			}
		}
	}
}

// inside is block, and f of the elements that are not in [lo, hi].
func inside(lo, hi float64, block func(dst, a []float64), f func(float64) float64) func(dst, a []float64) {
	return func(dst, a []float64) {
		block(dst, a)
		for i, x := range a[:len(dst)] {
			if !(x >= lo && x <= hi) {
				dst[i] = f(x)
			}
		}
	}
}

// Gelu64 sets dst to a·Φ(a), where Φ is the standard normal distribution function.
func Gelu64(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = geluErf(a[i])
	}
}

func geluErf(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }

// GeluTanh64 is GeluTanh32 in float64.
func GeluTanh64(dst, a []float64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / (1 + math.Exp(-2*geluInner(a[i])))
	}
}

func geluInner(x float64) float64 {
	return math.Sqrt2 / math.SqrtPi * (x + 0.044715*x*x*x)
}

// Each64 makes a block function of a function of one float64.
func Each64(f func(float64) float64) func(dst, a []float64) {
	return func(dst, a []float64) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i])
		}
	}
}

// EachComplex makes a block function of a function of one complex128.
func EachComplex(f func(complex128) complex128) func(dst, a []complex128) {
	return func(dst, a []complex128) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i])
		}
	}
}

// Sigmoid returns 1 / (1 + e^-x).
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// SigmoidComplex returns 1 / (1 + e^-z).
func SigmoidComplex(z complex128) complex128 { return 1 / (1 + cmplx.Exp(-z)) }

// LogComplex returns the natural logarithm of z. Near |z| = 1 the real part is
// computed from |z|² - 1, which does not cancel.
func LogComplex(z complex128) complex128 {
	re, im := math.Abs(real(z)), math.Abs(imag(z))
	if re < im {
		re, im = im, re
	}
	if re > 0.5 && re < 2 {
		return complex(math.Log1p((re-1)*(re+1)+im*im)/2, cmplx.Phase(z))
	}
	return cmplx.Log(z)
}

// TanhComplex returns the hyperbolic tangent of z by the formula of Kahan,
// "Branch cuts for complex elementary functions" (1987).
func TanhComplex(z complex128) complex128 {
	x, y := real(z), imag(z)
	if math.Abs(x) > 20 || math.IsNaN(x) || math.IsInf(y, 0) || math.IsNaN(y) {
		return cmplx.Tanh(z)
	}
	t, s := math.Tan(y), math.Sinh(x)
	beta, rho := 1+t*t, math.Sqrt(1+s*s)
	if math.IsInf(t, 0) {
		return complex(rho/s, 1/t)
	}
	denominator := 1 + beta*s*s
	return complex(beta*rho*s/denominator, t/denominator)
}

// SignComplex returns z / |z|, and 0 for 0.
func SignComplex(z complex128) complex128 {
	r := cmplx.Abs(z)
	if r == 0 {
		return 0
	}
	return complex(real(z)/r, imag(z)/r)
}
