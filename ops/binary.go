package ops

import (
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/internal/truth"
	"plumb/op"
	"plumb/tensor"
)

var binaryOps = slices.Concat([]*op.Def{
	{
		Sig: "add(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor",
		SBP: anyOf(pointwise, additive(arg.Input, arg.Other)),
		More: []string{
			"add(Tensor input, Scalar other, *, Scalar alpha=1) -> Tensor",
			"add(Scalar input, Tensor other, *, Scalar alpha=1) -> Tensor",
		},
		Names:   append(both("add"), "operator.add"),
		Neutral: func(a op.Args) bool { return addsNothing(a, true) },
		Doc:     "Sum: input + alpha·other.",
		Traits:  op.Commutative | op.Additive,
		Reject:  checkAlpha,
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: addKernels(1, arg.Input, arg.Other),
		Grad:    func(g *op.Grad) { addGrad(g, 1) },
		Sample:  sampleTwo(-2, 2),
		Exact:   exactly(truth.Add),
		Tol:     ownMagnitude(ulpTol(1, "one rounding: "+openCL)),
	},
	{
		Sig:       "sub(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor",
		SBP:       anyOf(pointwise, additive(arg.Input, arg.Other)),
		Magnitude: "add",
		More: []string{
			"sub(Tensor input, Scalar other, *, Scalar alpha=1) -> Tensor",
			"sub(Scalar input, Tensor other, *, Scalar alpha=1) -> Tensor",
		},
		Names:   append(both("sub", "subtract"), "operator.sub"),
		Neutral: func(a op.Args) bool { return addsNothing(a, false) },
		Doc:     "Difference: input - alpha·other.",
		Traits:  op.Cancels | op.Additive,
		Reject:  firstError(rejectBoolSub, checkAlpha),
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: addKernels(-1, arg.Input, arg.Other),
		Grad:    func(g *op.Grad) { addGrad(g, -1) },
		Sample:  sampleTwo(-2, 2),
		Exact:   exactly(truth.Sub),
		Tol:     ulpTol(1, "one rounding: "+openCL),
	},
	{
		Sig:     "mul(Tensor input, Tensor other) -> Tensor",
		SBP:     anyOf(pointwise, linear(arg.Input, arg.Other)),
		More:    scalarForms("mul"),
		Names:   append(both("mul", "multiply"), "operator.mul"),
		Neutral: func(a op.Args) bool { return a.Scalar(arg.OtherScalar).Float() == 1 },
		Doc:     "Product of the elements: input·other.",
		Traits:  op.Commutative,
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: []op.Kernel{
			binaryKernel("integer", integralSet, kernel.Mul[int64]),
			binaryKernel("float32", float32Set, kernel.Mul32),
			binaryKernel("float64", float64Set, kernel.Mul[float64]),
			binaryKernel("complex", complexTypes, kernel.Mul[complex128]),
		},
		Grad:   mulGrad,
		Saves:  savesTensors,
		Sample: sampleTwo(-2, 2),
		Exact:  exactly(truth.Mul),
		Tol:    ownMagnitude(ulpTol(1, "one rounding: "+openCL)),
	},
	{
		Sig:          "div(Tensor input, Tensor other, *, str? rounding_mode=None) -> Tensor",
		SBP:          anyOf(pointwise, provided(func(a op.Args) bool { return !a.Has(arg.RoundingMode) }, linear(arg.Input))),
		HasMagnitude: func(a op.Args) bool { return a.Value(arg.Other) == nil },
		More: []string{
			"div(Tensor input, Scalar other, *, str? rounding_mode=None) -> Tensor",
			"div(Scalar input, Tensor other, *, str? rounding_mode=None) -> Tensor",
		},
		Names:   append(both("div", "divide", "true_divide"), "operator.truediv"),
		Neutral: func(a op.Args) bool { return a.Scalar(arg.OtherScalar).Float() == 1 && !a.Has(arg.RoundingMode) },
		Doc:     "Quotient of the elements: input / other; rounding_mode 'trunc' rounds it towards zero, 'floor' down. Without one, integers give float32.",
		Reject:  checkRounding,
		Infer:   zipped(divType, divType, arg.Input, arg.Other),
		Kernels: []op.Kernel{
			divKernel("float32", slices.Concat(float32Set, integralSet), "", kernel.Div32),
			divKernel("float64", float64Set, "", kernel.Div[float64]),
			divKernel("complex", complexTypes, "", kernel.DivComplex),
			divKernel("trunc float32", float32Set, "trunc", kernel.DivTrunc[float32]),
			divKernel("trunc float64", float64Set, "trunc", kernel.DivTrunc[float64]),
			divKernel("trunc integer", integerTypes, "trunc", kernel.DivTruncInt),
			divKernel("floor float32", float32Set, "floor", kernel.DivFloor[float32]),
			divKernel("floor float64", float64Set, "floor", kernel.DivFloor[float64]),
			divKernel("floor integer", integerTypes, "floor", kernel.DivFloorInt),
		},
		Grad:   divGrad,
		Saves:  savesTensors,
		Sample: sampleDiv,
		Exact:  exactDiv,
		Tol:    ownMagnitude(fractional(ulpTol(2.5, "division: "+openCL))),
	},
	{
		Sig:    "pow(Tensor input, Tensor exponent) -> Tensor",
		More:   []string{"pow(Tensor input, Scalar exponent) -> Tensor", "pow(Scalar input, Tensor exponent) -> Tensor"},
		Names:  append(both("pow"), "operator.pow"),
		Doc:    "Power of the elements: input^exponent.",
		SBP:    pointwise,
		Reject: checkPow,
		Infer:  powMeta(promoted(arg.Input, arg.Exponent)),
		Kernels: []op.Kernel{
			powKernel("integer", integralSet, nil, kernel.PowInt),
			powKernel("float32", float32Set, kernel.PowConst[float32], kernel.Pow32),
			powKernel("float64", float64Set, kernel.PowConst[float64], kernel.Pow64),
			powKernel("complex", complexTypes, kernel.PowConstComplex, kernel.PowComplex),
		},
		Grad:   powGrad,
		Sample: samplePow,
		Exact:  exactly(truth.Pow),
		Tol:    ulpTol(16, "pow: "+openCL),
	},
	maximumDef("maximum(Tensor input, Tensor other) -> Tensor", both("maximum")...),
	maximumDef("max.other(Tensor input, Tensor other) -> Tensor", both("max")...),
	{
		Sig: "where(Tensor condition, Tensor input, Tensor other) -> Tensor",
		SBP: anyOf(pointwise, additive(arg.Input, arg.Other), zeroElse(arg.Input, arg.Other), zeroElse(arg.Other, arg.Input)),
		More: []string{
			"where(Tensor condition, Tensor input, Scalar other) -> Tensor",
			"where(Tensor condition, Scalar input, Tensor other) -> Tensor",
			"where(Tensor condition, Scalar input, Scalar other) -> Tensor",
		},
		Names:   []string{"torch.where"},
		Doc:     "Selects by a bool tensor: input where condition holds, other elsewhere.",
		Reject:  checkWhere,
		Infer:   inferWhere,
		Kernels: whereKernels,
		Grad:    whereGrad,
		Sample:  sampleWhere,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "where.self(Tensor input, Tensor condition, Tensor other) -> Tensor",
		Names:   []string{"Tensor.where"},
		Doc:     "Selects by a bool tensor: input where condition holds, other elsewhere.",
		SBP:     anyOf(pointwise, additive(arg.Input, arg.Other), zeroElse(arg.Input, arg.Other), zeroElse(arg.Other, arg.Input)),
		Reject:  checkWhere,
		Infer:   inferWhere,
		Kernels: whereKernels,
		Grad:    whereGrad,
		Sample:  sampleWhereSelf,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
}, comparisons)

func mulGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value { return g.Mul(g.G(), conjArg(g, arg.Other)) })
	g.To(arg.Other, func() op.Value { return g.Mul(g.G(), conjArg(g, arg.Input)) })
}

