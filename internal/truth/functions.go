package truth

import "math"

var (
	inf     = math.Inf(1)
	minus0  = math.Copysign(0, -1)
	halfPi  = math.Pi / 2
	ieeeNaN = math.NaN()
)

// Exponentials, logarithms, powers and roots.
var (
	Exp        = unary(bits.exp).limits(0, inf)
	Exp2       = unary(func(p bits, x ball) ball { return p.pow(integer(2), x) }).limits(0, inf)
	Expm1      = unary(bits.expm1).keepsZero().limits(-1, inf)
	Log        = unary(bits.log).on(0, inf).at(0, -inf).at(inf, inf)
	Log2       = unary(bits.log2).on(0, inf).at(0, -inf).at(inf, inf)
	Log10      = unary(bits.log10).on(0, inf).at(0, -inf).at(inf, inf)
	Log1p      = unary(bits.log1p).keepsZero().on(-1, inf).at(-1, -inf).at(inf, inf)
	Sqrt       = unary(bits.sqrt).keepsZero().on(0, inf).at(inf, inf)
	Rsqrt      = unary(func(p bits, x ball) ball { return p.quo(integer(1), p.sqrt(x)) }).on(0, inf).poleAtZero().at(inf, 0)
	Reciprocal = unary(func(p bits, x ball) ball { return p.quo(integer(1), x) }).poleAtZero().limits(minus0, 0)
	Square     = unary(func(p bits, x ball) ball { return p.mul(x, x) }).limits(inf, inf)
	Pow        = binary(powLimit, bits.signedPow)
)

// Trigonometric and hyperbolic functions.
var (
	Sin     = unary(func(p bits, x ball) ball { s, _ := p.sinCos(x); return s }).keepsZero()
	Cos     = unary(func(p bits, x ball) ball { _, c := p.sinCos(x); return c })
	Tan     = unary(bits.tan).keepsZero()
	Asin    = unary(bits.asin).keepsZero().on(-1, 1)
	Acos    = unary(bits.acos).on(-1, 1).at(1, 0)
	Atan    = unary(bits.atan).keepsZero().limits(-halfPi, halfPi)
	Atan2   = binary(atan2Limit, bits.atan2)
	Sinh    = unary(bits.sinh).keepsZero().limits(-inf, inf)
	Cosh    = unary(bits.cosh).limits(inf, inf)
	Tanh    = unary(bits.tanh).keepsZero().limits(-1, 1)
	Asinh   = unary(bits.asinh).keepsZero().limits(-inf, inf)
	Acosh   = unary(bits.acosh).on(1, inf).at(1, 0).at(inf, inf)
	Atanh   = unary(bits.atanh).keepsZero().on(-1, 1).at(1, inf).at(-1, -inf)
	Sinc    = unary(bits.sinc).atIntegers(0).at(0, 1)
	Hypot   = binary(hypotLimit, func(p bits, x, y ball) ball { return p.sqrt(p.add(p.mul(x, x), p.mul(y, y))) }).smooth()
	Rad2deg = unary(func(p bits, x ball) ball { return p.quo(p.mul(x, integer(180)), pi.ball(p+guard)) }).keepsZero().limits(-inf, inf)
	Deg2rad = unary(func(p bits, x ball) ball { return p.quo(p.mul(x, pi.ball(p+guard)), integer(180)) }).keepsZero().limits(-inf, inf)
)

// Functions of probability and entropy.
var (
	Erf   = unary(bits.erf).keepsZero().limits(-1, 1)
	Erfc  = unary(bits.erfc).limits(2, 0)
	Ndtr  = unary(bits.ndtr).limits(0, 1)
	Logit = unary(bits.logit).on(0, 1).at(0, -inf).at(1, inf)
	// LogitWithin is Logit of its first argument limited to [eps, 1-eps].
	LogitWithin = Func{2, logitWithinLimit, func(p bits, x []ball) ball { return p.logitWithin(x[0], x[1]) }}
	LogAddExp   = binary(largerLimit, bits.logAddExp).smooth()
	LogAddExp2  = binary(largerLimit, bits.logAddExp2).smooth()
	XLogY       = binary(xlogyLimit, func(p bits, x, y ball) ball { return p.mul(x, p.log(y)) })
	XLog1pY     = Func{2, xlog1pyLimit, func(p bits, x []ball) ball { return p.mul(x[0], p.log1p(x[1])) }}
	Entr        = unary(func(p bits, x ball) ball { return p.mul(x, p.log(x)).neg() }).below(0, -inf).at(0, 0).at(inf, -inf)
)

// Activations without parameters.
var (
	Sigmoid    = unary(bits.sigmoid).limits(0, 1)
	LogSigmoid = unary(func(p bits, x ball) ball { return p.softplus(x.neg()).neg() }).limits(-inf, minus0)
	Silu       = unary(func(p bits, x ball) ball { return p.mul(x, p.sigmoid(x)) }).keepsZero().at(inf, inf)
	Mish       = unary(func(p bits, x ball) ball { return p.mul(x, p.tanh(p.softplus(x))) }).keepsZero().at(inf, inf)
	Gelu       = unary(bits.gelu).keepsZero().at(inf, inf)
	// GeluTanh is PyTorch's approximation of Gelu.
	GeluTanh    = unary(bits.geluTanh).keepsZero().at(inf, inf)
	Selu        = unary(bits.selu).keepsZero().limits(-seluLimit, inf)
	Softsign    = unary(func(p bits, x ball) ball { return p.quo(x, plus(integer(1), x.abs())) }).keepsZero()
	Tanhshrink  = unary(func(p bits, x ball) ball { return p.sub(x, p.tanh(x)) }).at(0, 0).limits(-inf, inf)
	Hardsigmoid = unary(func(p bits, x ball) ball { return p.quo(hardStep(x), integer(6)) }).limits(0, 1)
	Hardswish   = unary(func(p bits, x ball) ball { return p.quo(p.mul(x, hardStep(x)), integer(6)) }).keepsZero().at(inf, inf)
	Relu        = exactUnary(positive).at(0, 0).limits(0, inf)
	Relu6       = exactUnary(func(x ball) ball { return clamp(x, integer(0), integer(6)) }).at(0, 0).limits(0, 6)
)

