package main

import (
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Coefficients of interpolations at Chebyshev nodes, lowest first.
var (
	// (e^t - 1) / t for |t| ≤ ln 2 / 2, within a relative 9.8e-12, and 1 at 0.
	expTerms = []float64{1, 0.5, 0.16666666718997508, 0.041666666718980845, 0.008333298483754886, 0.001388885404961482, 0.0001989927395864936, 2.4859578222625295e-05}
	// 2·atanh(√z) / √z for √z ≤ (√2 - 1) / (√2 + 1), within 4.3e-12.
	logTerms = []float64{2.000000000008363, 0.6666666524694825, 0.4000038478496916, 0.2853504383307004, 0.23616499700038662}
	// erf(√z) / √z for z ≤ 1/2, within 1.2e-11.
	erfTerms = []float64{1.1283791670837557, -0.37612638672628945, 0.11283784271519315, -0.026865277508325167, 0.0052188212040906595, -0.0008394229795570038, 9.72552308147507e-05}
	// e^(y²/2)·erfc(y/√2)/2 in t = (y - 3.5) / (y + 3.5) for 0 ≤ y ≤ 14.5, within 1.3e-10.
	tailTerms = []float64{0.10634515363392483, -0.18713969865223126, 0.12585525502354164, -0.06163942018250091, 0.019065539800930863, -0.0015615770214025776, -0.001380764161274003, 0.0003915311227946389, 0.0001315407633741634, -5.714372916291379e-05, -1.9637817483058004e-05, 6.289192426742556e-06, 2.893498272185088e-06}
	// sin(√z) / √z for √z ≤ π/4, within 1.9e-14, and 1 at 0.
	sinTerms = []float64{1, -0.16666666666663885, 0.008333333331079223, -0.00019841266916985966, 2.755599092956532e-06, -2.4805636241834762e-08}
	// cos(√z) for √z ≤ π/4, within 3.2e-13, and 1 at 0.
	cosTerms = []float64{1, -0.4999999999996389, 0.04166666663739607, -0.00138888850913992, 2.4799862190148396e-05, -2.7237140418016e-07}
	// atan(√z) / √z for √z ≤ tan π/8, within 3e-12, and 1 at 0.
	atanTerms = []float64{1, -0.3333333333144073, 0.1999999891728858, -0.14285612511387016, 0.11107495135714474, -0.09028983500350463, 0.07135325122330678, -0.04043224825887161}
)

const (
	tailCentre = 3.5
	tailEnd    = 14.5 // beyond it, y·erfc(y/√2)/2 rounds to zero in float32
	magic      = 3 << 51
	signBit    = 1 << 63
	halfPiLow  = 6.123233995736766e-17 // what math.Pi/2 lacks in float64
)

var globals = map[uint64]Mem{}

// bits64 is a constant in all lanes.
func bits64(bits uint64) Mem {
	m, ok := globals[bits]
	if !ok {
		m = GLOBL("lanes_"+hex(bits), RODATA|NOPTR)
		for i := range 4 {
			DATA(8*i, U64(bits))
		}
		globals[bits] = m
	}
	return m
}

func hex(bits uint64) string {
	var s strings.Builder
	for shift := 60; shift >= 0; shift -= 4 {
		s.WriteByte("0123456789abcdef"[bits>>shift&15])
	}
	return s.String()
}

var maskTable *Mem

// masks are eight lanes of ones, then eight of zeros.
func masks() Mem {
	if maskTable == nil {
		m := GLOBL("masks", RODATA|NOPTR)
		for i := range 16 {
			v := uint32(math.MaxUint32)
			if i >= 8 {
				v = 0
			}
			DATA(4*i, U32(v))
		}
		maskTable = &m
	}
	return *maskTable
}

// clamp brings x into [-limit, limit]; NaN stays.
func clamp(x *node, limit float64) *node {
	return greaterOr(num(-limit), lesser(num(limit), x))
}

// polynomial returns Σ terms[i]·x^i.
func polynomial(x *node, terms []float64) *node {
	last := len(terms) - 1
	p := num(terms[last])
	for i := last - 1; i >= 0; i-- {
		p = fma(x, p, num(terms[i]))
	}
	return p
}

// reduced returns t and 2^n, n as an exponent in the upper bits, such that x = n·ln 2 + t.
func reduced(x *node) (t, n *node) {
	shifted := fma(x, num(math.Log2E), num(magic))
	return fnma(sub(shifted, num(magic)), num(math.Ln2), x), left(shifted, 52)
}

// exp returns e^x for |x| ≤ 700.
func exp(x *node) *node {
	t, n := reduced(x)
	return addBits(polynomial(t, append([]float64{1}, expTerms...)), n)
}

// exp2 returns 2^x.
func exp2(x *node) *node {
	x = clamp(x, 1000)
	shifted := add(x, num(magic))
	t := mul(sub(x, sub(shifted, num(magic))), num(math.Ln2))
	return addBits(polynomial(t, append([]float64{1}, expTerms...)), left(shifted, 52))
}

// expMinus1 returns e^x - 1 for |x| ≤ 700, and 0 for -0.
func expMinus1(x *node) *node {
	t, n := reduced(x)
	p := mul(polynomial(t, expTerms), t)
	scale := addBits(n, num(1))
	return fma(scale, p, sub(scale, num(1)))
}

func expm1(x *node) *node { return withSign(expMinus1(clamp(x, 700)), x) }

func sigmoid(x *node) *node { return div(num(1), add(exp(clamp(negated(x), 700)), num(1))) }

// overExp returns x / (1 + e^u), and NaN where both are infinite.
func overExp(x, u *node) *node {
	e := when(above(u, num(700)), num(math.Inf(1)), exp(clamp(u, 700)))
	return lostAtMinusInf(x, div(x, add(e, num(1))))
}

// lostAtMinusInf is y, and NaN where x is -∞.
func lostAtMinusInf(x, y *node) *node {
	return when(equals(x, num(math.Inf(-1))), num(math.NaN()), y)
}

func silu(x *node) *node { return overExp(x, negated(x)) }

// mish is x·tanh(log(1 + e^x)) = x·n / (n + 2) with n = e^x·(e^x + 2).
func mish(x *node) *node {
	u := exp(greaterOr(num(-700), lesser(num(40), x)))
	n := mul(u, add(u, num(2)))
	return lostAtMinusInf(x, mul(x, div(n, add(n, num(2)))))
}

// tanh is m / (m + 2) with m = e^2x - 1.
func tanh(x *node) *node {
	size := absolute(x)
	m := expMinus1(lesser(num(60), add(size, size)))
	return withSign(div(m, add(m, num(2))), x)
}

// sinh is (m + m / (m + 1)) / 2 with m = e^x - 1.
func sinh(x *node) *node {
	m := expMinus1(lesser(num(700), absolute(x)))
	return withSign(mul(add(m, div(m, add(m, num(1)))), num(0.5)), x)
}

func cosh(x *node) *node {
	e := exp(lesser(num(700), absolute(x)))
	return mul(add(e, div(num(1), e)), num(0.5))
}

// tail returns erfc(y/√2)/2 for 0 ≤ y ≤ 14.5.
func tail(y *node) *node {
	t := div(sub(y, num(tailCentre)), add(y, num(tailCentre)))
	return mul(polynomial(t, tailTerms), exp(mul(mul(y, y), num(-0.5))))
}

func erf(x *node) *node {
	size := absolute(x)
	z := mul(size, size)
	near := mul(polynomial(z, erfTerms), size)
	far := tail(lesser(num(tailEnd), mul(size, num(math.Sqrt2))))
	return withSign(when(above(z, num(0.5)), sub(num(1), add(far, far)), near), x)
}

func erfc(x *node) *node {
	q := tail(lesser(num(tailEnd), mul(absolute(x), num(math.Sqrt2))))
	twice := add(q, q)
	return when(negative(x), sub(num(2), twice), twice)
}

// gelu is max(x, 0) - y·Φ(-y) with y = min(|x|, 14.5), and NaN for -∞ like
// its formula.
func gelu(x *node) *node {
	y := lesser(num(tailEnd), absolute(x))
	return lostAtMinusInf(x, fnma(y, tail(y), greaterOr(num(0), x)))
}

func geluTanh(x *node) *node {
	inner := fma(mul(mul(x, x), num(0.044715)), x, x)
	return overExp(x, mul(inner, num(-2*math.Sqrt2/math.SqrtPi)))
}

// split returns m in [√½, √2) and k with x = m·2^k, for positive, finite and
// normal x.
func split(x *node) (m, k *node) {
	one := math.Float64bits(1)
	exponent := right(addBits(x, pattern(one-math.Float64bits(math.Sqrt2/2))), 52)
	m = addBits(subBits(x, left(exponent, 52)), num(1))
	return m, sub(or(exponent, num(1<<52)), num(1<<52+1023))
}

// atanhSeries returns 2·atanh(top / below) for arguments within ±(√2 - 1) / (√2 + 1).
func atanhSeries(top, below *node) *node {
	s := div(top, below)
	return mul(polynomial(mul(s, s), logTerms), s)
}

// logarithm returns log x for positive, finite and normal x.
func logarithm(x *node) *node {
	m, k := split(x)
	return fma(k, num(math.Ln2), atanhSeries(sub(m, num(1)), add(m, num(1))))
}

// logDomain is y where 0 < x < ∞; logarithms are -∞ at 0, ∞ at ∞ and NaN below.
func logDomain(x, y *node) *node {
	y = when(equals(x, num(math.Inf(1))), x, y)
	y = when(equals(x, num(0)), num(math.Inf(-1)), y)
	return when(notAtLeast(x, num(0)), num(math.NaN()), y)
}

func log(x *node) *node { return logDomain(x, logarithm(x)) }

// log2 is exact for powers of two.
func log2(x *node) *node {
	m, k := split(x)
	return logDomain(x, fma(atanhSeries(sub(m, num(1)), add(m, num(1))), num(math.Log2E), k))
}

func log10(x *node) *node { return logDomain(x, mul(logarithm(x), num(math.Log10E))) }

// logOf1Plus returns log(1 + x) for finite x > -1, and 0 for -0: without the
// rounding of 1 + x where that is near 1.
func logOf1Plus(x *node) *node {
	m, k := split(add(x, num(1)))
	top := when(equals(k, num(0)), x, sub(m, num(1)))
	return fma(k, num(math.Ln2), atanhSeries(top, add(top, num(2))))
}

func log1p(x *node) *node { return log1pDomain(x, logOf1Plus(x)) }

// log1pDomain is y where -1 < x < ∞, with the sign of x.
func log1pDomain(x, y *node) *node {
	y = when(equals(x, num(math.Inf(1))), x, withSign(y, x))
	y = when(equals(x, num(-1)), num(math.Inf(-1)), y)
	return when(notAtLeast(x, num(-1)), num(math.NaN()), y)
}

// logSigmoid is 0 where e^-x vanishes in float32.
func logSigmoid(x *node) *node {
	u := negated(absolute(x))
	e := when(below(u, num(-104)), num(0), exp(greaterOr(num(-700), u)))
	return sub(lesser(num(0), x), logOf1Plus(e))
}

func asinh(x *node) *node {
	size := absolute(x)
	square := mul(size, size)
	y := logOf1Plus(add(size, div(square, add(sqrt(add(square, num(1))), num(1)))))
	return withSign(finite(size, y), x)
}

// finite is y, and x where that is infinite or NaN.
func finite(x, y *node) *node { return when(below(x, num(math.Inf(1))), y, x) }

func acosh(x *node) *node {
	t := sub(x, num(1))
	y := finite(x, logOf1Plus(add(t, sqrt(mul(t, add(t, num(2)))))))
	return when(below(x, num(1)), num(math.NaN()), y)
}

// atanh is log(1 + 2x / (1 - x)) / 2.
func atanh(x *node) *node {
	size := absolute(x)
	return atanhDomain(x, mul(logOf1Plus(div(add(size, size), sub(num(1), size))), num(0.5)))
}

// atanhDomain is y where |x| < 1, with the sign of x.
func atanhDomain(x, y *node) *node {
	size := absolute(x)
	y = withSign(when(equals(size, num(1)), num(math.Inf(1)), y), x)
	return when(notAtLeast(num(1), size), num(math.NaN()), y)
}

// arc returns the angle of (x, y) for y ≥ 0 and x ≥ 0, not both 0.
func arc(y, x *node) *node {
	steep := above(y, mul(x, num(math.Sqrt2+1)))
	flat := notAtLeast(y, mul(x, num(math.Sqrt2-1)))
	top := when(flat, y, when(steep, negated(x), sub(y, x)))
	below := when(flat, x, when(steep, y, add(y, x)))
	base := when(flat, num(0), when(steep, num(math.Pi/2), num(math.Pi/4)))
	t := div(top, below)
	return fma(polynomial(mul(t, t), atanTerms), t, base)
}

func atan(x *node) *node {
	return withSign(arc(absolute(x), num(1)), x)
}

// asin factors 1 - x², so that it keeps its digits near 1.
func asin(x *node) *node {
	size := absolute(x)
	y := withSign(arc(size, sqrt(mul(sub(num(1), size), add(size, num(1))))), x)
	return when(above(size, num(1)), num(math.NaN()), y)
}

// acos goes by the half angle.
func acos(x *node) *node {
	half := arc(sqrt(sub(num(1), x)), sqrt(add(x, num(1))))
	return when(above(absolute(x), num(1)), num(math.NaN()), add(half, half))
}

// quarters returns r and q, in the low bits, with x = q·π/2 + r, for |x| < 2^28.
func quarters(x *node) (r, q *node) {
	q = fma(x, num(2/math.Pi), num(magic))
	n := sub(q, num(magic))
	r = fnma(n, num(math.Pi/2), x)
	return fnma(n, num(halfPiLow), r), q
}

func sineOf(r, z *node) *node { return mul(polynomial(z, sinTerms), r) }

func cosineOf(z *node) *node { return polynomial(z, cosTerms) }

// turned is sin(r + q·π/2).
func turned(r, q *node) *node {
	z := mul(r, r)
	odd, flip := negative(left(q, 63)), and(left(q, 62), pattern(signBit))
	return xor(when(odd, cosineOf(z), sineOf(r, z)), flip)
}

func sin(x *node) *node { return turned(quarters(x)) }

func cos(x *node) *node {
	r, q := quarters(x)
	return turned(r, addBits(q, pattern(1)))
}

func tan(x *node) *node {
	r, q := quarters(x)
	z := mul(r, r)
	sine, cosine := sineOf(r, z), cosineOf(z)
	flip := left(q, 63)
	odd := negative(flip)
	return xor(div(when(odd, cosine, sine), when(odd, sine, cosine)), flip)
}

func rsqrt(x *node) *node {
	return when(below(x, num(0)), num(math.NaN()), div(num(1), sqrt(x)))
}

// power is x raised to y for finite x other than 0, and |y| < 2^31.
func power(x, y *node) *node {
	return powerSign(x, y, exp(clamp(mul(logarithm(absolute(x)), y), 700)))
}

// powerSign is p, the power of |x|, where x > 0; else of the sign of an odd y,
// and NaN for y that is no integer.
func powerSign(x, y, p *node) *node {
	n, bits := whole(y, num(1))
	ofNegative := when(equals(n, y), xor(p, left(bits, 63)), num(math.NaN()))
	return when(negative(x), ofNegative, p)
}
