package kernel

import "math"

// wide is the unevaluated sum of two float64, the second below half a unit in
// the last place of the first (T. J. Dekker, 1971).
type wide struct{ hi, lo float64 }

// sumOf2 returns a + b exactly.
func sumOf2(a, b float64) wide {
	s := a + b
	t := s - a
	return wide{s, (a - (s - t)) + (b - t)}
}

func (a wide) times(b wide) wide {
	p := a.hi * b.hi
	return wide{p, math.FMA(a.hi, b.hi, -p) + (a.hi*b.lo + a.lo*b.hi)}
}

// The upper part of ln 2 has 33 bits: multiples up to 2^20 are exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// logWide returns log x for positive finite x within a relative 2^-64 or so:
// with x = m·2^e and s = (m - 1)/(m + 1), log m = 2·(s + s³/3 + s⁵/5 + …).
func logWide(x float64) wide {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	below := sumOf2(m, 1)
	s := wide{hi: (m - 1) / below.hi}
	s.lo = (math.FMA(-s.hi, below.hi, m-1) - s.hi*below.lo) / below.hi
	square := s.times(s)
	cube := square.times(s).times(wide{1.0 / 3, 1.0 / 3 * 0x1p-54})
	rest := square.hi * square.hi * s.hi * polynomial(square.hi, 1.0/5, 1.0/7, 1.0/9, 1.0/11, 1.0/13, 1.0/15, 1.0/17, 1.0/19, 1.0/21, 1.0/23, 1.0/25, 1.0/27)
	fraction := sumOf2(2*s.hi, 2*cube.hi)
	fraction.lo += 2 * (s.lo + cube.lo + rest)
	n := float64(e)
	sum := sumOf2(n*ln2High, fraction.hi)
	return sumOf2(sum.hi, sum.lo+(n*ln2Low+fraction.lo))
}

// expWide returns e^(x.hi + x.lo), within a unit in the last place.
func expWide(x wide) float64 {
	switch {
	case x.hi > 709.8:
		return math.Inf(1)
	case x.hi < -745.2:
		return 0
	}
	n := math.Round(x.hi * log2e)
	r := sumOf2(x.hi-n*ln2High, x.lo-n*ln2Low)
	t := r.hi
	p := t * t * polynomial(t, 1.0/2, 1.0/6, 1.0/24, 1.0/120, 1.0/720, 1.0/5040, 1.0/40320, 1.0/362880, 1.0/3628800, 1.0/39916800, 1.0/479001600, 1.0/6227020800)
	return math.Ldexp(1+(t+(p+(r.lo+r.lo*t))), int(n))
}

// Exp returns e^x. math.Exp of amd64 overflows too early, and loses digits of
// subnormal results.
func Exp(x float64) float64 {
	if x > -700 && x < 700 || math.IsNaN(x) || math.IsInf(x, 0) {
		return math.Exp(x)
	}
	return expWide(wide{hi: x})
}

// Power returns x raised to y, within a unit in the last place. Special cases
// are those of math.Pow, which multiplies rounding errors by the exponent.
func Power(x, y float64) float64 {
	switch {
	case x == 0 || y == 0 || math.IsInf(x, 0) || math.IsInf(y, 0) || x != x || y != y:
		return math.Pow(x, y)
	case x > 0:
		return powPositive(x, y)
	case y != math.Trunc(y):
		return math.NaN()
	case math.Mod(y, 2) != 0:
		return -powPositive(-x, y)
	}
	return powPositive(-x, y)
}

func powPositive(x, y float64) float64 {
	l := logWide(x)
	p := wide{hi: y * l.hi}
	if p.hi > 710 || p.hi < -746 {
		return expWide(p)
	}
	p.lo = math.FMA(y, l.hi, -p.hi) + y*l.lo
	return expWide(p)
}
