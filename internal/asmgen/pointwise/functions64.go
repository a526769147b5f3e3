package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The functions of float64 keep what their reductions round off, as those of
// FreeBSD's msun do.

var (
	// (e^t - 1 - t) / t² for |t| ≤ ln 2 / 2, within 4.9e-18.
	expTerms64 = []float64{0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326141, 0.0013888888888883752, 0.00019841269874800694, 2.480158732553351e-05, 2.755725542549107e-06, 2.755727366116628e-07, 2.5105206480259365e-08, 2.0914679452495193e-09}
	// (2·atanh(√z) / √z - 2) / z, of msun's log.
	logTerms64 = []float64{6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01}
)

// The upper part of ln 2 has 33 bits: multiples up to 2^20 are exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// whole returns the integer nearest to x, and its bits in the lowest.
func whole(x, factor *node) (n, bits *node) {
	bits = fma(x, factor, num(magic))
	return sub(bits, num(magic)), bits
}

func powerOf2(bits *node) *node { return addBits(left(bits, 52), num(1)) }

// expParts returns n, its bits and p such that e^x = 2^n·(1 + p).
func expParts(x *node) (n, bits, p *node) {
	n, bits = whole(x, num(math.Log2E))
	high := fnma(n, num(ln2High), x)
	t := fnma(n, num(ln2Low), high)
	rest := fnma(n, num(ln2Low), sub(high, t))
	return n, bits, add(t, fma(mul(t, t), polynomial(t, expTerms64), rest))
}

// expWithin is e^x for |x| ≤ 700.
func expWithin(x *node) *node {
	_, bits, p := expParts(x)
	return addBits(add(p, num(1)), left(bits, 52))
}

// exp64 scales in two steps: the second rounds what is subnormal, or overflows.
func exp64(x *node) *node {
	n, _, p := expParts(greaterOr(num(-746), lesser(num(710), x)))
	half, bits := whole(n, num(0.5))
	e := mul(add(p, num(1)), powerOf2(bits))
	return mul(e, powerOf2(add(sub(n, half), num(magic))))
}

// expMinus1Within is e^x - 1 for |x| ≤ 700, and 0 for -0.
func expMinus1Within(x *node) *node {
	_, bits, p := expParts(x)
	scale := powerOf2(bits)
	return fma(scale, p, sub(scale, num(1)))
}

func expm1Of64(x *node) *node { return withSign(expMinus1Within(greaterOr(num(-700), x)), x) }

func sinh64(x *node) *node {
	m := expMinus1Within(absolute(x))
	return withSign(mul(add(m, div(m, add(m, num(1)))), num(0.5)), x)
}

func cosh64(x *node) *node {
	e := expWithin(absolute(x))
	return mul(add(e, div(num(1), e)), num(0.5))
}

func tanh64(x *node) *node {
	size := absolute(x)
	m := expMinus1Within(lesser(num(60), add(size, size)))
	return withSign(div(m, add(m, num(2))), x)
}

func sigmoid64(x *node) *node { return div(num(1), add(exp64(negated(x)), num(1))) }

func silu64(x *node) *node { return div(x, add(exp64(negated(x)), num(1))) }

// logParts returns log(f + 1) + k·log 2 + rest for 1 + f in [√½, √2), as a
// larger and a smaller number.
func logParts(f, k, rest *node) (high, low *node) {
	s := div(f, add(f, num(2)))
	z := mul(s, s)
	r := mul(polynomial(z, logTerms64), z)
	square := mul(mul(f, f), num(0.5))
	inner := fma(s, add(r, square), fma(k, num(ln2Low), rest))
	return mul(k, num(ln2High)), sub(f, sub(square, inner))
}

func log64(x *node) *node { return logDomain(x, logWithin(x)) }

// logWithin is log x for positive, finite and normal x.
func logWithin(x *node) *node {
	m, k := split(x)
	high, low := logParts(sub(m, num(1)), k, num(0))
	return add(high, low)
}

func log2Of64(x *node) *node {
	m, k := split(x)
	_, low := logParts(sub(m, num(1)), num(0), num(0))
	return logDomain(x, fma(low, num(math.Log2E), k))
}

func log10Of64(x *node) *node { return logDomain(x, mul(logWithin(x), num(math.Log10E))) }

// logOf1Plus64 returns log(1 + x) for finite x > -1, and 0 for -0. What 1 + x
// loses, relatively, is put back.
func logOf1Plus64(x *node) *node {
	u := add(x, num(1))
	m, k := split(u)
	near := equals(k, num(0))
	lost := when(above(x, num(1)), sub(num(1), sub(u, x)), sub(x, sub(u, num(1))))
	rest := when(near, num(0), div(lost, u))
	high, low := logParts(when(near, x, sub(m, num(1))), k, rest)
	return add(high, low)
}

func log1pOf64(x *node) *node { return log1pDomain(x, logOf1Plus64(x)) }

func logSigmoid64(x *node) *node {
	return sub(lesser(num(0), x), logOf1Plus64(exp64(negated(absolute(x)))))
}

func asinh64(x *node) *node {
	size := absolute(x)
	square := mul(size, size)
	y := logOf1Plus64(add(size, div(square, add(sqrt(add(square, num(1))), num(1)))))
	return withSign(y, x)
}

func acosh64(x *node) *node {
	t := sub(x, num(1))
	y := logOf1Plus64(add(t, sqrt(mul(t, add(t, num(2))))))
	return when(below(x, num(1)), num(math.NaN()), y)
}

// atanh64 writes 2x / (1 - x) as 2x + 2x²/(1 - x) for small x.
func atanh64(x *node) *node {
	size := absolute(x)
	twice, complement := add(size, size), sub(num(1), size)
	small := below(size, num(0.5))
	quotient := div(when(small, mul(twice, size), twice), complement)
	y := logOf1Plus64(when(small, add(twice, quotient), quotient))
	return atanhDomain(x, mul(y, num(0.5)))
}