func sampleDiv(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{s.Tensor(-2, 2, a...), s.Tensor(0.5, 2, b...)}
}

func samplePow(s *op.Sampler) []any {
	a, b := twoShapes(s)
	if s.Fresh && s.DType.IsInt() && s.Bool() {
		x, y, lo := tensor.New(s.DType, a...), tensor.New(s.DType, b...), int64(-3)
		if s.DType == tensor.U8 {
			lo = 0
		}
		for i := range x.Len() {
			x.SetInt(i, s.Int(lo, 4))
		}
		for i := range y.Len() {
			y.SetInt(i, s.Int(lo, 5))
		}
		return []any{x, y}
	}
	switch s.Index(3) {
	case 0:
		return []any{s.Tensor(0.5, 2, a...), s.Tensor(-2, 2, b...)}
	case 1:
		return []any{s.Tensor(0.5, 2, a...), s.Float(-3, 3)}
	}
	return []any{s.Float(0.5, 3), s.Tensor(-2, 2, a...)}
}

func sampleWhere(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{sampleMask(s, a), s.Tensor(-2, 2, b...), s.Tensor(-2, 2, a...)}
}

func sampleWhereSelf(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{s.Tensor(-2, 2, b...), sampleMask(s, a), s.Tensor(-2, 2, a...)}
}

