package ops

import (
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/internal/truth"
	"plumb/op"
	"plumb/tensor"
)

// mathOps are the functions of analysis beyond those of unaryOps.
var mathOps = []*op.Def{
	{
		Sig:     "sin(Tensor input) -> Tensor",
		Names:   both("sin"),
		Doc:     "Sine of each element: sin x. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Sin32, kernel.Each64(kernel.Sin), cmplx.Sin),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("cos", x) }),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Sin),
		Tol:     ulpTol(4, "sin: "+openCL),
	},
	{
		Sig:     "cos(Tensor input) -> Tensor",
		Names:   both("cos"),
		Doc:     "Cosine of each element: cos x. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Cos32, kernel.Each64(kernel.Cos), cmplx.Cos),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Neg(g.Op("sin", x)) }),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Cos),
		Tol:     ulpTol(4, "cos: "+openCL),
	},
	{
		Sig:     "tan(Tensor input) -> Tensor",
		Names:   both("tan"),
		Doc:     "Tangent of each element: sin x / cos x. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Tan32, kernel.Each64(kernel.Tan), kernel.TanComplex),
		Grad:    slopeOfResult(func(g *op.Grad, y op.Value) op.Value { return g.Add(g.Mul(y, y), 1) }),
		Sample:  sampleUnary(-1.3, 1.3),
		Exact:   exactly(truth.Tan),
		Tol:     ulpTol(5, "tan: "+openCL),
	},
	{
		Sig:     "asin(Tensor input) -> Tensor",
		Names:   both("asin", "arcsin"),
		Doc:     "Arc sine of each element, in [-π/2, π/2]. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Asin32, kernel.Each64(kernel.Asin), kernel.AsinComplex),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("rsqrt", g.Sub(1, g.Mul(x, x))) }),
		Sample:  sampleUnary(-0.9, 0.9),
		Exact:   exactly(truth.Asin),
		Tol:     ulpTol(4, "asin: "+openCL),
	},
	{
		Sig:     "acos(Tensor input) -> Tensor",
		Names:   both("acos", "arccos"),
		Doc:     "Arc cosine of each element, in [0, π]. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Acos32, kernel.Each64(kernel.Acos), kernel.AcosComplex),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Neg(g.Op("rsqrt", g.Sub(1, g.Mul(x, x)))) }),
		Sample:  sampleUnary(-0.9, 0.9),
		Exact:   exactly(truth.Acos),
		Tol:     ulpTol(4, "acos: "+openCL),
	},
	{
		Sig:     "atan(Tensor input) -> Tensor",
		Names:   both("atan", "arctan"),
		Doc:     "Arc tangent of each element, in [-π/2, π/2]. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Atan32, kernel.Each64(math.Atan), kernel.AtanComplex),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("reciprocal", g.Add(g.Mul(x, x), 1)) }),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Atan),
		Tol:     ulpTol(5, "atan: "+openCL),
	},
	{
		Sig:     "sinh(Tensor input) -> Tensor",
		Names:   both("sinh"),
		Doc:     "Hyperbolic sine of each element: (e^x - e^-x) / 2. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Sinh32, kernel.Sinh64, cmplx.Sinh),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("cosh", x) }),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Sinh),
		Tol:     ulpTol(4, "sinh: "+openCL),
	},
	{
		Sig:     "cosh(Tensor input) -> Tensor",
		Names:   both("cosh"),
		Doc:     "Hyperbolic cosine of each element: (e^x + e^-x) / 2. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Cosh32, kernel.Cosh64, cmplx.Cosh),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("sinh", x) }),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Cosh),
		Tol:     ulpTol(4, "cosh: "+openCL),
	},
	{
		Sig:     "asinh(Tensor input) -> Tensor",
		InPlace: op.InPlaceRules{NoBackward: noInPlaceBackward("asinh")},
		Names:   both("asinh", "arcsinh"),
		Doc:     "Inverse hyperbolic sine of each element: log(x + √(x² + 1)). Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Asinh32, kernel.Asinh64, kernel.AsinhComplex),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("rsqrt", g.Add(g.Mul(x, x), 1)) }),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Asinh),
		Tol:     ulpTol(4, "asinh: "+openCL),
	},
	{
		Sig:     "acosh(Tensor input) -> Tensor",
		InPlace: op.InPlaceRules{NoBackward: noInPlaceBackward("acosh")},
		Names:   both("acosh", "arccosh"),
		Doc:     "Inverse hyperbolic cosine of each element: log(x + √(x² - 1)). Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Acosh32, kernel.Acosh64, kernel.AcoshComplex),
		Grad:    slope(acoshSlope),
		Sample:  sampleUnary(1.2, 4),
		Exact:   exactly(truth.Acosh),
		Tol:     ulpTol(4, "acosh: "+openCL),
	},
	{
		Sig:     "atanh(Tensor input) -> Tensor",
		InPlace: op.InPlaceRules{NoBackward: noInPlaceBackward("atanh")},
		Names:   both("atanh", "arctanh"),
		Doc:     "Inverse hyperbolic tangent of each element: log((1 + x) / (1 - x)) / 2. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Atanh32, kernel.Atanh64, kernel.AtanhComplex),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("reciprocal", g.Sub(1, g.Mul(x, x))) }),
		Sample:  sampleUnary(-0.9, 0.9),
		Exact:   exactly(truth.Atanh),
		Tol:     ulpTol(5, "atanh: "+openCL),
	},
	{
		Sig:     "log1p(Tensor input) -> Tensor",
		Names:   append(both("log1p"), "torch.special.log1p"),
		Doc:     "Natural logarithm near 1 of each element: log(1 + x). Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Log1pOf32, kernel.Log1pOf64, nil),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("reciprocal", g.Add(x, 1)) }),
		Sample:  sampleUnary(-0.5, 3),
		Exact:   exactly(truth.Log1p),
		Tol:     ulpTol(2, "log1p: "+openCL),
	},
	{
		Sig:     "log2(Tensor input) -> Tensor",
		Names:   both("log2"),
		Doc:     "Binary logarithm of each element: log x / log 2. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Log2Of32, kernel.Log2Of64, kernel.Log2Complex),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("reciprocal", g.Mul(x, math.Ln2)) }),
		Sample:  sampleUnary(0.5, 3),
		Exact:   exactly(truth.Log2),
		Tol:     ulpTol(3, "log2: "+openCL),
	},
	{
		Sig:     "log10(Tensor input) -> Tensor",
		Names:   both("log10"),
		Doc:     "Decimal logarithm of each element: log x / log 10. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Log10Of32, kernel.Log10Of64, kernel.Log10Complex),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("reciprocal", g.Mul(x, math.Ln10)) }),
		Sample:  sampleUnary(0.5, 3),
		Exact:   exactly(truth.Log10),
		Tol:     ulpTol(3, "log10: "+openCL),
	},
	{
		Sig:     "expm1(Tensor input) -> Tensor",
		Names:   append(both("expm1"), "torch.special.expm1"),
		Doc:     "Exponential of each element, less one: e^x - 1. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Expm1Of32, kernel.Expm1Of64, nil),
		Grad:    slopeOfResult(func(g *op.Grad, y op.Value) op.Value { return g.Add(y, 1) }),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Expm1),
		Tol:     ulpTol(3, "expm1: "+openCL),
	},
	{
		Sig:     "exp2(Tensor input) -> Tensor",
		Names:   append(both("exp2"), "torch.special.exp2"),
		Doc:     "Power of two of each element: 2^x. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Exp2Of32, kernel.Each64(math.Exp2), nil),
		Grad:    slopeOfResult(func(g *op.Grad, y op.Value) op.Value { return g.Mul(y, math.Ln2) }),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Exp2),
		Tol:     ulpTol(3, "exp2: "+openCL),
	},
	{
		Sig:     "erfc(Tensor input) -> Tensor",
		Names:   append(both("erfc"), "torch.special.erfc"),
		Doc:     "Complementary error function of each element: 1 - erf x. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Erfc32, kernel.Each64(math.Erfc), nil),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Mul(g.Op("exp", g.Neg(g.Mul(x, x))), -2/math.SqrtPi) }),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Erfc),
		Tol:     ulpTol(16, "erfc: "+openCL),
	},
	{
		Sig:     "reciprocal(Tensor input) -> Tensor",
		Names:   both("reciprocal"),
		Doc:     "Reciprocal of each element: 1 / x. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: unary{f32: kernel.Reciprocal[float32], f64: kernel.Reciprocal[float64], c128: kernel.EachComplex(kernel.ReciprocalComplex)}.kernels(),
		Grad:    slopeOfResult(func(g *op.Grad, y op.Value) op.Value { return g.Neg(g.Mul(y, y)) }),
		Sample:  sampleUnary(0.5, 3),
		Exact:   exactly(truth.Reciprocal),
		Tol:     ulpTol(2.5, "division: "+openCL),
	},
	{
		Sig:     "rsqrt(Tensor input) -> Tensor",
		Names:   both("rsqrt"),
		Doc:     "Reciprocal square root of each element: 1 / √x. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: throughBoth(kernel.Rsqrt32, kernel.Each64(kernel.Rsqrt), kernel.RsqrtComplex),
		Grad:    slopeOfResult(func(g *op.Grad, y op.Value) op.Value { return g.Mul(g.Mul(g.Mul(y, y), y), -0.5) }),
		Sample:  sampleUnary(0.5, 3),
		Exact:   exactly(truth.Rsqrt),
		Tol:     ulpTol(2, "rsqrt: "+openCL),
	},
	{
		Sig:     "square(Tensor input) -> Tensor",
		Names:   both("square"),
		Doc:     "Square of each element: x². Bool gives int64.",
		SBP:     pointwise,
		Infer:   elementwise(func(a op.Args) tensor.DType { return squareType(a.Value(arg.Input).DType()) }, arg.Input),
		Kernels: unary{kernel.Square[float32], kernel.Square[float64], kernel.Square[int64], kernel.EachComplex(func(z complex128) complex128 { return z * z })}.kernels(),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Mul(x, 2) }),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Square),
		Tol:     ulpTol(1, "one rounding: "+openCL),
	},
	rounding("floor", "Largest integer not above each element: ⌊x⌋.", math.Floor, truth.Floor, both("floor")...),
	rounding("ceil", "Smallest integer not below each element: ⌈x⌉.", math.Ceil, truth.Ceil, both("ceil")...),
	rounding("round", "Integer nearest to each element, ties to even.", math.RoundToEven, truth.Round, append(both("round"), "torch.special.round")...),
	rounding("trunc", "Each element rounded towards zero.", math.Trunc, truth.Trunc, both("trunc", "fix")...),
	{
		Sig:     "frac(Tensor input) -> Tensor",
		Names:   both("frac"),
		Doc:     "Fraction of each element: x - trunc(x).",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...),
		Infer:   sameAs(arg.Input),
		Kernels: through(kernel.Frac, nil),
		Grad:    op.Gradient((*op.Grad).G),
		Sample:  sampleFractions,
		Exact:   exactly(truth.Frac),
		Tol:     exactTol("the low bits of the input"),
	},
}

