package kernel

import (
	"math"
	"math/cmplx"
)

// Clamp makes dst = min(max(a, lo), hi); NaN stays NaN, and a bound of NaN
// makes every element NaN.
func Clamp[T float](lo, hi T) func(dst, a []T) {
	if bounds := lo + hi; lo != lo || hi != hi {
		return func(dst, _ []T) {
			for i := range dst {
				dst[i] = bounds
			}
		}
	}
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			v := pick(a[i] < lo, lo, a[i])
			dst[i] = pick(v > hi, hi, v)
		}
	}
}

// ClampInt is Clamp of integers.
func ClampInt(lo, hi int64) func(dst, a []int64) {
	return func(dst, a []int64) {
		a = a[:len(dst)]
		for i := range dst {
			v := a[i]
			if v < lo {
				v = lo
			}
			if v > hi {
				v = hi
			}
			dst[i] = v
		}
	}
}

// Threshold makes dst = value where a ≤ limit and a elsewhere.
func Threshold[T float](limit, value T) func(dst, a []T) {
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = pick(a[i] <= limit, value, a[i])
		}
	}
}

// ThresholdInt is Threshold of integers.
func ThresholdInt(limit, value int64) func(dst, a []int64) {
	return func(dst, a []int64) {
		a = a[:len(dst)]
		for i := range dst {
			v := a[i]
			if v <= limit {
				v = value
			}
			dst[i] = v
		}
	}
}

// Hardshrink makes dst = 0 where -lambda ≤ a ≤ lambda and a elsewhere.
func Hardshrink[T float](lambda T) func(dst, a []T) {
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			v := a[i]
			dst[i] = pick(v >= -lambda, pick(v <= lambda, 0, v), v)
		}
	}
}

// Softshrink makes dst = a - lambda where a > lambda, a + lambda where
// a < -lambda, and 0 elsewhere, for NaN too.
func Softshrink[T float](lambda T) func(dst, a []T) {
	return func(dst, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			v := a[i]
			dst[i] = pick(v > lambda, v-lambda, pick(v < -lambda, v+lambda, 0))
		}
	}
}

// Silu returns x / (1 + e^-x).
func Silu(x float64) float64 {
	if x < -40 {
		return timesExp(x)
	}
	return x / (1 + math.Exp(-x))
}

// timesExp returns x·e^x in two steps, so that e^x does not underflow before
// the product does; -Inf gives NaN as the quotient of infinities does.
func timesExp(x float64) float64 {
	half := math.Exp(x / 2)
	return x * half * half
}

// SiluComplex returns z / (1 + e^-z).
func SiluComplex(z complex128) complex128 { return divComplex(z, 1+cmplx.Exp(-z)) }

// Mish returns x·tanh(log(1 + e^x)), where tanh(log(w)) = (w² - 1) / (w² + 1):
// with u = e^x, (u² + 2u) / (u² + 2u + 2).
func Mish(x float64) float64 {
	switch {
	case x > 20:
		return x
	case x < -40:
		return timesExp(x)
	}
	u := math.Exp(x)
	n := u * (u + 2)
	return x * (n / (n + 2))
}

// Softplus32 makes log(1 + e^(beta·x)) / beta, and x where beta·x, rounded to
// float32, exceeds the threshold.
func Softplus32(beta, threshold float64) func(float64) float64 {
	return func(x float64) float64 {
		if float64(float32(x*beta)) > threshold {
			return x
		}
		return math.Log1p(math.Exp(x*beta)) / beta
	}
}

// Softplus64 is Softplus32 in float64. The exponential magnifies the rounding
// of beta·x, which is therefore put back.
func Softplus64(beta, threshold float64) func(float64) float64 {
	return func(x float64) float64 {
		p := x * beta
		if p > threshold {
			return x
		}
		e, rest := math.Exp(p), math.FMA(x, beta, -p)
		if e < 0x1p-1022 || math.IsInf(e, 1) || rest != rest {
			return math.Log1p(e) / beta
		}
		return math.Log1p(e+e*rest) / beta
	}
}

// Logsigmoid returns log(1 / (1 + e^-x)).
func Logsigmoid(x float64) float64 { return min(0, x) - math.Log1p(math.Exp(-math.Abs(x))) }

// Softsign returns x / (1 + |x|).
func Softsign(x float64) float64 { return x / (1 + math.Abs(x)) }

// SoftsignWrapped returns x / (1 + |x|) for integers of so many bits, whose
// sum overflows as theirs does.
func SoftsignWrapped(bits uint, unsigned bool) func(dst []float32, a []int64) {
	shift := 64 - bits
	return func(dst []float32, a []int64) {
		for i, x := range a {
			sum := max(x, -x) + 1
			if unsigned {
				sum = int64(uint64(sum) << shift >> shift)
			} else {
				sum = sum << shift >> shift
			}
			dst[i] = float32(x) / float32(sum)
		}
	}
}

// SoftsignComplex returns z / (1 + |z|).
func SoftsignComplex(z complex128) complex128 {
	r := 1 + math.Hypot(real(z), imag(z))
	return complex(real(z)/r, imag(z)/r)
}

// Tanhshrink returns x - tanh(x).
func Tanhshrink(x float64) float64 { return x - math.Tanh(x) }

// TanhshrinkComplex returns z - tanh(z).
func TanhshrinkComplex(z complex128) complex128 { return z - TanhComplex(z) }

// Hardsigmoid returns min(max(x + 3, 0), 6) / 6.
func Hardsigmoid(x float64) float64 { return min(max(x+3, 0), 6) / 6 }

// Hardswish returns x·min(max(x + 3, 0), 6) / 6.
func Hardswish(x float64) float64 { return x * Hardsigmoid(x) }

// Elu makes negative·(e^(inner·x) - 1) where x < 0 and positive·x elsewhere.
func Elu(negative, positive, inner float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < 0 {
			return negative * math.Expm1(inner*x)
		}
		return positive * x
	}
}