var comparisons = withReversed(
	equality("eq", "input = other", kernel.Eq[int64], kernel.Eq[float32], kernel.Eq[float64], kernel.Eq[complex128], "eq"),
	equality("ne", "input ≠ other", kernel.Ne[int64], kernel.Ne[float32], kernel.Ne[float64], kernel.Ne[complex128], "ne", "not_equal"),
	order("gt", "input > other", kernel.Gt[int64], kernel.Gt[float32], kernel.Gt[float64], "gt", "greater"),
	order("ge", "input ≥ other", kernel.Ge[int64], kernel.Ge[float32], kernel.Ge[float64], "ge", "greater_equal"),
	order("lt", "input < other", kernel.Lt[int64], kernel.Lt[float32], kernel.Lt[float64], "lt", "less"),
	order("le", "input ≤ other", kernel.Le[int64], kernel.Le[float32], kernel.Le[float64], "le", "less_equal"),
)

// compare is the block function of a comparison.
type compare[T kernel.Lane] = func(dst []uint8, a, b []T)

func order(id, formula string, i64 compare[int64], f32 compare[float32], f64 compare[float64], names ...string) *op.Def {
	return &op.Def{
		Sig:    id + "(Tensor input, Tensor other) -> Tensor",
		More:   []string{id + "(Tensor input, Scalar other) -> Tensor"},
		Names:  append(both(names...), "operator."+id),
		Doc:    "Compares real elements: " + formula + ".",
		Traits: op.NoGrad | op.Compares,
		SBP:    pointwise,
		Reject: rejectComplex(arg.Input, arg.Other),
		Infer:  zipped(func(op.Args) tensor.DType { return tensor.Bool }, promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: []op.Kernel{
			compareKernel("integer", integralSet, i64),
			compareKernel("float32", float32Set, f32),
			compareKernel("float64", float64Set, f64),
		},
		Sample: sampleTwo(-2, 2),
		Tol:    exactTol("a comparison"),
	}
}

func equality(id, formula string, i64 compare[int64], f32 compare[float32], f64 compare[float64], c128 compare[complex128], names ...string) *op.Def {
	d := order(id, formula, i64, f32, f64, names...)
	d.Doc = "Compares elements: " + formula + "."
	d.Traits |= op.Commutative
	d.Reject = nil
	d.Kernels = append(d.Kernels, compareKernel("complex", complexTypes, c128))
	return d
}

// withReversed adds to each comparison the form with a Scalar before the
// tensor, which only Python's operators accept.
func withReversed(defs ...*op.Def) []*op.Def {
	all := slices.Clone(defs)
	for _, d := range defs {
		id, _, _ := strings.Cut(d.Sig, "(")
		r := *d
		r.Sig, r.More = id+".reversed(Scalar input, Tensor other) -> Tensor", nil
		r.Names = []string{"operator." + id}
		r.Traits = op.NoGrad | op.Compares
		r.Sample = func(s *op.Sampler) []any { return []any{s.Float(-2, 2), s.Tensor(-2, 2, s.Shape(0, 4)...)} }
		all = append(all, &r)
	}
	return all
}

func compareKernel[T kernel.Lane](name string, ds []tensor.DType, f compare[T]) op.Kernel {
	return zipKernel(name, ds, arg.Input, arg.Other, promoted(arg.Input, arg.Other), fixed(f))
}

func binaryKernel[T kernel.Lane](name string, ds []tensor.DType, f func(dst, a, b []T)) op.Kernel {
	return zipKernel(name, ds, arg.Input, arg.Other, promoted(arg.Input, arg.Other), fixed(f))
}

// scalarForms are the signatures of a binary operator with a Scalar on either side.
func scalarForms(id string) []string {
	return []string{
		id + "(Tensor input, Scalar other) -> Tensor",
		id + "(Scalar input, Tensor other) -> Tensor",
	}
}

// addKernels compute x + sign·alpha·y.
func addKernels(sign float64, x, y op.TensorArg) []op.Kernel {
	alpha := func(a op.Args) complex128 {
		k := number(a, arg.Alpha)
		if i, ok := k.Any().(int64); ok {
			return complex(sign*float64(i)+0, 0) // an int has no -0
		}
		return complex(sign, 0) * k.Complex()
	}
	to := promoted(arg.Input, arg.Other)
	return []op.Kernel{
		zipKernel("integer", integralSet, x, y, to, func(a op.Args) func(dst, a, b []int64) {
			return scaled(alpha(a), kernel.AddScaled(int64(sign)*number(a, arg.Alpha).Int()))
		}),
		zipKernel("float32", []tensor.DType{tensor.F32}, x, y, to, func(a op.Args) func(dst, a, b []float32) {
			switch alpha(a) {
			case 1:
				return kernel.Add32
			case -1:
				return kernel.Sub32
			}
			return kernel.AddScaled32(float32(real(alpha(a))))
		}),
		zipKernel("half", halfTypes, x, y, to, func(a op.Args) func(dst, a, b []float32) {
			return scaled(alpha(a), kernel.AddScaledHalf(float32(real(alpha(a))), roundHalf(to(a))))
		}),
		zipKernel("float64", float64Set, x, y, to, func(a op.Args) func(dst, a, b []float64) {
			return scaled(alpha(a), kernel.AddScaled64(real(alpha(a))))
		}),
		zipKernel("complex", complexTypes, x, y, to, func(a op.Args) func(dst, a, b []complex128) {
			return scaled(alpha(a), kernel.AddScaled(alpha(a)))
		}),
	}
}

// scaled returns the plain sum or difference where alpha is 1 or -1.
func scaled[T float64 | float32 | int64 | complex128](alpha complex128, general func(dst, a, b []T)) func(dst, a, b []T) {
	switch alpha {
	case 1:
		return kernel.Add[T]
	case -1:
		return kernel.Sub[T]
	}
	return general
}

func addGrad(g *op.Grad, sign int64) {
	g.To(arg.Input, func() op.Value { return g.G() })
	g.To(arg.Other, func() op.Value {
		d := g.G()
		if alpha := number(g.Args, arg.Alpha); alpha.Complex() != 1 {
			d = g.Mul(d, cmplxConj(alpha))
		}
		if sign < 0 {
			d = g.Neg(d)
		}
		return d
	})
}

func cmplxConj(s op.Scalar) op.Scalar {
	if c, ok := s.Any().(complex128); ok {
		return op.ScalarOf(cmplx.Conj(c))
	}
	return s
}

// conjArg returns the conjugate of a tensor or Scalar argument.
func conjArg(g *op.Grad, name op.TensorArg) any {
	if v := g.Value(name); v != nil {
		return conj(g, v)
	}
	return cmplxConj(number(g.Args, name))
}

// checkAlpha is PyTorch's alpha_check.
var defaultAlpha = op.ScalarOf(int64(1)) // which any dtype takes

func checkAlpha(a op.Args) error {
	alpha := number(a, arg.Alpha)
	if alpha == defaultAlpha {
		return nil
	}
	d := a.Promoted(arg.Input, arg.Other)
	switch k := alpha.DType(); {
	case k == tensor.Bool && d != tensor.Bool:
		return op.RuntimeError("Boolean alpha only supported for Boolean results, not %s", d)
	case k.IsFloat() && !d.IsDifferentiable():
		return op.RuntimeError("For integral input tensors, argument alpha must not be a floating point number")
	case k.IsComplex() && !d.IsComplex():
		return op.RuntimeError("For non-complex input tensors, argument alpha must not be a complex number")
	}
	return fits(alpha, d)
}

func rejectBoolSub(a op.Args) error {
	for _, name := range []op.TensorArg{arg.Input, arg.Other} {
		v := a.Value(name)
		if v != nil && v.DType() == tensor.Bool || v == nil && number(a, name).DType() == tensor.Bool {
			return op.RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported: argument '%s'", name)
		}
	}
	return nil
}

// rejectComplex rejects tensors and Scalars that promote to a complex dtype.
func rejectComplex(names ...op.Handle) func(op.Args) error {
	return complexIs(op.RuntimeError, names)
}

// refuseComplex is rejectComplex where PyTorch calls the dtype a wrong type.
func refuseComplex(names ...op.Handle) func(op.Args) error { return complexIs(op.TypeError, names) }

func complexIs(class func(format string, args ...any) *op.Error, names []op.Handle) func(op.Args) error {
	return func(a op.Args) error {
		if d := a.Promoted(names...); d.IsComplex() {
			return class("not implemented for %s", d)
		}
		return nil
	}
}

func divType(a op.Args) tensor.DType {
	d := a.Promoted(arg.Input, arg.Other)
	if a.Has(arg.RoundingMode) {
		return d
	}
	return floatResult(d)
}

func checkRounding(a op.Args) error {
	if !a.Has(arg.RoundingMode) {
		return nil
	}
	if m := a.Str(arg.RoundingMode); m != "trunc" && m != "floor" {
		return op.RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", m)
	}
	if d := a.Promoted(arg.Input, arg.Other); d == tensor.Bool || d.IsComplex() {
		return op.RuntimeError("rounding_mode is not implemented for %s", d)
	}
	return nil
}

func divKernel[T kernel.Lane](name string, ds []tensor.DType, mode string, f func(dst, a, b []T)) op.Kernel {
	k := zipKernel(name, ds, arg.Input, arg.Other, divType, fixed(f))
	k.When = op.And(k.When, op.Pred{
		Text:  "rounding_mode '" + mode + "'",
		Holds: func(a op.Args) bool { return a.Str(arg.RoundingMode) == mode },
	})
	if _, integer := any(f).(func(dst, a, b []int64)); integer {
		k.Run = guardZero(divType, k.Run)
	}
	return k
}

// guardZero rejects an integer division in which an element is divided by zero.
func guardZero(to func(op.Args) tensor.DType, run func(*op.Run) error) func(*op.Run) error {
	return func(c *op.Run) error {
		if c.Out[0].Len() > 0 && kernel.AnyZero(operand(c.Args, arg.Other, to(c.Args))) {
			return op.RuntimeError("ZeroDivisionError: argument 'other' has a zero")
		}
		return run(c)
	}
}

func divGrad(g *op.Grad) {
	if g.Has(arg.RoundingMode) {
		g.To(arg.Input, func() op.Value { return zeros(g, g.G()) })
		g.To(arg.Other, func() op.Value { return zeros(g, g.G()) })
		return
	}
	g.To(arg.Input, func() op.Value { return g.Div(g.G(), conjArg(g, arg.Other)) })
	g.To(arg.Other, func() op.Value {
		other := g.Value(arg.Other)
		return g.Mul(g.Neg(g.G()), conj(g, g.Div(g.Div(g.Any(arg.Input), other), other)))
	})
}

// powMeta is elementwise, but a power of a Scalar is contiguous, as in PyTorch.
func powMeta(d func(op.Args) tensor.DType) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		if a.Value(arg.Input) == nil {
			return one(d(a), a.Value(arg.Exponent).Shape(), nil), nil
		}
		return zipped(d, d, arg.Input, arg.Exponent)(a)
	}
}

