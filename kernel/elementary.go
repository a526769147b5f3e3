package kernel

import (
	"math"
	"math/cmplx"
)

// The float32 functions compute in float64 and round once: the error is below
// 0.51 ULP of float32. Conversions have loops of their own, because a
// conversion waits for the register that it overwrites.

const (
	log2e = 1 / math.Ln2
	magic = 3 << 51 // adding it rounds a float64 to an integer in the low bits
)

// expFast returns e^x to a relative 1e-10 for x in [-700, 700].
func expFast(x float64) float64 {
	shifted := x*log2e + magic
	n := shifted - magic
	t := x - n*math.Ln2
	t2 := t * t
	t4 := t2 * t2
	low := 1 + t + t2*(1.0/2+t*(1.0/6))
	high := 1.0/24 + t*(1.0/120) + t2*(1.0/720+t*(1.0/5040))
	p := low + t4*(high+t4*(1.0/40320))
	return math.Float64frombits(math.Float64bits(p) + math.Float64bits(shifted)<<52)
}

func expClamped(x float64) float64 {
	switch {
	case x > 700:
		return math.Inf(1)
	case x < -700:
		return 0
	case x != x:
		return x
	}
	return expFast(x)
}

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

// Block functions in float32: the processor's own where there are some.
var (
	// Exp32 sets dst to e^a.
	Exp32 = unaryBlock(vectors.exp, expPortable)
	// Sigmoid32 sets dst to 1 / (1 + e^-a).
	Sigmoid32 = unaryBlock(vectors.sigmoid, sigmoidPortable)
	// Tanh32 sets dst to the hyperbolic tangent of a.
	Tanh32 = unaryBlock(vectors.tanh, tanhPortable)
	// Erf32 sets dst to the error function of a.
	Erf32 = unaryBlock(vectors.erf, erfPortable)
	// Log32 sets dst to the natural logarithm of a.
	Log32 = unaryBlock(vectors.log, logPortable)
	// Gelu32 sets dst to a·Φ(a), where Φ is the standard normal distribution function.
	Gelu32 = unaryBlock(vectors.gelu, geluPortable)
	// GeluTanh32 sets dst to a·(1 + tanh(√(2/π)·(a + 0.044715·a³)))/2.
	GeluTanh32 = unaryBlock(vectors.geluTanh, geluTanhPortable)
)

var (
	expPortable = viaFloat64(func(x []float64) {
		for i, v := range x {
			x[i] = expClamped(v)
		}
	})
	sigmoidPortable = viaFloat64(func(x []float64) {
		for i, v := range x {
			x[i] = 1 / (1 + expClamped(-v))
		}
	})
	tanhPortable = viaFloat64(func(x []float64) {
		for i, v := range x {
			x[i] = tanhFast(v)
		}
	})
	erfPortable = viaFloat64(func(x []float64) {
		for i, v := range x {
			x[i] = math.Erf(v)
		}
	})
	logPortable = viaFloat64(func(x []float64) {
		for i, v := range x {
			x[i] = math.Log(v)
		}
	})
	geluPortable     = viaFloat64(func(x []float64) { Gelu64(x, x) })
	geluTanhPortable = viaFloat64(func(x []float64) {
		for i, v := range x {
			x[i] = v / (1 + expClamped(-2*geluInner(v)))
		}
	})
)

func tanhFast(x float64) float64 {
	if math.Abs(x) < 0.25 {
		s := x * x
		return x * (1 + s*(-1.0/3+s*(2.0/15+s*(-17.0/315+s*(62.0/2835+s*(-1382.0/155925))))))
	}
	return 1 - 2/(expClamped(2*x)+1)
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

// Sigmoid64 returns 1 / (1 + e^-x).
func Sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

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
