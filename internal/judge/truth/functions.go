package truth

import (
	"math"
	"math/big"
	"slices"
)

// Lookup returns the function of an operator's id, such as "exp". Attributes
// are further arguments in the order of the operator's signature, as in
// "leaky_relu" (input, negative_slope) and "softplus" (input, beta, threshold),
// or make another name after a colon: "gelu:tanh" is the approximation of
// "gelu", and "add:alpha" (input, other, alpha) has the factor that "add" lacks.
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

	"sinc":       unary(sinc, bits.sinc).everyInteger(0),
	"rad2deg":    unary(func(x float64) float64 { return x }, func(p bits, x ball) ball { return p.quo(p.mul(x, integer(180)), pi.ball(p+guard)) }),
	"deg2rad":    unary(func(x float64) float64 { return x }, func(p bits, x ball) ball { return p.quo(p.mul(x, pi.ball(p+guard)), integer(180)) }),
	"logit":      smooth(logit, bits.logit).pole(0, math.Inf(-1)).pole(1, math.Inf(1)),
	"sigmoid":    unary(sigmoid, bits.sigmoid),
	"logsigmoid": smooth(func(x float64) float64 { return -math.Log1p(math.Exp(-x)) }, func(p bits, x ball) ball { return p.softplus(x.neg()).neg() }),
	"softplus":   {Arity: 3, special: softplus, eval: func(p bits, x []ball) ball { return p.softplusAbove(x[0], x[1], x[2]) }},
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
	"sgn":   native1(sign),
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
	"logaddexp":  binary(logAddExp, bits.logAddExp).smooth(),
	"xlogy":      binary(xlogy, func(p bits, x, y ball) ball { return p.mul(x, p.log(y)) }),
	"fmod":       native2(math.Mod),
	"remainder":  binary(remainder, func(p bits, x, y ball) ball { return remainderBall(x, y) }),
	"maximum":    native2(func(x, y float64) float64 { return max(x, y) }),
	"fmax":       native2(fmax),
	"fmin":       native2(func(x, y float64) float64 { return -fmax(-x, -y) }),
	"min.other":  native2(func(x, y float64) float64 { return min(x, y) }),
	"max.other":  native2(func(x, y float64) float64 { return max(x, y) }),
	"minimum":    native2(func(x, y float64) float64 { return min(x, y) }),
	"copysign":   native2(math.Copysign),
	"add:alpha":  {Arity: 3, special: addAlpha, eval: func(p bits, x []ball) ball { return p.add(x[0], p.mul(x[1], x[2])) }},
	"leaky_relu": binary(leakyRelu, func(p bits, x, slope ball) ball { return p.slope(x, slope) }),
	"prelu":      binary(leakyRelu, func(p bits, x, slope ball) ball { return p.slope(x, slope) }),
	"elu":        binary(elu, func(p bits, x, alpha ball) ball { return p.elu(x, alpha, x) }),
	"celu":       binary(celu, func(p bits, x, alpha ball) ball { return p.elu(x, alpha, p.quo(x, alpha)) }),
	"selu":       unary(selu, bits.selu),
	"hardshrink": native2(hardshrink),
	"softshrink": binary(softshrink, bits.softshrink),
	"hardtanh":   native3(func(x, low, high float64) float64 { return min(max(x, low), high) }),
	"threshold":  native3(threshold),
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
	return unary(at, eval).smooth()
}