func checkPow(a op.Args) error {
	d := a.Promoted(arg.Input, arg.Exponent)
	if a.Value(arg.Exponent) == nil {
		if e := number(a, arg.ExponentScalar); !d.IsDifferentiable() && e.Float() < 0 {
			return op.RuntimeError("Integers to negative integer powers are not allowed: exponent %v", e.Any())
		}
		if err := fits(number(a, arg.ExponentScalar), d); err != nil {
			return err
		}
	}
	if d == tensor.Bool {
		return op.RuntimeError("not implemented for bool")
	}
	return nil
}

// powKernel uses constant for Scalar exponents that it knows, and general otherwise.
func powKernel[T kernel.Lane](name string, ds []tensor.DType, constant func(float64) func(dst, a []T), general func(dst, a, b []T)) op.Kernel {
	k := zipKernel(name, ds, arg.Input, arg.Exponent, promoted(arg.Input, arg.Exponent), fixed(general))
	zip := k.Run
	k.Run = func(c *op.Run) error {
		if f := constantPower(c.Args, constant); f != nil {
			kernel.Map1(c.Out[0], c.Tensor(arg.Input), f)
			return nil
		}
		return zip(c)
	}
	return k
}

func constantPower[T any](a op.Args, constant func(float64) func(dst, a []T)) func(dst, a []T) {
	if constant == nil || a.Value(arg.Exponent) != nil {
		return nil
	}
	e := number(a, arg.ExponentScalar)
	if imag(e.Complex()) != 0 {
		return nil
	}
	return constant(e.Float())
}

func powGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value { return powGradInput(g) })
	g.To(arg.Exponent, func() op.Value { return powGradExponent(g) })
}

// powGradInput is g·conj(y·x^(y-1)), and 0 where the exponent is 0.
func powGradInput(g *op.Grad) op.Value {
	exponent := g.Value(arg.Exponent)
	if exponent == nil {
		return powGradBase(g)
	}
	slope := g.Mul(exponent, g.Op("pow", g.Any(arg.Input), g.Sub(exponent, 1)))
	return g.Op("where", g.Op("eq", exponent, 0), 0.0, g.Mul(g.G(), conj(g, slope)))
}

// powGradBase is g·conj(n·x^(n-1)) for a Scalar n, and 0 for n = 0.
func powGradBase(g *op.Grad) op.Value {
	n := number(g.Args, arg.ExponentScalar)
	if n.Complex() == 0 {
		return zeros(g, g.G())
	}
	slope := g.Mul(g.Op("pow", g.Any(arg.Input), minusOne(n)), n)
	return g.Mul(g.G(), conj(g, slope))
}

func minusOne(s op.Scalar) op.Scalar {
	switch v := s.Any().(type) {
	case bool:
		return op.ScalarOf(s.Int() - 1)
	case int64:
		return op.ScalarOf(v - 1)
	case float64:
		return op.ScalarOf(v - 1)
	}
	return op.ScalarOf(s.Complex() - 1)
}

