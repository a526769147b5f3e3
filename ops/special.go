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

// specialOps are the special functions and the numeric cleaning of one tensor.
var specialOps = []*op.Def{
	{
		Sig:     "lgamma(Tensor input) -> Tensor",
		Names:   append(both("lgamma"), "torch.special.gammaln"),
		Doc:     "Logarithm of the absolute value of the gamma function: log|Γ(x)|. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: through(kernel.Lgamma, nil),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("digamma", x) }),
		Sample:  sampleUnary(0.5, 4),
		NoExact: heldToMpmath,
		Tol:     gammaTol,
	},
	{
		Sig:     "digamma(Tensor input) -> Tensor",
		Names:   append(both("digamma"), "torch.special.digamma", "torch.special.psi"),
		Doc:     "Logarithmic derivative of the gamma function: Γ'(x) / Γ(x). Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: through(kernel.Digamma, nil),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Op("polygamma", 1, x) }),
		Sample:  sampleUnary(0.5, 4),
		NoExact: heldToMpmath,
		Tol:     gammaTol,
	},
	polygammaDef("polygamma(int n, Tensor input) -> Tensor", func(n int, x any) []any { return []any{n, x} }, "torch.polygamma", "torch.special.polygamma"),
	polygammaDef("polygamma.self(Tensor input, int n) -> Tensor", func(n int, x any) []any { return []any{x, n} }, "Tensor.polygamma"),
	{
		Sig:     "zeta(Tensor input, Tensor other) -> Tensor",
		More:    scalarForms("zeta"),
		Names:   []string{"torch.special.zeta"},
		Doc:     "Hurwitz's zeta function: Σ (k + other)^-input over k ≥ 0. PyTorch has the gradient of other only.",
		SBP:     pointwise,
		Reject:  rejectComplex(arg.Input, arg.Other),
		Infer:   zipped(floatPromoted, floatPromoted, arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](kernel.Zeta), f64: kernel.Zip[float64](kernel.Zeta)}.kernels(floatPromoted),
		Grad:    zetaGrad,
		Fixed:   []op.Handle{arg.Input},
		Sample:  sampleZeta,
		NoExact: heldToMpmath,
		Tol:     gammaTol,
	},
	{
		Sig:     "erfinv(Tensor input) -> Tensor",
		Names:   append(both("erfinv"), "torch.special.erfinv"),
		Doc:     "Inverse of the error function: erf(erfinv x) = x. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: through(math.Erfinv, nil),
		Grad:    slopeOfResult(func(g *op.Grad, y op.Value) op.Value { return g.Mul(g.Op("exp", g.Mul(y, y)), math.SqrtPi/2) }),
		Sample:  sampleUnary(-0.9, 0.9),
		NoExact: heldToMpmath,
		Tol:     ulpTol(16, "as erf, of which it is the inverse: "+openCL),
	},
	bessel("i0", "Modified Bessel function of the first kind of order 0.", kernel.BesselI0,
		func(g *op.Grad, x op.Value) op.Value { return g.Op("i1", x) }, append(both("i0"), "torch.special.i0")...),
	bessel("i0e", "Modified Bessel function of order 0 times e^-|x|.", kernel.BesselI0e,
		func(g *op.Grad, x op.Value) op.Value {
			return g.Sub(g.Op("i1e", x), g.Mul(g.Op("sgn", x), g.Op("i0e", x)))
		}, "torch.special.i0e"),
	bessel("i1", "Modified Bessel function of the first kind of order 1.", kernel.BesselI1,
		func(g *op.Grad, x op.Value) op.Value {
			return atZero(g, x, 0.5, func(x op.Value) op.Value {
				return g.Sub(g.Op("i0", x), g.Div(g.Op("i1", x), x))
			})
		}, "torch.special.i1"),
	bessel("i1e", "Modified Bessel function of order 1 times e^-|x|.", kernel.BesselI1e,
		func(g *op.Grad, x op.Value) op.Value {
			return atZero(g, x, 0.5, func(x op.Value) op.Value {
				along := g.Add(g.Op("sgn", x), g.Op("reciprocal", x))
				return g.Sub(g.Op("i0e", x), g.Mul(g.Op("i1e", x), along))
			})
		}, "torch.special.i1e"),
	{
		Sig:     "sinc(Tensor input) -> Tensor",
		Names:   append(both("sinc"), "torch.special.sinc"),
		Doc:     "Normalised sinc: sin πx / πx, and 1 for 0. Integers give float32.",
		SBP:     pointwise,
		Infer:   floatAs(arg.Input),
		Kernels: through(kernel.Sinc, kernel.SincComplex),
		Grad:    slope(sincSlope),
		Sample:  sampleUnary(-2.5, 2.5),
		Exact:   exactly(truth.Sinc),
		Formula: sincFormula,
		Tol: op.Tol{
			Class: op.Accumulating, Terms: func(op.Args) int { return 2 },
			Reason: "πx is rounded before the sine, which loses digits near integers",
		},
	},
	{
		Sig:     "logit(Tensor input, float? eps=None) -> Tensor",
		Names:   append(both("logit"), "torch.special.logit"),
		Doc:     "Log-odds: log(x / (1 - x)), with x limited to [eps, 1 - eps] if eps is given. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: parametric(logitLanes, unary{f32: kernel.Relu[float32], f64: kernel.Relu[float64]}),
		Grad:    op.Gradient(logitGrad),
		Sample:  sampleLogit,
		Exact:   exactLogit,
		Formula: logitFormula,
		Tol: op.Tol{
			Class: op.Accumulating, Terms: func(op.Args) int { return 2 },
			Reason: "log x - log(1 - x), which cancel near 1/2",
		},
	},
	{
		Sig:     "nan_to_num(Tensor input, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
		Names:   both("nan_to_num"),
		Doc:     "Replaces NaN, ∞ and -∞, by default with 0 and the dtype's largest and smallest number.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(nanToNumLanes, unary{f32: kernel.Relu[float32], f64: kernel.Relu[float64], i64: kernel.Copy[int64]}),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Mul(g.G(), g.Op("isfinite", g.Value(arg.Input))) }),
		Sample:  sampleNanToNum,
		Tol:     exactTol("the input or a constant"),
	},
	scaling("deg2rad", "Angles from degrees to radians: x·π/180.", math.Pi/180, truth.Deg2rad),
	scaling("rad2deg", "Angles from radians to degrees: x·180/π.", 180/math.Pi, truth.Rad2deg),
	{
		Sig:     "round.decimals(Tensor input, *, int decimals) -> Tensor",
		Names:   append(both("round"), "torch.special.round"),
		Doc:     "Rounds to a number of decimals, ties to even; a negative number rounds to powers of ten. Its gradient is 0.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...),
		Infer:   sameAs(arg.Input),
		Kernels: parametric(roundDecimalsLanes, unary{f32: kernel.Relu[float32], f64: kernel.Relu[float64]}),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return zeros(g, g.Value(arg.Input)) }),
		Sample:  func(s *op.Sampler) []any { return append(sampleFractions(s), op.Kw("decimals", s.Int(-1, 1))) },
		Tol:     ulpTol(1, "an integer scaled by a power of ten"),
	},
	{
		Sig:     "ldexp(Tensor input, Tensor other) -> Tensor",
		InPlace: op.InPlaceRules{NoGrad: "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."},
		Names:   both("ldexp"),
		Doc:     "Multiplies by a power of two: input·2^other, where the power is rounded to other's dtype; of integers to float32.",
		SBP:     linearly,
		Infer:   inferLdexp,
		Kernels: []op.Kernel{
			ldexpKernel("float32", float32Set, kernel.Mul[float32]),
			ldexpKernel("float64", float64Set, kernel.Mul[float64]),
			ldexpKernel("complex", complexTypes, kernel.Mul[complex128]),
		},
		Grad:   ldexpGrad,
		Sample: sampleTwo(-2, 2),
		Exact:  exactly(truth.Ldexp),
		Tol:    ulpTol(17, "pow 16 ULP, then a multiplication: "+openCL),
	},
	{
		Sig:     "entr(Tensor input) -> Tensor",
		Names:   []string{"torch.special.entr"},
		Doc:     "Entropy of each element: -x·log x, 0 for 0 and -∞ below. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: through(kernel.Entr, nil),
		Grad:    slope(func(g *op.Grad, x op.Value) op.Value { return g.Neg(g.Add(g.Op("log", x), 1)) }),
		Sample:  sampleUnary(0.2, 3),
		Exact:   exactly(truth.Entr),
		Tol:     ulpTol(4, "log 3 ULP, then a multiplication: "+openCL),
	},
	{
		Sig:     "ndtr(Tensor input) -> Tensor",
		Names:   []string{"torch.special.ndtr"},
		Doc:     "Normal distribution function: Φ(x) = erfc(-x/√2) / 2. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: through(kernel.Ndtr, nil),
		Grad:    slope(ndtrGrad),
		Sample:  sampleUnary(-2, 2),
		Exact:   exactly(truth.Ndtr),
		Formula: ndtrFormula,
		Tol: op.Tol{
			Class: op.Accumulating, Terms: func(op.Args) int { return 2 },
			Reason: "PyTorch computes (1 + erf(x/√2))/2, whose terms cancel for x < 0",
		},
	},
}