// rounding is an operator that results in integers; integers are themselves.
// Its gradient is zero.
func rounding(id, doc string, f func(float64) float64, t truth.Func, names ...string) *op.Def {
	return &op.Def{
		Sig:     id + "(Tensor input) -> Tensor",
		Names:   names,
		Doc:     doc + " Its gradient is 0.",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, append(complexTypes, tensor.Bool)...),
		Infer:   sameAs(arg.Input),
		Kernels: unary{f32: kernel.Each32(f), f64: kernel.Each64(f), i64: kernel.Copy[int64]}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return zeros(g, g.Value(arg.Input)) }),
		Sample:  sampleFractions,
		Exact:   exactly(t),
		Tol:     exactTol("an integer"),
	}
}

// through are the kernels of functions of one number, computed in float64 and
// complex128; c is nil where there is no complex one.
func through(f func(float64) float64, c func(complex128) complex128) []op.Kernel {
	return throughBoth(kernel.Each32(f), kernel.Each64(f), c)
}

// throughBoth is through with block functions: the short one is for the dtypes
// that are rounded to 24 bits or fewer.
func throughBoth(short func(dst, a []float32), full func(dst, a []float64), c func(complex128) complex128) []op.Kernel {
	u := unary{f32: short, f64: full}
	if c != nil {
		u.c128 = kernel.EachComplex(c)
	}
	return u.kernels()
}