// powGradExponent is g·conj(y·log(x)), and 0 where x = 0 and the exponent is not negative.
func powGradExponent(g *op.Grad) op.Value {
	input := g.Value(arg.Input)
	if input == nil {
		base := number(g.Args, arg.InputScalar)
		d := g.Mul(g.G(), conj(g, g.Mul(g.Out[0], logScalar(base, g.Out[0].DType().IsComplex()))))
		if base.Complex() != 0 {
			return d
		}
		return g.Op("where", notNegative(g), 0.0, d)
	}
	d := g.Mul(g.G(), conj(g, g.Mul(g.Out[0], g.Op("log", input))))
	return g.Op("where", g.Mul(g.Op("eq", input, 0), notNegative(g)), 0.0, d)
}

// notNegative says where the exponent is real and at least 0.
func notNegative(g *op.Grad) op.Value {
	e := g.Value(arg.Exponent)
	if !e.DType().IsComplex() {
		return g.Op("ge", e, 0)
	}
	re := g.Cast(e, e.DType().Real())
	return g.Mul(g.Op("eq", e, re), g.Op("ge", re, 0))
}

func logScalar(s op.Scalar, complexly bool) op.Scalar {
	if complexly {
		return op.ScalarOf(cmplx.Log(s.Complex()))
	}
	return op.ScalarOf(math.Log(s.Float()))
}

func maximumDef(sig string, names ...string) *op.Def {
	return &op.Def{
		Sig:    sig,
		Names:  names,
		Doc:    "Larger of two real elements; NaN if either is NaN. Its gradient goes in halves to equal elements.",
		Traits: op.Commutative,
		SBP:    pointwise,
		Reject: refuseComplex(arg.Input, arg.Other),
		Infer:  zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: []op.Kernel{
			binaryKernel("integer", integralSet, kernel.MaximumInt),
			binaryKernel("float32", float32Set, kernel.Maximum32),
			binaryKernel("float64", float64Set, kernel.Maximum[float64]),
		},
		Grad:   maximumGrad,
		Sample: sampleMaximum,
		Exact:  exactly(truth.Maximum),
		Tol:    selectTol("one of its inputs"),
	}
}

