package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/internal/truth"
	"plumb/op"
	"plumb/tensor"
)

// PyTorch's constants of selu, from Klambauer et al., "Self-Normalizing Neural
// Networks" (2017).
const (
	seluAlpha = 1.6732632423543772848170429916717
	seluScale = 1.0507009873554804934193349852946
)

var activationOps = []*op.Def{
	{
		Sig:     "clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor",
		Names:   both("clamp", "clip"),
		Traits:  op.Monotone,
		Doc:     "Limits each element: min(max(x, min), max). The gradient is 1 at the bounds.",
		SBP:     pointwise,
		Reject:  firstError(needsBound, checkBounds(arg.Min, arg.Max)),
		Infer:   elementwise(promoted(arg.Input, arg.MinTensor, arg.MaxTensor), arg.Input),
		Kernels: clampKernels(arg.Min, arg.Max),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return clampGrad(g, arg.Min, arg.Max) }),
		Sample:  sampleClamp,
		Tol:     selectTol("the input or a bound"),
	},
	oneBound("clamp_min", arg.Min, "Raises each element to a lower bound: max(x, min)."),
	oneBound("clamp_max", arg.Max, "Lowers each element to an upper bound: min(x, max)."),
	{
		Sig:     "relu6(Tensor input, bool inplace=False) -> Tensor",
		Names:   []string{"torch.nn.functional.relu6"},
		Doc:     "Limits each element to [0, 6]: min(max(x, 0), 6). The gradient is 0 at the bounds.",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Reject:  firstError(rejectTypes(arg.Input, append(complexTypes, tensor.Bool)...)),
		Infer:   sameAs(arg.Input),
		Kernels: unary{f32: kernel.Clamp[float32](0, 6), f64: kernel.Clamp[float64](0, 6), i64: kernel.ClampInt(0, 6)}.kernels(),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return between(g, g.G(), op.ScalarOf(0.0), op.ScalarOf(6.0)) }),
		Sample:  func(s *op.Sampler) []any { return []any{awayFrom(s, -3, 9, 0, 6)} },
		Exact:   exactly(truth.Relu6),
		Tol:     selectTol("the input or a bound"),
	},
	{
		Sig:     "hardtanh(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False) -> Tensor",
		InPlace: op.InPlaceRules{Called: limitsExchanged},
		More:    []string{"hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, bool inplace=False) -> Tensor"},
		Names:   []string{"torch.nn.functional.hardtanh"},
		Doc:     "Limits each element to [min_val, max_val]: min(max(x, min_val), max_val). The gradient is 0 at the bounds.",
		Traits:  op.Idempotent,
		SBP:     pointwise,
		Reject:  firstError(rejectTypes(arg.Input, append(complexTypes, tensor.Bool)...), limitsFit),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(hardtanhLanes, unary{f32: kernel.Relu[float32], f64: kernel.Relu[float64], i64: kernel.ReluInt}),
		Grad:    op.Gradient(hardtanhGrad),
		Sample:  sampleHardtanh,
		Exact:   exactly(truth.Hardtanh),
		Tol:     selectTol("the input or a bound"),
	},
	activation("silu", "Sigmoid linear unit: x / (1 + e^-x).", op.Def{
		Reject:  firstError(rejectTypes(arg.Input, integralSet...)),
		Kernels: throughBoth(kernel.Silu32, kernel.Silu64, kernel.SiluComplex),
		Grad:    slope(siluSlope),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Silu),
		Tol:     ulpTol(6, "exp 3 ULP, then an addition and a division of 2.5: "+openCL),
	}),
	activation("mish", "Self-regularised unit: x·tanh(log(1 + e^x)).", op.Def{
		Kernels: throughBoth(kernel.Mish32, kernel.Each64(kernel.Mish), nil),
		Grad:    slope(mishSlope),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Mish),
		Tol:     ulpTol(11, "exp 3 ULP, log1p 2, tanh 5 and a multiplication: "+openCL),
	}),
	activation("hardswish", "Hard swish: x·min(max(x + 3, 0), 6) / 6. Its gradient is -1/2 at -3 and 1 at 3.", op.Def{
		Kernels: through(kernel.Hardswish, nil),
		Grad:    slope(hardswishSlope),
		Sample:  func(s *op.Sampler) []any { return []any{awayFrom(s, -5, 5, -3, 3)} },
		Exact:   exactly(truth.Hardswish),
		Tol:     op.Tol{Class: op.Pointwise, ULP: 4, Reason: "an addition, a multiplication and a division of 2.5: " + openCL, AnyZero: true}, // documented as 0, computed as -x·0
	}),
	activation("hardsigmoid", "Hard sigmoid: min(max(x + 3, 0), 6) / 6. Its gradient is 0 at -3 and 3.", op.Def{
		Kernels: through(kernel.Hardsigmoid, nil),
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			x := g.Value(arg.Input)
			inside := g.Op("where", g.Op("lt", x, 3), g.Op("gt", x, -3), false)
			return g.Op("where", inside, g.Div(g.G(), 6), 0.0)
		}),
		Sample:  func(s *op.Sampler) []any { return []any{awayFrom(s, -5, 5, -3, 3)} },
		Exact:   exactly(truth.Hardsigmoid),
		Formula: hardsigmoidFormula,
		Tol:     twoTermTol,
	}),
	{
		Sig:     "elu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor",
		InPlace: op.InPlaceRules{NoBackward: negativeSlope(arg.Alpha, "elu")},
		More:    []string{"elu(Tensor input, Scalar alpha, bool inplace=False) -> Tensor"},
		Names:   []string{"torch.nn.functional.elu"},
		Doc:     "Exponential linear unit: x for x > 0, alpha·(e^x - 1) elsewhere, and so its gradient.",
		SBP:     pointwise,
		Reject:  firstError(floatsOnly, realNumbers(arg.Alpha)),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(eluLanes, realFunc(math.Exp)),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return eluGrad(g, number(g.Args, arg.Alpha).Float(), 1, 1) }),
		Sample:  sampleAlpha(-1, 2),
		Exact:   exactly(truth.Elu),
		Tol:     ulpTol(4, "expm1 3 ULP and a multiplication: "+openCL),
	},
	{
		Sig:     "celu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor",
		InPlace: op.InPlaceRules{NoBackward: negativeSlope(arg.Alpha, "elu")},
		More:    []string{"celu(Tensor input, Scalar alpha, bool inplace=False) -> Tensor"},
		Names:   []string{"torch.celu", "torch.nn.functional.celu"},
		Doc:     "Continuously differentiable exponential linear unit: x for x > 0, alpha·(e^(x/alpha) - 1) elsewhere.",
		SBP:     pointwise,
		Reject:  firstError(floatsOnly, realNumbers(arg.Alpha), alphaNotZero),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(celuLanes, realFunc(math.Exp)),
		Grad:    op.Gradient(celuGrad),
		Sample:  sampleAlpha(0.5, 2),
		Exact:   exactly(truth.Celu),
		Tol:     ulpTol(7, "a division of 2.5, expm1 3 ULP and a multiplication: "+openCL),
	},
	{
		Sig:     "selu(Tensor input, bool inplace=False) -> Tensor",
		Names:   []string{"torch.selu", "torch.nn.functional.selu"},
		Doc:     "Scaled exponential linear unit: s·x for x > 0, s·a·(e^x - 1) elsewhere, with s = 1.0507… and a = 1.6732….",
		SBP:     pointwise,
		Reject:  floatsOnly,
		Infer:   sameAs(arg.Input),
		Kernels: through(kernel.Elu(seluAlpha*seluScale, seluScale, 1), nil),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return eluGrad(g, seluAlpha*seluScale, seluScale, 1) }),
		Sample:  func(s *op.Sampler) []any { return []any{awayFrom(s, -3, 3, 0)} },
		Exact:   exactly(truth.Selu),
		Tol:     ulpTol(5, "expm1 3 ULP and two multiplications: "+openCL),
	},
	{
		Sig:     "softplus(Tensor input, float beta=1.0, float threshold=20.0) -> Tensor",
		More:    []string{"softplus(Tensor input, Scalar beta=1, Scalar threshold=20) -> Tensor"},
		Names:   []string{"torch.nn.functional.softplus"},
		Doc:     "Smooth rectifier: log(1 + e^(beta·x)) / beta, and x where beta·x > threshold.",
		SBP:     pointwise,
		Reject:  firstError(floatsOnly, realNumbers(arg.Beta, arg.Threshold)),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(softplusLanes, realFunc(math.Exp)),
		Grad:    op.Gradient(softplusGrad),
		Sample:  sampleSoftplus,
		Exact:   exactly(truth.Softplus),
		Tol:     vanishing(ulpTol(8, "a multiplication, exp 3 ULP, log1p 2 and a division of 2.5: "+openCL)),
	},
	{
		Sig:     "logsigmoid(Tensor input) -> Tensor",
		Names:   []string{"torch.nn.functional.logsigmoid"},
		Doc:     "Logarithm of the logistic function: log(1 / (1 + e^-x)).",
		SBP:     pointwise,
		Reject:  floatsOnly,
		Infer:   sameAs(arg.Input),
		Kernels: throughBoth(kernel.LogSigmoid32, kernel.LogSigmoid64, nil),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("sigmoid", g.Neg(x)) }),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.LogSigmoid),
		Tol:     vanishing(ulpTol(6, "exp 3 ULP, log1p 2 and a subtraction: "+openCL)),
	},
	{
		Sig:     "softsign(Tensor input) -> Tensor",
		Names:   []string{"torch.nn.functional.softsign"},
		Doc:     "Soft sign: x / (1 + |x|). Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, tensor.Bool),
		Infer:   floatAs(arg.Input),
		Kernels: append(through(kernel.Softsign, kernel.SoftsignComplex), wrappingSoftsign),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return softsignGrad(g) }),
		Sample:  sampleDistinct,
		Exact:   exactly(truth.Softsign),
		Tol:     ulpTol(3, "an addition and a division of 2.5: "+openCL),
	},
	{
		Sig:     "tanhshrink(Tensor input) -> Tensor",
		Names:   []string{"torch.nn.functional.tanhshrink"},
		Doc:     "Shrinkage by the hyperbolic tangent: x - tanh x. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, tensor.Bool),
		Infer:   floatAs(arg.Input),
		Kernels: through(kernel.Tanhshrink, kernel.TanhshrinkComplex),
		Formula: tanhshrinkFormula,
		Grad:    slope(tanhshrinkGrad),
		Sample:  sampleUnary(-3, 3),
		Exact:   exactly(truth.Tanhshrink),
		Tol: op.Tol{
			Class: op.Accumulating, Terms: func(op.Args) int { return 2 },
			Reason: "the terms of x - tanh x cancel near 0",
		},
	},
	shrink("softshrink", "Soft shrinkage: x - lambd for x > lambd, x + lambd for x < -lambd, 0 elsewhere.", op.Def{
		Names:  []string{"torch.nn.functional.softshrink"},
		Reject: firstError(floatsOnly, realNumbers(arg.LambdScalar), lambdNotNegative),
		Kernels: parametric(func(a op.Args) unary {
			lambda := number(a, arg.LambdScalar).Float()
			return unary{f32: kernel.Softshrink(float32(lambda)), f64: kernel.Softshrink(lambda)}
		}, realFunc(math.Exp)),
		Exact: exactly(truth.Softshrink),
		Tol:   op.Tol{Class: op.Pointwise, ULP: 1, Reason: "one rounding: " + openCL, AnyZero: true}, // PyTorch 2.9 keeps the sign of what it shrinks to 0, 1.13 does not
	}),
	shrink("hardshrink", "Hard shrinkage: 0 for -lambd ≤ x ≤ lambd, x elsewhere.", op.Def{
		Names:  append(both("hardshrink"), "torch.nn.functional.hardshrink"),
		Traits: op.Idempotent,
		Reject: firstError(floatsOnly, realNumbers(arg.LambdScalar)),
		Kernels: parametric(func(a op.Args) unary {
			lambda := parameter(a, arg.LambdScalar)
			return unary{f32: kernel.Hardshrink(float32(lambda)), f64: kernel.Hardshrink(lambda)}
		}, realFunc(math.Exp)),
		Exact: exactly(truth.Hardshrink),
		Tol:   selectTol("the input or zero"),
	}),
	{
		Sig:     "threshold(Tensor input, Scalar threshold, Scalar value, bool inplace=False) -> Tensor",
		Names:   []string{"torch.threshold", "torch.nn.functional.threshold"},
		Doc:     "Replaces small elements: value for x ≤ threshold, x elsewhere. The gradient is 0 at the threshold.",
		SBP:     pointwise,
		Reject:  firstError(rejectTypes(arg.Input, append(complexTypes, tensor.Bool)...), realNumbers(arg.Threshold, arg.Value)),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(thresholdLanes, unary{f32: kernel.Relu[float32], f64: kernel.Relu[float64], i64: kernel.ReluInt}),
		Grad:    op.Gradient(thresholdGrad),
		Sample:  func(s *op.Sampler) []any { return []any{awayFrom(s, -2, 2, 0.5), 0.5, s.Float(-3, 3)} },
		Formula: thresholdFormula,
		Tol:     exactTol("the input or the value"),
	},
}

