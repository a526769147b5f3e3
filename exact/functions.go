package exact

import (
	"math"
	"math/big"
)

// Lookup returns the function of an operator's id, such as "exp". Attributes
// are further arguments, "leaky_relu" (input, negative_slope) and "elu"
// (input, alpha) for example, or make another name after a colon: "gelu" is
// x·Φ(x) and "gelu:tanh" its approximation.
func Lookup(id string) (Func, bool) {
	f, ok := functions[id]
	f.name = id
	return f, ok
}

var functions = map[string]Func{
	"exp":        unary(math.Exp, bits.exp),
	"exp2":       unary(math.Exp2, func(p bits, x ball) ball { return p.pow(integer(2), x) }),
	"expm1":      unary(math.Expm1, bits.expm1),
	"log":        unary(math.Log, bits.log),
	"log2":       unary(math.Log2, bits.log2),
	"log10":      unary(math.Log10, bits.log10),
	"log1p":      unary(math.Log1p, bits.log1p).pole(-1, math.Inf(-1)),
	"sqrt":       unary(math.Sqrt, bits.sqrt),
	"rsqrt":      unary(rsqrt, func(p bits, x ball) ball { return p.quo(integer(1), p.sqrt(x)) }),
	"reciprocal": unary(func(x float64) float64 { return 1 / x }, func(p bits, x ball) ball { return p.quo(integer(1), x) }),
	"square":     unary(func(x float64) float64 { return x * x }, func(p bits, x ball) ball { return p.mul(x, x) }),

	"sin":   unary(math.Sin, func(p bits, x ball) ball { s, _ := p.sinCos(x); return s }),
	"cos":   unary(math.Cos, func(p bits, x ball) ball { _, c := p.sinCos(x); return c }),
	"tan":   unary(math.Tan, bits.tan),
	"asin":  unary(math.Asin, bits.asin),
	"acos":  smooth(math.Acos, bits.acos).pole(1, 0),
	"atan":  unary(math.Atan, bits.atan),
	"sinh":  unary(math.Sinh, bits.sinh),
	"cosh":  unary(math.Cosh, bits.cosh),
	"tanh":  unary(math.Tanh, bits.tanh),
	"asinh": unary(math.Asinh, bits.asinh),
	"acosh": unary(math.Acosh, bits.acosh).pole(1, 0),
	"atanh": unary(math.Atanh, bits.atanh).pole(1, math.Inf(1)).pole(-1, math.Inf(-1)),
	"erf":   unary(math.Erf, bits.erf),
	"erfc":  unary(math.Erfc, bits.erfc),

	"sigmoid":    unary(sigmoid, bits.sigmoid),
	"logsigmoid": smooth(func(x float64) float64 { return -math.Log1p(math.Exp(-x)) }, func(p bits, x ball) ball { return p.softplus(x.neg()).neg() }),
	"softplus":   smooth(func(x float64) float64 { return math.Log1p(math.Exp(x)) }, bits.softplus),
	"silu":       unary(func(x float64) float64 { return x * sigmoid(x) }, func(p bits, x ball) ball { return p.mul(x, p.sigmoid(x)) }),
	"mish":       unary(func(x float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) }, func(p bits, x ball) ball { return p.mul(x, p.tanh(p.softplus(x))) }),
	"gelu":       unary(func(x float64) float64 { return x * (0.5 * math.Erfc(-x)) }, bits.gelu),
	"gelu:tanh":  unary(func(x float64) float64 { return x * sigmoid(x) }, bits.geluTanh),
	"softsign":   unary(func(x float64) float64 { return x / (1 + math.Abs(x)) }, func(p bits, x ball) ball { return p.quo(x, plus(integer(1), x.abs())) }),
	"tanhshrink": unary(func(x float64) float64 { return x - math.Tanh(x) }, func(p bits, x ball) ball { return p.sub(x, p.tanh(x)) }),
	"hardsigmoid": unary(func(x float64) float64 { return min(max(x+3, 0), 6) / 6 }, func(p bits, x ball) ball {
		return p.quo(clamp(plus(x, integer(3)), 0, 6), integer(6))
	}),
	"hardswish": unary(func(x float64) float64 { return x * (min(max(x+3, 0), 6) / 6) }, func(p bits, x ball) ball {
		return p.quo(p.mul(x, clamp(plus(x, integer(3)), 0, 6)), integer(6))
	}),

	"neg":   native1(func(x float64) float64 { return -x }),
	"abs":   native1(math.Abs),
	"sign":  native1(sign),
	"relu":  native1(relu),
	"relu6": native1(func(x float64) float64 { return min(relu(x), 6) }),
	"floor": native1(math.Floor),
	"ceil":  native1(math.Ceil),
	"trunc": native1(math.Trunc),
	"round": native1(math.RoundToEven),
	"frac":  native1(func(x float64) float64 { return x - math.Trunc(x) }),

	"add": binary(func(x, y float64) float64 { return x + y }, bits.add),
	"sub": binary(func(x, y float64) float64 { return x - y }, bits.sub),
	"mul": binary(func(x, y float64) float64 { return x * y }, bits.mul),
	"div": binary(func(x, y float64) float64 { return x / y }, bits.quo),
	"pow": binary(math.Pow, bits.signedPow),

	"atan2":      binary(math.Atan2, bits.atan2),
	"hypot":      binary(math.Hypot, func(p bits, x, y ball) ball { return p.sqrt(p.add(p.mul(x, x), p.mul(y, y))) }),
	"fmod":       native2(math.Mod),
	"remainder":  binary(remainder, func(p bits, x, y ball) ball { return remainderBall(x, y) }),
	"maximum":    native2(func(x, y float64) float64 { return max(x, y) }),
	"minimum":    native2(func(x, y float64) float64 { return min(x, y) }),
	"copysign":   native2(math.Copysign),
	"leaky_relu": binary(leakyRelu, func(p bits, x, slope ball) ball { return p.slope(x, slope) }),
	"elu":        binary(elu, bits.elu),
}