func zetaGrad(g *op.Grad) {
	if g.Needs(arg.Input) {
		op.Fail(&op.Error{Class: "NotImplementedError", Msg: "the derivative for argument 'input' is not implemented"})
	}
	g.To(arg.Other, func() op.Value {
		x := g.Any(arg.Input)
		return g.Mul(g.G(), g.Neg(g.Mul(g.Op("zeta", plusOne(g, x), g.Any(arg.Other)), x)))
	})
}

func sampleZeta(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{s.Tensor(1.5, 4, a...), s.Tensor(0.5, 4, b...)}
}

func logitLanes(a op.Args) unary {
	lo, hi := logitBounds(a)
	return unary{f32: kernel.Each32(limited(lo, hi, kernel.Logit)), f64: kernel.Each64(limited(lo, hi, kernel.Logit))}
}

func logitGrad(g *op.Grad) op.Value {
	x := wide(g, g.Value(arg.Input))
	d := g.Div(wide(g, g.G()), g.Mul(x, g.Sub(1, x)))
	if !g.Has(arg.Eps) {
		y := wide(g, g.Out[0])
		return g.Op("where", g.Op("isnan", y), y, d)
	}
	lo, hi := logitBounds(g.Args)
	return g.Op("where", g.Op("logical_and", g.Op("ge", x, lo), g.Op("le", x, hi)), d, 0.0)
}