func sampleClamp(s *op.Sampler) []any {
	x := awayFrom(s, -2, 2, -0.5, 1)
	switch s.Index(3) {
	case 0:
		return []any{x, -0.5}
	case 1:
		return []any{x, op.Kw("max", 1.0)}
	}
	return []any{x, -0.5, 1.0}
}

// limitsExchanged has hardtanh_ take a min_val above max_val, as PyTorch's kernel does:
// min(max(x, min_val), max_val) is max_val then, and hardtanh alone refuses it.
func limitsExchanged(a op.Args) op.Args {
	lo, hi := number(a, arg.MinValScalar), number(a, arg.MaxValScalar)
	if lo.DType().IsComplex() || hi.DType().IsComplex() || lo.Float() <= hi.Float() {
		return a
	}
	if low := a.With(arg.MaxValScalar, a.Any(arg.MinValScalar)); hardtanhLimits(low) != nil {
		return low // is refused by its min_val
	}
	return a.With(arg.MinValScalar, a.Any(arg.MaxValScalar))
}

func hardtanhLanes(a op.Args) unary {
	least, most := number(a, arg.MinValScalar), number(a, arg.MaxValScalar)
	lo, hi := parameter(a, arg.MinValScalar), parameter(a, arg.MaxValScalar)
	return unary{f32: kernel.Clamp(float32(lo), float32(hi)), f64: kernel.Clamp(lo, hi), i64: kernel.ClampInt(least.Int(), most.Int())}
}