// pair is the unevaluated sum of two numbers (T. J. Dekker, 1971).
type pair struct{ high, low *node }

func sumOf2(a, b *node) pair {
	s := add(a, b)
	t := sub(s, a)
	return pair{s, add(sub(a, sub(s, t)), sub(b, t))}
}

func (a pair) times(b pair) pair {
	p := mul(a.high, b.high)
	cross := fma(a.high, b.low, mul(a.low, b.high))
	return pair{p, add(negated(fnma(a.high, b.high, p)), cross)}
}

// logWide returns log x for positive, finite and normal x, within 2^-64 or so:
// with s = (m - 1)/(m + 1), log m = 2·(s + s³/3 + s⁵/5 + …).
func logWide(x *node) pair {
	m, k := split(x)
	top, below := sub(m, num(1)), sumOf2(m, num(1))
	s := pair{high: div(top, below.high)}
	s.low = div(fnma(s.high, below.low, fnma(s.high, below.high, top)), below.high)
	square := s.times(s)
	cube := square.times(s).times(pair{num(1.0 / 3), num(1.0 / 3 * 0x1p-54)})
	var odd []float64
	for n := 5; n <= 27; n += 2 {
		odd = append(odd, 1/float64(n))
	}
	rest := mul(mul(square.high, square.high), mul(s.high, polynomial(square.high, odd)))
	fraction := sumOf2(add(s.high, s.high), add(cube.high, cube.high))
	low := add(add(s.low, cube.low), rest)
	fraction.low = add(fraction.low, add(low, low))
	sum := sumOf2(mul(k, num(ln2High)), fraction.high)
	return sumOf2(sum.high, add(sum.low, fma(k, num(ln2Low), fraction.low)))
}

// power64 is x raised to y for finite and normal x and |y| < 2^31, where the
// result is between 1e-300 and 1e300 in magnitude; else it is beyond these.
func power64(x, y *node) *node {
	l := logWide(absolute(x))
	p := mul(y, l.high)
	rest := fma(y, l.low, negated(fnma(y, l.high, p)))
	rest = when(above(absolute(p), num(700)), num(0), rest)
	p = clamp(p, 700)
	n, bits := whole(p, num(math.Log2E))
	r := sumOf2(fnma(n, num(ln2High), p), fnma(n, num(ln2Low), rest))
	t := r.high
	tail := fma(mul(t, t), polynomial(t, expTerms64), fma(r.low, t, r.low))
	return powerSign(x, y, addBits(add(add(t, tail), num(1)), left(bits, 52)))
}

var functions64 = []function{
	{"exp64", "e^a", exp64},
	{"expm1Of64", "e^a - 1, for a ≤ 700", expm1Of64},
	{"sigmoid64", "1 / (1 + e^-a)", sigmoid64},
	{"silu64", "a / (1 + e^-a), for a ≥ -40", silu64},
	{"tanh64", "the hyperbolic tangent of a", tanh64},
	{"sinh64", "the hyperbolic sine of a, for |a| ≤ 700", sinh64},
	{"cosh64", "the hyperbolic cosine of a, for |a| ≤ 700", cosh64},
	{"log64", "the natural logarithm of a, unless that is subnormal", log64},
	{"log2Of64", "the binary logarithm of a, unless that is subnormal", log2Of64},
	{"log10Of64", "the decimal logarithm of a, unless that is subnormal", log10Of64},
	{"log1pOf64", "log(1 + a)", log1pOf64},
	{"logSigmoid64", "log(1 / (1 + e^-a))", logSigmoid64},
	{"asinh64", "the inverse hyperbolic sine of a, for |a| ≤ 1e150", asinh64},
	{"acosh64", "the inverse hyperbolic cosine of a, for a ≤ 1e150", acosh64},
	{"atanh64", "the inverse hyperbolic tangent of a", atanh64},
}

func (f function) write64() {
	x := input(0)
	root := when(equals(x, x), f.of(x), x)
	p := begin(f.name+"AVX", "func(dst, a *float64, n int)", []string{f.name + "AVX sets dst to " + f.doc + "."}, "dst", "a")
	p.each64(func(get func(k int) VecVirtual) VecVirtual { return emit(root, get(1)) })
	finish()
	twin(f.name+"Lane", "returns "+f.doc, root, "a")
}

func powers64() {
	const doc = "a raised to b, for finite and normal a and |b| < 2^31, where the size of that is within 1e-300 and 1e300; others are beyond these"
	p := begin("pow64AVX", "func(dst, a, b *float64, n int)", []string{"pow64AVX sets dst to " + doc + "."}, "dst", "a", "b")
	root := power64(input(0), input(1))
	p.each64(func(get func(k int) VecVirtual) VecVirtual { return emit(root, get(1), get(2)) })
	finish()
	twin("pow64Lane", "returns "+doc, root, "a", "b")
}

// each64 is each for float64 elements.
func (p *pass) each64(body func(get func(k int) VecVirtual) VecVirtual) {
	at := func(k int) Mem { return Mem{Base: p.pointers[k], Index: p.i, Scale: 8} }
	p.whole("_loop", 4, func() {
		VMOVUPD(body(func(k int) VecVirtual {
			x := YMM()
			VMOVUPD(at(k), x)
			return x
		}), at(0))
	})
	narrow, mask := XMM(), YMM()
	p.rest(narrow, func() {
		VPMOVSXDQ(narrow, mask)
		VMASKMOVPD(body(func(k int) VecVirtual {
			x := YMM()
			VMASKMOVPD(at(k), mask, x)
			return x
		}), mask, at(0))
	})
}
