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

const openCL = "OpenCL C 3.0 §7.4 full profile"

var unaryOps = []*op.Def{
	{
		Sig:       "neg(Tensor input) -> Tensor",
		SBP:       linearly,
		Magnitude: "clone",
		Names:     append(both("neg", "negative"), "operator.neg"),
		Doc:       "Negates each element: -x.",
		Traits:    op.Involution,
		Reject:    checkNeg,
		Infer:     sameAs(arg.Input),
		Kernels:   unary{kernel.Neg32, kernel.Neg[float64], kernel.Neg[int64], kernel.Neg[complex128]}.kernels(),
		Grad:      op.Gradient(func(g *op.Grad) op.Value { return g.Neg(g.G()) }),
		Sample:    sampleUnary(-2, 2),
		Exact:     exactly(truth.Neg),
		Tol:       exactTol("a change of sign"),
	},
	{
		Sig:     "abs(Tensor input) -> Tensor",
		InPlace: op.InPlaceRules{Fit: fitAbs},
		Names:   append(both("abs", "absolute"), "operator.abs"),
		Doc:     "Absolute value of each element: |x|; the modulus of a complex number.",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, tensor.Bool),
		Infer:   elementwise(func(a op.Args) tensor.DType { return a.Value(arg.Input).DType().Real() }, arg.Input),
		Kernels: append(unary{f32: kernel.Abs32, f64: kernel.Abs64, i64: kernel.AbsInt}.kernels(), op.Kernel{
			Name: "complex", When: op.DTypeIn(arg.Input, complexTypes...), Run: runAbs,
		}),
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Mul(g.G(), g.Op("sgn", g.Value(arg.Input))) }),
		Sample: sampleDistinct,
		Exact:  exactly(truth.Abs),
		Tol:    ulpTol(4, "exact for reals; hypot 4 ULP for complex: "+openCL),
	},
	{
		Sig:     "sign(Tensor input) -> Tensor",
		Names:   both("sign"),
		Doc:     "Sign of each real element: -1, 0 or 1; 0 for NaN.",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   sameAs(arg.Input),
		Kernels: unary{f32: kernel.Sign[float32], f64: kernel.Sign[float64], i64: kernel.Sign[int64]}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return zeros(g, g.Value(arg.Input)) }),
		Sample:  sampleDistinct,
		Exact:   exactly(truth.Sign),
		Tol:     exactTol("a comparison with zero"),
	},
	{
		Sig:     "sgn(Tensor input) -> Tensor",
		Names:   both("sgn"),
		Doc:     "Sign of each element: x / |x|, and 0 for 0.",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Infer:   sameAs(arg.Input),
		Kernels: unary{kernel.Sign[float32], kernel.Sign[float64], kernel.Sign[int64], kernel.EachComplex(kernel.SignComplex)}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return sgnGrad(g) }),
		Saves:   savesTensors,
		Sample:  sampleDistinct,
		Exact:   exactly(truth.Sign),
		Tol:     ulpTol(4, "exact for reals; hypot 4 ULP for complex: "+openCL),
	},
	{
		Sig:       "conj(Tensor input) -> Tensor",
		SBP:       linearly,
		Magnitude: "clone",
		Names:     both("conj", "conj_physical"),
		Itself:    func(a op.Args) bool { return !a.Value(arg.Input).DType().IsComplex() },
		Doc:       "Complex conjugate of each element; a real element itself.",
		Traits:    op.Involution,
		Infer:     sameAs(arg.Input),
		Kernels:   unary{kernel.Copy[float32], kernel.Copy[float64], kernel.Copy[int64], kernel.EachComplex(cmplx.Conj)}.kernels(),
		Grad:      op.Gradient(func(g *op.Grad) op.Value { return g.Op("conj", g.G()) }),
		Sample:    sampleUnary(-2, 2),
		Exact:     exactly(truth.Identity),
		Tol:       exactTol("a change of sign"),
	},
	{
		Sig:     "exp(Tensor input) -> Tensor",
		Names:   both("exp"),
		Doc:     "Exponential of each element: e^x. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: unary{f32: kernel.Exp32, f64: kernel.Exp64, c128: kernel.EachComplex(cmplx.Exp)}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Mul(g.G(), conj(g, g.Out[0])) }),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Exp),
		Tol:     ulpTol(3, "exp: "+openCL),
	},
	{
		Sig:     "log(Tensor input) -> Tensor",
		Names:   both("log"),
		Doc:     "Natural logarithm of each element. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: unary{f32: kernel.Log32, f64: kernel.Log64, c128: kernel.EachComplex(kernel.LogComplex)}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Div(g.G(), conj(g, g.Value(arg.Input))) }),
		Sample:  sampleUnary(0.5, 3),
		Exact:   exactly(truth.Log),
		Tol:     ulpTol(3, "log: "+openCL),
	},
	{
		Sig:     "sqrt(Tensor input) -> Tensor",
		Names:   both("sqrt"),
		Doc:     "Square root of each element. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: unary{f32: kernel.Sqrt32, f64: kernel.Sqrt[float64], c128: kernel.EachComplex(cmplx.Sqrt)}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Div(g.G(), g.Mul(conj(g, g.Out[0]), 2)) }),
		Sample:  sampleUnary(0.5, 3),
		Exact:   exactly(truth.Sqrt),
		Tol:     ulpTol(3, "sqrt: "+openCL),
	},
	{
		Sig:     "tanh(Tensor input) -> Tensor",
		Names:   append(both("tanh"), "torch.nn.functional.tanh"),
		Doc:     "Hyperbolic tangent of each element. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: unary{f32: kernel.Tanh32, f64: kernel.Tanh64, c128: kernel.EachComplex(kernel.TanhComplex)}.kernels(),
		Grad:    op.Gradient(tanhGrad),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Tanh),
		Tol:     ulpTol(5, "tanh: "+openCL),
	},
	{
		Sig:     "sigmoid(Tensor input) -> Tensor",
		Names:   append(both("sigmoid"), "torch.nn.functional.sigmoid", "torch.special.expit"),
		Doc:     "Logistic function of each element: 1 / (1 + e^-x). Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: unary{f32: kernel.Sigmoid32, f64: kernel.Sigmoid64, c128: kernel.EachComplex(kernel.SigmoidComplex)}.kernels(),
		Grad:    op.Gradient(sigmoidGrad),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Sigmoid),
		Tol:     vanishing(ulpTol(6, "exp 3 ULP, then an addition and a division of 2.5: "+openCL)),
	},
	{
		Sig:     "erf(Tensor input) -> Tensor",
		Names:   append(both("erf"), "torch.special.erf"),
		Doc:     "Error function of each element: 2/√π ∫₀ˣ e^(-t²) dt. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: unary{f32: kernel.Erf32, f64: kernel.Each64(math.Erf)}.kernels(),
		Grad:    op.Gradient(erfGrad),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Erf),
		Tol:     ulpTol(16, "erf: "+openCL),
	},
	{
		Sig:     "relu(Tensor input, bool inplace=False) -> Tensor",
		Names:   append(both("relu"), "torch.nn.functional.relu"),
		Doc:     "Rectified linear unit: max(x, 0). Its gradient at 0 is 0.",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Reject:  firstError(rejectTypes(arg.Input, append(complexTypes, tensor.Bool)...)),
		Infer:   sameAs(arg.Input),
		Kernels: unary{f32: kernel.Relu32, f64: kernel.Relu[float64], i64: kernel.ReluInt}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Op("where", g.Op("le", g.Out[0], 0), 0.0, g.G()) }),
		Sample:  sampleDistinct,
		Exact:   exactly(truth.Relu),
		Tol:     selectTol("the input or zero"),
	},
	{
		Sig:     "leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor",
		InPlace: op.InPlaceRules{NoBackward: negativeSlope(arg.NegativeSlope, "leakyReLu")},
		More:    []string{"leaky_relu(Tensor input, Scalar negative_slope, bool inplace=False) -> Tensor"},
		Names:   []string{"torch.nn.functional.leaky_relu"},
		Doc:     "Leaky rectified linear unit: x for x > 0, negative_slope·x elsewhere, and so its gradient.",
		SBP:     pointwise,
		Reject:  firstError(rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...), realSlope),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(leakyReluLanes, unary{f32: kernel.Relu[float32], f64: kernel.Relu[float64]}),
		Grad:    op.Gradient(leakyReluGrad),
		Sample:  func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...), s.Float(-1, 1)} },
		Exact:   exactly(truth.LeakyRelu),
		Tol:     ulpTol(1, "one multiplication"),
	},
	{
		Sig:     "gelu(Tensor input, *, str approximate='none') -> Tensor",
		Names:   []string{"torch.nn.functional.gelu"},
		Doc:     "Gaussian error linear unit: x·Φ(x) with the normal distribution function Φ; approximate='tanh' gives x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2.",
		SBP:     pointwise,
		Reject:  firstError(rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...), knownApproximation),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(geluLanes, unary{f32: kernel.Gelu32, f64: kernel.Gelu64}),
		Formula: geluFormula,
		Grad:    op.Gradient(geluGrad),
		Sample:  sampleGelu,
		Exact:   exactGelu,
		Tol: op.Tol{
			Class: op.Accumulating, Terms: func(op.Args) int { return 2 },
			Reason: "PyTorch computes x/2 + x/2·erf(x/√2), whose terms cancel for x < 0",
		},
	},
}