func hardtanhGrad(g *op.Grad) op.Value {
	return between(g, g.G(), number(g.Args, arg.MinValScalar), number(g.Args, arg.MaxValScalar))
}

func sampleHardtanh(s *op.Sampler) []any {
	if s.Bool() {
		return []any{awayFrom(s, -2, 2, -1, 1)}
	}
	return []any{awayFrom(s, -2, 2, -0.5, 1.25), -0.5, 1.25}
}

func eluLanes(a op.Args) unary {
	return realFunc(kernel.Elu(number(a, arg.Alpha).Float(), 1, 1))
}

func celuLanes(a op.Args) unary {
	alpha := number(a, arg.Alpha).Float()
	return realFunc(kernel.Elu(alpha, 1, 1/alpha))
}

func celuGrad(g *op.Grad) op.Value {
	alpha := number(g.Args, arg.Alpha).Float()
	return eluGrad(g, alpha, 1, 1/alpha)
}

func softplusLanes(a op.Args) unary {
	beta, threshold := number(a, arg.Beta).Float(), number(a, arg.Threshold).Float()
	return unary{f32: kernel.Each32(kernel.Softplus32(beta, threshold)), f64: kernel.Each64(kernel.Softplus64(beta, threshold))}
}

func softplusGrad(g *op.Grad) op.Value {
	c, x := wide(g, g.G()), g.Mul(wide(g, g.Value(arg.Input)), number(g.Args, arg.Beta))
	return g.Op("where", g.Op("gt", x, number(g.Args, arg.Threshold)), c, g.Mul(c, g.Op("sigmoid", x)))
}