func sampleLogit(s *op.Sampler) []any {
	x := s.Tensor(0.15, 0.85, s.Shape(0, 4)...)
	if s.Bool() {
		return []any{x}
	}
	return []any{x, s.Float(0.01, 0.1)}
}

func nanToNumLanes(a op.Args) unary {
	nan, posinf, neginf := replacements(a)
	return unary{
		f32: kernel.NanToNum(float32(nan), float32(posinf), float32(neginf)),
		f64: kernel.NanToNum(nan, posinf, neginf),
		i64: kernel.Copy[int64],
	}
}

func sampleNanToNum(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 4)...)
	if s.Bool() {
		return []any{x}
	}
	return []any{x, s.Float(-1, 1), s.Float(2, 9), s.Float(-9, -2)}
}

func roundDecimalsLanes(a op.Args) unary {
	n, step := a.Int(arg.Decimals), func(v float32) float32 { return v }
	if d := a.Value(arg.Input).DType(); slices.Contains(halfTypes, d) {
		step = roundHalf(d)
	}
	return unary{
		f32: kernel.RoundDecimals(n, step),
		f64: kernel.RoundDecimals(n, func(v float64) float64 { return v }),
	}
}

func inferLdexp(a op.Args) ([]op.Meta, error) {
	p := powered(a)
	return zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other)(p)
}