// unary makes a Func of eval, with the special values of at: those for zeros,
// infinities and NaN, and NaN outside the domain.
func unary(at func(float64) float64, eval func(bits, ball) ball) Func {
	return Func{
		Arity: 1,
		special: func(x []float64) (float64, bool) {
			y := at(x[0])
			return y, isSpecial(x[0]) || math.IsNaN(y)
		},
		eval: func(p bits, x []ball) ball { return eval(p, x[0]) },
	}
}

// smooth is unary for a function that is not special at zero.
func smooth(at func(float64) float64, eval func(bits, ball) ball) Func {
	f := unary(at, eval)
	f.special = func(x []float64) (float64, bool) {
		y := at(x[0])
		return y, x[0] != 0 && isSpecial(x[0]) || math.IsNaN(y)
	}
	return f
}

// binary is unary for two arguments.
func binary(at func(x, y float64) float64, eval func(p bits, x, y ball) ball) Func {
	return Func{
		Arity: 2,
		special: func(x []float64) (float64, bool) {
			z := at(x[0], x[1])
			return z, isSpecial(x[0]) || isSpecial(x[1]) || math.IsNaN(z)
		},
		eval: func(p bits, x []ball) ball { return eval(p, x[0], x[1]) },
	}
}

// native1 is a function whose float64 result is exact.
func native1(f func(float64) float64) Func {
	return Func{Arity: 1, special: func(x []float64) (float64, bool) { return f(x[0]), true }}
}

// native2 is native1 for two arguments.
func native2(f func(x, y float64) float64) Func {
	return Func{Arity: 2, special: func(x []float64) (float64, bool) { return f(x[0], x[1]), true }}
}

// pole gives f another special value.
func (f Func) pole(at, value float64) Func {
	rest := f.special
	f.special = func(x []float64) (float64, bool) {
		if x[0] == at {
			return value, true
		}
		return rest(x)
	}
	return f
}

func isSpecial(x float64) bool { return x == 0 || math.IsInf(x, 0) || math.IsNaN(x) }

func rsqrt(x float64) float64 { return 1 / math.Sqrt(x) }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func relu(x float64) float64 { return max(x, 0) }

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func leakyRelu(x, slope float64) float64 {
	if x > 0 {
		return x
	}
	return x * slope
}

func (p bits) slope(x, slope ball) ball {
	if x.sign() > 0 {
		return x
	}
	return p.mul(x, slope)
}

func elu(x, alpha float64) float64 {
	if x > 0 {
		return x
	}
	return alpha * math.Expm1(x)
}

// elu returns x for x > 0, and alpha·(e^x - 1) elsewhere.
func (p bits) elu(x, alpha ball) ball {
	if x.sign() > 0 {
		return x
	}
	return p.mul(alpha, p.expm1(x))
}

// remainder is Python's: it has the sign of y.
func remainder(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

func remainderBall(x, y ball) ball {
	r := math.Mod(x.float(), y.float())
	if r != 0 && (r < 0) != (y.sign() < 0) {
		return plus(number(r), y)
	}
	return number(r)
}

func clamp(x ball, low, high int) ball {
	switch {
	case x.mid.Cmp(integer(low).mid) < 0:
		return integer(low)
	case x.mid.Cmp(integer(high).mid) > 0:
		return integer(high)
	}
	return x
}

// log2 returns log x / log 2, exactly for powers of two.
func (p bits) log2(x ball) ball {
	if isPower2(x.mid) {
		return integer(x.size() - 1)
	}
	return p.quo(p.log(x), ln2.ball(p+guard))
}

// log10 returns log x / log 10, exactly for powers of ten.
func (p bits) log10(x ball) ball {
	power := big.NewFloat(1)
	for n := range 23 {
		if power.Cmp(x.mid) == 0 {
			return integer(n)
		}
		power.Mul(power, big.NewFloat(10))
	}
	return p.quo(p.log(x), p.log(integer(10)))
}

// signedPow is pow for negative x too; y is then an integer.
func (p bits) signedPow(x, y ball) ball {
	z := p.pow(x.abs(), y)
	if odd := y.mid.IsInt() && int(y.mid.MinPrec()) == y.size(); x.sign() < 0 && odd {
		return z.neg()
	}
	return z
}

// gelu returns x·Φ(x) = x/2 · erfc(-x/√2).
func (p bits) gelu(x ball) ball {
	q := p + guard
	return q.mul(x.scale(-1), q.erfc(q.quo(x.neg(), q.sqrt(integer(2)))))
}

// geluTanh returns x·(1 + tanh u)/2 = x/(1 + e^-2u), u = √(2/π)·(x + 0.044715·x³).
func (p bits) geluTanh(x ball) ball {
	q := p + guard
	cube := q.quo(q.mul(integer(44715), q.mul(x, q.mul(x, x))), integer(1000000))
	u := q.mul(q.sqrt(q.quo(integer(2), pi.ball(q+guard))), q.add(x, cube))
	return q.mul(x, q.sigmoid(u.scale(1)))
}