func sampleSoftplus(s *op.Sampler) []any {
	if s.Bool() {
		return []any{s.Tensor(-4, 4, s.Shape(0, 4)...)}
	}
	return []any{awayFrom(s, -2, 2, 0.5), 2.0, 1.0}
}

func tanhshrinkGrad(g *op.Grad, x op.Value) op.Value {
	t := g.Op("tanh", x)
	return g.Mul(t, t)
}

func thresholdLanes(a op.Args) unary {
	limit, value := parameter(a, arg.Threshold), parameter(a, arg.Value)
	return unary{
		f32: kernel.Threshold(float32(limit), float32(value)), f64: kernel.Threshold(limit, value),
		i64: kernel.ThresholdInt(int64(limit), int64(value)),
	}
}

func thresholdGrad(g *op.Grad) op.Value {
	return g.Op("where", g.Op("le", g.Value(arg.Input), number(g.Args, arg.Threshold)), 0.0, g.G())
}

// activation completes a function of torch.nn.functional without parameters.
// It takes floats unless its check says otherwise.
func activation(id, doc string, d op.Def) *op.Def {
	d.Sig = id + "(Tensor input, bool inplace=False) -> Tensor"
	d.Names = []string{"torch.nn.functional." + id}
	d.Doc = doc
	d.SBP = pointwise
	d.Infer = sameAs(arg.Input)
	if d.Reject == nil {
		d.Reject = floatsOnly
	}
	return &d
}