// slope is the gradient of a function whose derivative d writes from the input.
func slope(d func(g *op.Grad, x op.Value) op.Value) func(*op.Grad) {
	return op.Gradient(func(g *op.Grad) op.Value {
		return g.Mul(wide(g, g.G()), conj(g, d(g, wide(g, g.Value(arg.Input)))))
	})
}

// slopeOfResult is slope for a derivative that is written from the result.
func slopeOfResult(d func(g *op.Grad, y op.Value) op.Value) func(*op.Grad) {
	return op.Gradient(func(g *op.Grad) op.Value {
		return g.Mul(wide(g, g.G()), conj(g, d(g, wide(g, g.Out[0]))))
	})
}

// acoshSlope is 1 / √(x² - 1); for complex x on the principal branch.
func acoshSlope(g *op.Grad, x op.Value) op.Value {
	if x.DType().IsComplex() {
		return g.Mul(g.Op("rsqrt", g.Add(x, 1)), g.Op("rsqrt", g.Sub(x, 1)))
	}
	return g.Op("rsqrt", g.Sub(g.Mul(x, x), 1))
}

// sampleFractions draws elements whose fractions are in [0.1, 0.45), away from
// integers and from ties.
func sampleFractions(s *op.Sampler) []any {
	t := s.Tensor(-4, 4, s.Shape(0, 4)...)
	for i := range t.Len() {
		whole := math.Floor(t.Float(i))
		t.Set(i, complex(whole+0.1+0.35*(t.Float(i)-whole), 0))
	}
	return []any{t}
}

// squareType is the dtype of x² with a Python integer as the exponent.
func squareType(d tensor.DType) tensor.DType {
	if d == tensor.Bool {
		return tensor.I64
	}
	return d
}