func ldexpGrad(g *op.Grad) {
	p := conj(g, g.Op("pow", 2.0, g.Value(arg.Other)))
	g.To(arg.Input, func() op.Value { return g.Mul(g.G(), p) })
	g.To(arg.Other, func() op.Value {
		return g.Mul(g.Mul(g.G(), conjArg(g, arg.Input)), g.Mul(p, math.Ln2))
	})
}

func ndtrGrad(g *op.Grad, x op.Value) op.Value {
	return g.Mul(g.Op("exp", g.Mul(g.Mul(x, x), -0.5)), 1/(math.Sqrt2*math.SqrtPi))
}

// heldToMpmath is why functions without a proved series have no Exact.
const heldToMpmath = "its kernel is held to values of mpmath, which no series of package truth could add to"

var gammaTol = ulpTol(16, "as tgamma: "+openCL)

// polygammaDef is polygamma with its arguments in one of two orders.
func polygammaDef(sig string, order func(n int, x any) []any, names ...string) *op.Def {
	return &op.Def{
		Sig:     sig,
		Names:   names,
		Doc:     "The n-th derivative of digamma. Integers give float32.",
		SBP:     pointwise,
		Reject:  firstError(rejectTypes(arg.Input, complexTypes...), checkPolygamma),
		Infer:   floatAs(arg.Input),
		Kernels: parametric(polygammaLanes, unary{f32: kernel.Relu[float32], f64: kernel.Relu[float64]}),
		Grad:    op.Gradient(polygammaGrad),
		Sample:  func(s *op.Sampler) []any { return order(s.Index(4), s.Tensor(0.6, 4, s.Shape(0, 4)...)) },
		Tol:     gammaTol,
	}
}

func checkPolygamma(a op.Args) error {
	if n := a.Int(arg.N); n < 0 {
		return op.RuntimeError("argument 'n' must not be negative, but got %d", n)
	}
	return nil
}

func polygammaLanes(a op.Args) unary {
	f := kernel.Polygamma(a.Int(arg.N))
	return unary{f32: kernel.Each32(f), f64: kernel.Each64(f)}
}

func polygammaGrad(g *op.Grad) op.Value {
	return g.Mul(wide(g, g.G()), g.Op("polygamma", g.Int(arg.N)+1, wide(g, g.Value(arg.Input))))
}

func bessel(id, doc string, f func(float64) float64, d func(g *op.Grad, x op.Value) op.Value, names ...string) *op.Def {
	return &op.Def{
		Sig:     id + "(Tensor input) -> Tensor",
		Names:   names,
		Doc:     doc + " Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: through(f, nil),
		Grad:    slope(d),
		Sample:  sampleUnary(-4, 4),
		NoExact: heldToMpmath,
		Tol:     ulpTol(16, "as the special functions of "+openCL),
	}
}

// scaling is a multiplication by a constant.
func scaling(id, doc string, k float64, t truth.Func) *op.Def {
	times := func(x float64) float64 { return x * k }
	return &op.Def{
		Sig:     id + "(Tensor input) -> Tensor",
		Names:   both(id),
		Doc:     doc + " Integers give float32.",
		SBP:     linearly,
		Reject:  rejectTypes(arg.Input, complexTypes...),
		Infer:   floatAs(arg.Input),
		Kernels: through(times, nil),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Mul(g.G(), k) }),
		Sample:  sampleUnary(-4, 4),
		Exact:   exactly(t),
		Tol:     ulpTol(2, "a rounded constant and a multiplication: "+openCL),
	}
}

// atZero is f of x, and v where x is 0, at which f is not evaluated.
func atZero(g *op.Grad, x op.Value, v float64, f func(x op.Value) op.Value) op.Value {
	zero := g.Op("eq", x, 0)
	return g.Op("where", zero, v, f(g.Op("where", zero, 1.0, x)))
}

// sincSlope is (p·cos p - sin p) / (p·x) with p = πx, and for small x its
// series, as the terms of the difference cancel.
func sincSlope(g *op.Grad, x op.Value) op.Value {
	near := g.Op("lt", g.Op("abs", x), 0.3)
	far := g.Op("where", near, 1.0, x)
	p := g.Mul(far, math.Pi)
	top := g.Sub(g.Mul(p, g.Op("cos", p)), g.Op("sin", p))
	return g.Op("where", near, sincSeries(g, x), g.Div(top, g.Mul(p, far)))
}