// shrink completes a shrinkage by lambd, whose gradient is 0 within the bounds.
func shrink(id, doc string, d op.Def) *op.Def {
	d.Sig = id + "(Tensor input, float lambd=0.5) -> Tensor"
	d.More = []string{id + "(Tensor input, Scalar lambd) -> Tensor"}
	d.Doc = doc
	d.SBP = pointwise
	d.Infer = sameAs(arg.Input)
	d.Grad = op.Gradient(func(g *op.Grad) op.Value {
		x, lambda := g.Value(arg.Input), parameter(g.Args, arg.LambdScalar)
		low := g.Op("where", g.Op("ge", x, -lambda), 0.0, g.G())
		return g.Op("where", g.Op("le", x, lambda), low, g.G())
	})
	d.Sample = func(s *op.Sampler) []any {
		if s.Bool() {
			return []any{awayFrom(s, -2, 2, -0.5, 0.5)}
		}
		return []any{awayFrom(s, -2, 2, -0.25, 0.25), 0.25}
	}
	return &d
}

// oneBound is a clamp with one bound, which must be given.
func oneBound(id string, bound op.ScalarArg, doc string) *op.Def {
	return &op.Def{
		Sig:     id + "(Tensor input, Scalar " + string(bound) + ") -> Tensor",
		Names:   both(id),
		Doc:     doc + " The gradient is 1 at the bound.",
		Traits:  op.Idempotent | op.Monotone,
		SBP:     pointwise,
		Reject:  checkBounds(bound),
		Infer:   elementwise(promoted(arg.Input, bound), arg.Input),
		Kernels: clampKernels(bound),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return clampGrad(g, bound) }),
		Sample:  func(s *op.Sampler) []any { return []any{awayFrom(s, -2, 2, 0.5), 0.5} },
		Tol:     selectTol("the input or a bound"),
	}
}