// Activations whose arguments after the first are parameters, in the order in
// which PyTorch takes them.
var (
	LeakyRelu  = binary(leakyReluLimit, bits.slope)
	Elu        = binary(eluLimit, func(p bits, x, alpha ball) ball { return p.elu(x, alpha, x) })
	Celu       = binary(celuLimit, func(p bits, x, alpha ball) ball { return p.elu(x, alpha, p.quo(x, alpha)) })
	Softplus   = Func{3, softplusLimit, func(p bits, x []ball) ball { return p.softplusUpTo(x[0], x[1], x[2]) }}
	Hardshrink = selection(2, hardshrink)
	Softshrink = binary(softshrinkLimit, bits.softshrink)
	Hardtanh   = selection(3, func(x []float64) float64 { return min(max(x[0], x[1]), x[2]) })
	Threshold  = selection(3, threshold)
)

// Arithmetic. The last argument of Add, Sub and Rsub is the factor of other,
// that of Addcmul and Addcdiv the factor of the product and of the quotient.
var (
	Add     = Func{3, addLimit, func(p bits, x []ball) ball { return p.add(x[0], p.mul(x[1], x[2])) }}
	Sub     = Func{3, subLimit, func(p bits, x []ball) ball { return p.sub(x[0], p.mul(x[1], x[2])) }}
	Rsub    = Func{3, rsubLimit, func(p bits, x []ball) ball { return p.sub(x[1], p.mul(x[0], x[2])) }}
	Mul     = binary(func(x, y float64) float64 { return x * y }, bits.mul)
	Div     = binary(func(x, y float64) float64 { return x / y }, bits.quo)
	Ldexp   = binary(ldexpLimit, func(p bits, x, y ball) ball { return p.mul(x, p.pow(integer(2), y)) })
	Addcmul = Func{4, addcmulLimit, func(p bits, x []ball) ball { return p.add(x[0], p.mul(x[3], p.mul(x[1], x[2]))) }}
	Addcdiv = Func{4, addcdivLimit, func(p bits, x []ball) ball { return p.add(x[0], p.quo(p.mul(x[3], x[1]), x[2])) }}
	Lerp    = Func{3, lerpLimit, func(p bits, x []ball) ball { return p.add(x[0], p.mul(x[2], plus(x[1], x[0].neg()))) }}
	// Fmod has the sign of the dividend, Remainder that of the divisor.
	Fmod      = binary(fmodLimit, func(_ bits, x, y ball) ball { return fmod(x, y) })
	Remainder = binary(remainderLimit, func(_ bits, x, y ball) ball { return remainder(x, y) })
)

// Signs, integers and selections, whose results are exact.
var (
	Identity = exactUnary(func(x ball) ball { return x }).keepsZero().limits(-inf, inf)
	Neg      = exactUnary(ball.neg).limits(inf, -inf)
	Abs      = exactUnary(ball.abs).limits(inf, inf)
	// Sign is 0 for NaN, as PyTorch has it.
	Sign     = exactUnary(func(x ball) ball { return integer(x.sign()) }).at(0, 0).limits(-1, 1).atNaN(0)
	Floor    = exactUnary(floor).keepsZero().limits(-inf, inf)
	Ceil     = exactUnary(func(x ball) ball { return floor(x.neg()).neg() }).keepsZero().limits(-inf, inf)
	Trunc    = exactUnary(trunc).keepsZero().limits(-inf, inf)
	Round    = exactUnary(roundToEven).keepsZero().limits(-inf, inf)
	Frac     = exactUnary(func(x ball) ball { return plus(x, trunc(x).neg()) }).at(0, 0)
	Copysign = selection(2, func(x []float64) float64 { return withSignOf(x[0], x[1]) })
	Maximum  = selection(2, func(x []float64) float64 { return max(x[0], x[1]) })
	Minimum  = selection(2, func(x []float64) float64 { return min(x[0], x[1]) })
	// Fmax and Fmin of a NaN and a number are the number.
	Fmax = selection(2, func(x []float64) float64 { return fmax(x[0], x[1]) })
	Fmin = selection(2, func(x []float64) float64 { return -fmax(-x[0], -x[1]) })
)

// Constant returns the function that is v everywhere.
func Constant(v float64) Func { return selection(1, func([]float64) float64 { return v }) }

func fmax(x, y float64) float64 {
	switch {
	case math.IsNaN(x):
		return y
	case math.IsNaN(y):
		return x
	}
	return max(x, y)
}

func hardshrink(x []float64) float64 {
	if x[0] >= -x[1] && x[0] <= x[1] {
		return 0
	}
	return x[0]
}

func threshold(x []float64) float64 {
	if x[0] <= x[1] {
		return x[2]
	}
	return x[0]
}

func withSignOf(x, y float64) float64 {
	if math.Signbit(x) != math.Signbit(y) {
		return -x
	}
	return x
}