func maximumGrad(g *op.Grad) {
	x, y := g.Value(arg.Input), g.Value(arg.Other)
	half := func(loses op.Value) op.Value {
		d := g.Op("where", g.Op("eq", x, y), g.Div(g.G(), 2), g.G())
		return g.Op("where", loses, 0.0, d)
	}
	g.To(arg.Input, func() op.Value { return half(g.Op("lt", x, y)) })
	g.To(arg.Other, func() op.Value { return half(g.Op("gt", x, y)) })
}

func sampleMaximum(s *op.Sampler) []any {
	a, _ := twoShapes(s)
	both := s.Distinct(append([]int{2}, a...)...)
	return []any{both.Select(0, 0), both.Select(0, 1)}
}

func checkWhere(a op.Args) error {
	if d := a.Value(arg.Condition).DType(); d != tensor.Bool && d != tensor.U8 {
		return op.RuntimeError("where expected argument 'condition' to be a boolean tensor, but got %s", d)
	}
	for _, name := range []op.TensorArg{arg.Input, arg.Other} {
		if a.Value(name) == nil {
			if err := fits(number(a, name), a.Promoted(arg.Input, arg.Other)); err != nil {
				return err
			}
		}
	}
	return nil
}

// inferWhere lets condition, input and other decide the memory order, in that order.
func inferWhere(a op.Args) ([]op.Meta, error) {
	d := a.Promoted(arg.Input, arg.Other)
	vs := append([]op.Value{a.Value(arg.Condition)}, convertedTo(d, valuesOf(a, []op.Handle{arg.Input, arg.Other}))...)
	shape, err := broadcastShape(vs...)
	if err != nil {
		return nil, err
	}
	return one(d, shape, iteratorStrides(shape, vs...)), nil
}

var whereKernels = []op.Kernel{
	whereKernel[int64]("integer", integralSet),
	whereKernel[float32]("float32", float32Set),
	whereKernel[float64]("float64", float64Set),
	whereKernel[complex128]("complex", complexTypes),
}

func whereKernel[T float32 | float64 | int64 | complex128](name string, ds []tensor.DType) op.Kernel {
	return op.Kernel{Name: name, When: resultIn(ds, arg.Input, arg.Other), Run: func(c *op.Run) error {
		d := c.Promoted(arg.Input, arg.Other)
		kernel.Map3(c.Out[0], c.Tensor(arg.Condition), operand(c.Args, arg.Input, d), operand(c.Args, arg.Other, d), kernel.Where[T])
		return nil
	}}
}

func whereGrad(g *op.Grad) {
	c := g.Value(arg.Condition)
	g.To(arg.Input, func() op.Value { return g.Op("where", c, g.G(), 0.0) })
	g.To(arg.Other, func() op.Value { return g.Op("where", c, 0.0, g.G()) })
}

// twoShapes draws two shapes that broadcast with each other.
func twoShapes(s *op.Sampler) (a, b []int) {
	a = s.Shape(0, 4)
	b = slices.Clone(a)
	if len(b) > 0 && s.Bool() {
		b[s.Index(len(b))] = 1
	}
	if len(b) > 0 && s.Bool() {
		b = b[1:]
	}
	return a, b
}

func sampleTwo(lo, hi float64) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		a, b := twoShapes(s)
		return []any{s.Tensor(lo, hi, a...), s.Tensor(lo, hi, b...)}
	}
}

func sampleMask(s *op.Sampler, shape []int) *tensor.Tensor {
	t := tensor.New(tensor.Bool, shape...)
	for i := range t.Len() {
		t.SetInt(i, int64(s.Index(2)))
	}
	return t
}

// addsNothing reports whether other is the zero that leaves every bit of input
// as it is, of the sign given by negative; for integers either. The sum of -0
// and 0 is 0.
func addsNothing(a op.Args, negative bool) bool {
	other, alpha := a.Scalar(arg.OtherScalar).Float(), a.Scalar(arg.Alpha)
	return other == 0 && !alpha.DType().IsComplex() && alpha.Float() == 1 &&
		(math.Signbit(other) == negative || a.Value(arg.Input).DType().IsInt())
}