// sincSeries is π·Σ (-1)^k·2k/(2k+1)!·p^(2k-1) over k ≥ 1 with p = πx.
func sincSeries(g *op.Grad, x op.Value) op.Value {
	p := g.Mul(x, math.Pi)
	q := g.Mul(p, p)
	var sum op.Value
	for k := 8; k >= 1; k-- {
		c := 2 * float64(k) / math.Gamma(float64(2*k+2))
		if k%2 == 1 {
			c = -c
		}
		if sum == nil {
			sum = g.Mul(q, c)
			continue
		}
		sum = g.Add(sum, c)
		if k > 1 {
			sum = g.Mul(sum, q)
		}
	}
	return g.Mul(g.Mul(sum, p), math.Pi)
}

// plusOne returns v + 1 for a tensor or a Scalar.
func plusOne(g *op.Grad, v any) any {
	if s, ok := v.(op.Scalar); ok {
		return op.ScalarOf(s.Float() + 1)
	}
	return g.Add(v, 1)
}

// logitBounds returns eps and 1 - eps; no bounds without eps.
func logitBounds(a op.Args) (lo, hi float64) {
	if !a.Has(arg.Eps) {
		return math.Inf(-1), math.Inf(1)
	}
	eps := a.Float(arg.Eps)
	if d := a.Value(arg.Input).DType(); d != tensor.F64 {
		return float64(float32(eps)), float64(1 - float32(eps))
	}
	return eps, 1 - eps
}

func limited(lo, hi float64, f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		switch {
		case x < lo:
			x = lo
		case x > hi:
			x = hi
		}
		return f(x)
	}
}

// replacements returns what nan_to_num puts for NaN, ∞ and -∞.
func replacements(a op.Args) (nan, posinf, neginf float64) {
	posinf = largest(a.Value(arg.Input).DType())
	neginf = -posinf
	for name, v := range map[op.FloatArg]*float64{arg.Nan: &nan, arg.Posinf: &posinf, arg.Neginf: &neginf} {
		if a.Has(name) {
			*v = a.Float(name)
		}
	}
	return nan, posinf, neginf
}

// largest returns the largest number of a floating dtype.
func largest(d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return 65504
	case tensor.BF16:
		return 0x1.fep127
	case tensor.F32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// powered returns ldexp's arguments with other described as the power that it becomes.
func powered(a op.Args) op.Args {
	a.Vals = slices.Clone(a.Vals)
	other := a.Value(arg.Other)
	a.Vals[1] = power{dense{other, tensor.ContiguousStrides(other.Shape())}, floatResult(other.DType())}
	return a
}

// power is a value in another dtype.
type power struct {
	dense
	dtype tensor.DType
}

// DType returns the dtype of the power.
func (p power) DType() tensor.DType { return p.dtype }

func ldexpKernel[T kernel.Lane](name string, ds []tensor.DType, mul func(dst, a, b []T)) op.Kernel {
	when := op.Pred{Text: "result type in {" + typeNames(ds) + "}", Holds: func(a op.Args) bool {
		return slices.Contains(ds, powered(a).Promoted(arg.Input, arg.Other))
	}}
	return op.Kernel{Name: name, When: when, Run: func(c *op.Run) error {
		other := c.Tensor(arg.Other)
		p := tensor.New(floatResult(other.DType()), other.Shape()...)
		switch d := p.DType(); {
		case d.IsComplex():
			kernel.Map1(p, other, kernel.EachComplex(func(z complex128) complex128 { return cmplx.Pow(2, z) }))
		case d == tensor.F64:
			kernel.Map1(p, other, kernel.Each64(math.Exp2))
		default:
			kernel.Map1(p, other, kernel.Exp2Of32)
		}
		kernel.Map2(c.Out[0], c.Tensor(arg.Input), p, mul)
		return nil
	}}
}