func checkNeg(a op.Args) error {
	if a.Value(arg.Input).DType() == tensor.Bool {
		return op.RuntimeError("Negation, the `-` operator, on a bool tensor is not supported")
	}
	return nil
}

func runAbs(c *op.Run) error {
	kernel.Map1(c.Out[0], c.Tensor(arg.Input), kernel.AbsComplex)
	return nil
}

func tanhGrad(g *op.Grad) op.Value {
	y := wide(g, g.Out[0])
	return g.Mul(wide(g, g.G()), conj(g, g.Sub(1, g.Mul(y, y))))
}

func sigmoidGrad(g *op.Grad) op.Value {
	y := wide(g, g.Out[0])
	return g.Mul(wide(g, g.G()), conj(g, g.Mul(g.Sub(1, y), y)))
}

func erfGrad(g *op.Grad) op.Value {
	x := wide(g, g.Value(arg.Input))
	return g.Mul(wide(g, g.G()), g.Mul(g.Op("exp", g.Neg(g.Mul(x, x))), 2/math.SqrtPi))
}

func leakyReluLanes(a op.Args) unary {
	slope := number(a, arg.NegativeSlopeScalar).Float()
	return unary{f32: kernel.LeakyRelu(float32(slope)), f64: kernel.LeakyRelu(slope)}
}