func needsBound(a op.Args) error {
	if !a.Has(arg.Min) && !a.Has(arg.Max) {
		return op.RuntimeError("At least one of 'min' or 'max' must not be None")
	}
	return nil
}

// wrappingSoftsign computes 1 + |x| of integers in their own dtype, as PyTorch
// does: it overflows there.
var wrappingSoftsign = op.Kernel{Name: "integer", Priority: 1, When: op.DTypeIn(arg.Input, integerTypes...), Run: func(c *op.Run) error {
	x := c.Tensor(arg.Input)
	d := x.DType()
	kernel.Map1(c.Out[0], x, kernel.SoftsignWrapped(uint(8*d.Size()), d == tensor.U8))
	return nil
}}

// checkBounds rejects results and bounds that clamp has no kernel for.
func checkBounds(bounds ...op.ScalarArg) func(op.Args) error {
	return func(a op.Args) error {
		d := a.Promoted(inputAnd(bounds)...)
		if d.IsComplex() || d == tensor.Bool {
			return op.RuntimeError("not implemented for %s", d)
		}
		for _, b := range bounds {
			if !a.Has(b) {
				continue
			}
			var err error
			if d.IsInt() {
				err = boundFits(a.Scalar(b).Int(), d, b == arg.Max)
			} else {
				err = fits(a.Scalar(b), d)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// boundFits rejects a bound beyond which all integers of a dtype lie: no
// element could keep it. One on the other side bounds nothing.
func boundFits(bound int64, d tensor.DType, upper bool) error {
	least, most := integersOf(d)
	if upper && bound < least || !upper && bound > most {
		return op.RuntimeError("a bound of %d is outside the range of %s", bound, d)
	}
	return nil
}

// integersOf returns the least and the largest integer of a dtype.
func integersOf(d tensor.DType) (least, most int64) {
	if d == tensor.U8 {
		return 0, math.MaxUint8
	}
	most = math.MaxInt64 >> (64 - 8*d.Size())
	return -most - 1, most
}

// inputAnd returns the handles of the input and of bounds.
func inputAnd[H op.Handle](bounds []H) []op.Handle {
	all := []op.Handle{arg.Input}
	for _, b := range bounds {
		all = append(all, b)
	}
	return all
}

// clampKernels compute in the dtype to which the input and the bounds promote.
func clampKernels(bounds ...op.ScalarArg) []op.Kernel {
	return []op.Kernel{
		clampKernel("integer", integralSet, bounds, func(lo, hi op.Scalar) func(dst, a []int64) {
			low, high := int64(math.MinInt64), int64(math.MaxInt64)
			if lo.Any() != nil {
				low = lo.Int()
			}
			if hi.Any() != nil {
				high = hi.Int()
			}
			return kernel.ClampInt(low, high)
		}),
		clampKernel("float32", float32Set, bounds, func(lo, hi op.Scalar) func(dst, a []float32) {
			low, high := floatBounds(lo, hi)
			return kernel.Clamp(float32(low), float32(high))
		}),
		clampKernel("float64", float64Set, bounds, func(lo, hi op.Scalar) func(dst, a []float64) {
			return kernel.Clamp(floatBounds(lo, hi))
		}),
	}
}

func clampKernel[T kernel.Lane](name string, ds []tensor.DType, bounds []op.ScalarArg, f func(lo, hi op.Scalar) func(dst, a []T)) op.Kernel {
	names := inputAnd(bounds)
	return op.Kernel{Name: name, When: resultIn(ds, names...), Run: func(c *op.Run) error {
		d := c.Promoted(names...)
		kernel.Map1(c.Out[0], operand(c.Args, arg.Input, d), f(bound(c.Args, bounds, arg.Min, d), bound(c.Args, bounds, arg.Max, d)))
		return nil
	}}
}

// bound returns a bound, a real one as dtype d holds it; the zero Scalar when there is none.
func bound(a op.Args, bounds []op.ScalarArg, name op.ScalarArg, d tensor.DType) op.Scalar {
	if !slices.Contains(bounds, name) || !a.Has(name) {
		return op.Scalar{}
	}
	if d.IsInt() {
		return op.ScalarOf(a.Scalar(name).Int())
	}
	return op.ScalarOf(scalarTensor(a.Scalar(name), d).Float(0))
}

func floatBounds(lo, hi op.Scalar) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	if lo.Any() != nil {
		low = lo.Float()
	}
	if hi.Any() != nil {
		high = hi.Float()
	}
	return low, high
}

// clampGrad passes the gradient where x is within the bounds; not for NaN.
func clampGrad(g *op.Grad, bounds ...op.ScalarArg) op.Value {
	d := g.G()
	for _, b := range bounds {
		if !g.Has(b) {
			continue
		}
		compare := "ge"
		if b == arg.Max {
			compare = "le"
		}
		d = g.Op("where", g.Op(compare, g.Value(arg.Input), g.Scalar(b)), d, 0.0)
	}
	return d
}

// between passes c where the input is within the open interval, and where it is NaN.
func between(g *op.Grad, c op.Value, lo, hi op.Scalar) op.Value {
	x := wide(g, g.Value(arg.Input)) // a half type may not hold the bounds, with which PyTorch compares in float32
	return g.Op("where", g.Op("le", x, lo), 0.0, g.Op("where", g.Op("ge", x, hi), 0.0, c))
}

// siluSlope is s·(1 + x·(1 - s)) with s = 1 / (1 + e^-x).
func siluSlope(g *op.Grad, x op.Value) op.Value {
	if x.DType().IsComplex() {
		op.Fail(op.RuntimeError("silu does not support automatic differentiation for outputs with complex dtype"))
	}
	s := g.Op("sigmoid", x)
	return g.Mul(s, g.Add(g.Mul(x, g.Sub(1, s)), 1))
}

// mishSlope is t + x·(1 - t²)·s with t = tanh(log(1 + e^x)), s = 1 / (1 + e^-x).
func mishSlope(g *op.Grad, x op.Value) op.Value {
	t := g.Op("tanh", g.Op("softplus", x))
	return g.Add(t, g.Mul(g.Mul(x, g.Sub(1, g.Mul(t, t))), g.Op("sigmoid", x)))
}

// hardswishSlope is x/3 + 1/2 within (-3, 3) and constant elsewhere. PyTorch
// 1.13.1 gives -1/2 at -3; at 3 its vectorised loop gives 1, the rest of it 3/2.
func hardswishSlope(g *op.Grad, x op.Value) op.Value {
	inside := g.Op("lt", g.Op("abs", x), 3)
	left := g.Op("where", g.Op("eq", x, -3), -0.5, 0.0)
	return g.Op("where", inside, g.Add(g.Div(x, 3), 0.5), g.Op("where", g.Op("le", x, -3), left, 1.0))
}

// eluGrad is negative·inner·e^(inner·x) for x ≤ 0 and positive elsewhere. The
// exponential is taken of what it is needed for, so that the others cannot overflow.
func eluGrad(g *op.Grad, negative, positive, inner float64) op.Value {
	x, c := wide(g, g.Value(arg.Input)), wide(g, g.G())
	small := g.Op("le", x, 0)
	e := g.Op("exp", g.Mul(g.Op("where", small, x, 0.0), inner))
	return g.Op("where", small, g.Mul(g.Mul(c, e), negative*inner), g.Mul(c, positive))
}

// softsignGrad is that of x / (1 + |x|) as a quotient: c/a - Re(c·conj(y))/a · sgn x
// with a = 1 + |x|.
func softsignGrad(g *op.Grad) op.Value {
	x, y, c := wide(g, g.Value(arg.Input)), wide(g, g.Out[0]), wide(g, g.G())
	a := g.Add(g.Op("abs", x), 1)
	along := g.Cast(g.Mul(c, conj(g, y)), x.DType().Real())
	return g.Sub(g.Div(c, a), g.Mul(g.Div(along, a), g.Op("sgn", x)))
}

// realFunc are the lanes of a real function, computed in float64.
func realFunc(f func(float64) float64) unary {
	return unary{f32: kernel.Each32(f), f64: kernel.Each64(f)}
}

// parameter returns a number as PyTorch's kernels hold it: rounded to the
// input's dtype.
func parameter(a op.Args, name op.ScalarArg) float64 {
	s, d := number(a, name), a.Value(arg.Input).DType()
	if d.IsInt() {
		return float64(scalarTensor(s, d).Int(0)) // -1 is 255 in uint8
	}
	return scalarTensor(s, d).Float(0)
}

func floatsOnly(a op.Args) error {
	return rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...)(a)
}

// realNumbers rejects parameters that PyTorch refuses to convert to the input's dtype.
func realNumbers(names ...op.ScalarArg) func(op.Args) error {
	return func(a op.Args) error {
		for _, n := range names {
			s := number(a, n)
			if s.DType().IsComplex() {
				return op.RuntimeError("argument '%s' must be real, not %v", n, s.Any())
			}
			if err := fits(s, a.Value(arg.Input).DType()); err != nil {
				return err
			}
		}
		return nil
	}
}

// limitsFit checks the limits of hardtanh.
func limitsFit(a op.Args) error {
	lo, hi := number(a, arg.MinValScalar), number(a, arg.MaxValScalar)
	if !lo.DType().IsComplex() && !hi.DType().IsComplex() && lo.Float() > hi.Float() {
		return op.ValueError("argument 'min_val' must not be greater than 'max_val', but they are %v and %v", lo.Any(), hi.Any())
	}
	return hardtanhLimits(a)
}

// hardtanhLimits checks that the dtype has the limits, which for integers are truncated first.
func hardtanhLimits(a op.Args) error {
	names := []op.ScalarArg{arg.MinValScalar, arg.MaxValScalar}
	d := a.Value(arg.Input).DType()
	if !d.IsInt() {
		return realNumbers(names...)(a)
	}
	for i, n := range names {
		k := number(a, n)
		if v := k.Float(); k.DType().IsComplex() || !(v >= -1<<63 && v < 1<<63) {
			return op.RuntimeError("argument '%s' must be real and fit int64, not %v", n, k.Any())
		}
		if err := boundFits(k.Int(), d, i == 1); err != nil {
			return err
		}
	}
	return nil
}

func alphaNotZero(a op.Args) error {
	if number(a, arg.Alpha).Float() == 0 {
		return op.RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
	}
	return nil
}

func lambdNotNegative(a op.Args) error {
	if v := number(a, arg.LambdScalar).Float(); v < 0 {
		return op.RuntimeError("lambda must be greater or equal to 0, but found to be %v", v)
	}
	return nil
}

// sampleAlpha draws an input away from 0 and, half the time, an alpha.
func sampleAlpha(lo, hi float64) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		args := []any{awayFrom(s, -3, 3, 0)}
		if s.Bool() {
			args = append(args, s.Float(lo, hi))
		}
		return args
	}
}

// awayFrom draws a tensor of elements in [lo, hi) none of which is near a kink.
func awayFrom(s *op.Sampler, lo, hi float64, kinks ...float64) *tensor.Tensor {
	t := s.Tensor(lo, hi, s.Shape(0, 4)...)
	for i := range t.Len() {
		for _, k := range kinks {
			if math.Abs(t.Float(i)-k) < 0.05 {
				t.Set(i, complex(k+0.1, 0))
			}
		}
	}
	return t
}