// smooth makes zeros no special arguments.
func (f Func) smooth() Func {
	rest := f.special
	f.special = func(x []float64) (float64, bool) {
		y, _ := rest(x)
		return y, math.IsNaN(y) || slices.ContainsFunc(x, func(v float64) bool { return v != 0 && isSpecial(v) })
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

// native3 is native1 for three arguments.
func native3(f func(x, y, z float64) float64) Func {
	return Func{Arity: 3, special: func(x []float64) (float64, bool) { return f(x[0], x[1], x[2]), true }}
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

// everyInteger gives f the value at every integer but zero.
func (f Func) everyInteger(value float64) Func {
	rest := f.special
	f.special = func(x []float64) (float64, bool) {
		if x[0] != 0 && x[0] == math.Trunc(x[0]) && !math.IsInf(x[0], 0) {
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

// sign is 0 for NaN, as PyTorch has it.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// sinc is sin(πx)/(πx).
func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

func (p bits) sinc(x ball) ball {
	q := p + guard + bits(max(0, x.size()))
	t := q.mul(x, pi.ball(q+guard))
	s, _ := q.sinCos(t)
	return q.quo(s, t)
}

func logit(x float64) float64 { return math.Log(x / (1 - x)) }

// logit returns log(x/(1-x)), from 1/4 on log1p((2x-1)/(1-x)).
func (p bits) logit(x ball) ball {
	if x.size() < -1 {
		return p.log(p.quo(x, plus(integer(1), x.neg())))
	}
	return p.log1p(p.quo(plus(x.scale(1), integer(-1)), plus(integer(1), x.neg())))
}

// logAddExp is the special values of log(e^x + e^y).
func logAddExp(x, y float64) float64 {
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return max(x, y)
	}
	return x + y
}

func (p bits) logAddExp(x, y ball) ball {
	if x.mid.Cmp(y.mid) < 0 {
		x, y = y, x
	}
	return p.add(x, p.log1p(p.exp(plus(y, x.neg()))))
}

// xlogy is the special values of x·log y, which is 0 for x = 0.
func xlogy(x, y float64) float64 {
	if x == 0 && !math.IsNaN(y) {
		return 0
	}
	return x * math.Log(y)
}

// fmax is the larger number, where one is NaN the other.
func fmax(x, y float64) float64 {
	switch {
	case math.IsNaN(x):
		return y
	case math.IsNaN(y):
		return x
	}
	return max(x, y)
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

// addAlpha is x + alpha·y where one of (x, y, alpha) is special.
func addAlpha(x []float64) (float64, bool) {
	special := isSpecial(x[1]) || isSpecial(x[2]) || math.IsInf(x[0], 0) || math.IsNaN(x[0])
	return x[0] + x[1]*x[2], special
}

func elu(x, alpha float64) float64 {
	if x > 0 {
		return x
	}
	return alpha * math.Expm1(x)
}

func celu(x, alpha float64) float64 {
	if x > 0 {
		return x
	}
	return alpha * math.Expm1(x/alpha)
}

// elu returns x for x > 0, and alpha·(e^inner - 1) elsewhere.
func (p bits) elu(x, alpha, inner ball) ball {
	if x.sign() > 0 {
		return x
	}
	return p.mul(alpha, p.expm1(inner))
}

// selu is the special values of selu.
func selu(x float64) float64 {
	if math.IsInf(x, -1) {
		return -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717
	}
	return x
}

// selu is scale·elu(x, alpha) with the 31 decimal places of PyTorch's constants.
func (p bits) selu(x ball) ball {
	alpha, scale := p.decimal("16732632423543772848170429916717"), p.decimal("10507009873554804934193349852946")
	return p.mul(scale, p.elu(x, alpha, x))
}

// decimal returns digits·10^-31.
func (p bits) decimal(digits string) ball {
	n, _ := new(big.Int).SetString(digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(digits)-1)), nil)
	return p.quo(exactly(new(big.Float).SetInt(n)), exactly(new(big.Float).SetInt(power)))
}

// softplus is the special values of log(1 + e^(beta·x))/beta, which PyTorch
// makes x where beta·x > threshold.
func softplus(args []float64) (float64, bool) {
	x, beta, threshold := args[0], args[1], args[2]
	y := math.Log1p(math.Exp(x*beta)) / beta
	if x*beta > threshold {
		y = x
	}
	return y, x != 0 && isSpecial(x) || isSpecial(beta) || math.IsNaN(threshold) || math.IsInf(threshold, 0)
}

func (p bits) softplusAbove(x, beta, threshold ball) ball {
	t := p.mul(x, beta)
	if t.mid.Cmp(threshold.mid) > 0 {
		return x
	}
	return p.quo(p.softplus(t), beta)
}

func hardshrink(x, lambda float64) float64 {
	if x >= -lambda && x <= lambda {
		return 0
	}
	return x
}

func softshrink(x, lambda float64) float64 {
	switch {
	case x > lambda:
		return x - lambda
	case x < -lambda:
		return x + lambda
	}
	return 0
}

func (p bits) softshrink(x, lambda ball) ball {
	if softshrink(x.float(), lambda.float()) == 0 {
		return integer(0)
	}
	return p.sub(x, lambda.abs().withSign(x))
}

func threshold(x, limit, value float64) float64 {
	if x <= limit {
		return value
	}
	return x
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