func leakyReluGrad(g *op.Grad) op.Value {
	return g.Op("where", g.Op("gt", g.Value(arg.Input), 0), g.G(), g.Mul(g.G(), number(g.Args, arg.NegativeSlopeScalar)))
}

func geluLanes(a op.Args) unary {
	if a.Str(arg.Approximate) == "tanh" {
		return unary{f32: kernel.GeluTanh32, f64: kernel.GeluTanh64}
	}
	return unary{f32: kernel.Gelu32, f64: kernel.Gelu64}
}

func geluGrad(g *op.Grad) op.Value {
	x := wide(g, g.Value(arg.Input))
	slope := geluSlope
	if g.Str(arg.Approximate) == "tanh" {
		slope = geluTanhSlope
	}
	return g.Mul(wide(g, g.G()), slope(g, x))
}

func sampleGelu(s *op.Sampler) []any {
	args := []any{s.Tensor(-3, 3, s.Shape(0, 4)...)}
	if s.Bool() {
		args = append(args, op.Kw("approximate", "tanh"))
	}
	return args
}

func sampleUnary(lo, hi float64) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any { return []any{s.Tensor(lo, hi, s.Shape(0, 4)...)} }
}

func sampleDistinct(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...)} }

// sgnGrad is (g - Re(g·conj(s))·s) / |x| with s = sgn(x), and 0 where x = 0.
func sgnGrad(g *op.Grad) op.Value {
	x, s := g.Value(arg.Input), g.Out[0]
	if !x.DType().IsComplex() {
		return zeros(g, x)
	}
	r := g.Op("abs", x)
	along := g.Cast(g.Mul(g.G(), g.Op("conj", s)), x.DType().Real())
	return g.Op("where", g.Op("eq", r, 0), 0.0, g.Div(g.Sub(g.G(), g.Mul(along, s)), r))
}

// geluSlope is Φ(x) + x·φ(x).
func geluSlope(g *op.Grad, x op.Value) op.Value {
	cdf := g.Mul(g.Add(g.Op("erf", g.Mul(x, 1/math.Sqrt2)), 1), 0.5)
	pdf := g.Mul(g.Op("exp", g.Mul(g.Mul(x, x), -0.5)), 1/(math.Sqrt2*math.SqrtPi))
	return g.Add(cdf, g.Mul(x, pdf))
}

// geluTanhSlope is (1 + t)/2 + x·(1 - t²)·u'/2 with t = tanh(u),
// u = k·(x + 0.044715·x³), k = √(2/π).
func geluTanhSlope(g *op.Grad, x op.Value) op.Value {
	const k = math.Sqrt2 / math.SqrtPi
	sq := g.Mul(x, x)
	t := g.Op("tanh", g.Mul(g.Mul(x, k), g.Add(g.Mul(sq, 0.044715), 1)))
	du := g.Mul(g.Add(g.Mul(sq, 3*0.044715), 1), k)
	left := g.Mul(g.Add(t, 1), 0.5)
	right := g.Mul(g.Mul(g.Mul(x, 0.5), g.Sub(1, g.Mul(t, t))), du)
	return g.Add(left, right)
}

func realSlope(a op.Args) error {
	if s := number(a, arg.NegativeSlopeScalar); s.DType().IsComplex() {
		return op.RuntimeError("argument 'negative_slope' must be real, not %v", s.Any())
	}
	return nil
}

func knownApproximation(a op.Args) error {
	if s := a.Str(arg.Approximate); s != "none" && s != "tanh" {
		return op.RuntimeError("approximate argument must be either none or tanh, not '%s'", s)
	}
	return nil
}
