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

var arithOps = slices.Concat([]*op.Def{
	minimumDef("minimum(Tensor input, Tensor other) -> Tensor", both("minimum")...),
	minimumDef("min.other(Tensor input, Tensor other) -> Tensor", both("min")...),
	{
		Sig:    "fmax(Tensor input, Tensor other) -> Tensor",
		Names:  both("fmax"),
		Doc:    "Larger of two real elements; a NaN loses to a number. The gradient of equal elements goes to input.",
		SBP:    pointwise,
		Reject: refuseComplex(arg.Input, arg.Other),
		Infer:  zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Grad:   func(g *op.Grad) { winnerGrad(g, "ge") },
		Sample: sampleApart,
		Kernels: zip{f32: kernel.Fmax[float32], f64: kernel.Fmax[float64], i64: kernel.MaximumInt}.
			kernels(promoted(arg.Input, arg.Other)),
		Exact: exactly(truth.Fmax),
		Tol:   selectTol("one of its inputs"),
	},
	{
		Sig:    "fmin(Tensor input, Tensor other) -> Tensor",
		Names:  both("fmin"),
		Doc:    "Smaller of two real elements; a NaN loses to a number. The gradient of equal elements goes to input.",
		SBP:    pointwise,
		Reject: refuseComplex(arg.Input, arg.Other),
		Infer:  zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Grad:   func(g *op.Grad) { winnerGrad(g, "le") },
		Sample: sampleApart,
		Kernels: zip{f32: kernel.Fmin[float32], f64: kernel.Fmin[float64], i64: kernel.MinimumInt}.
			kernels(promoted(arg.Input, arg.Other)),
		Exact: exactly(truth.Fmin),
		Tol:   selectTol("one of its inputs"),
	},
	{
		Sig:    "fmod(Tensor input, Tensor other) -> Tensor",
		More:   []string{"fmod(Tensor input, Scalar other) -> Tensor"},
		Names:  both("fmod"),
		Doc:    "Remainder of input / other rounded towards zero: input - other·trunc(input/other).",
		SBP:    anyOf(pointwise),
		Reject: rejectPromoted(boolAndComplex, arg.Input, arg.Other),
		Infer:  zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](math.Mod), f64: kernel.Zip[float64](math.Mod), i64: kernel.ZipInt(kernel.FmodInt)}.
			dividing(promoted(arg.Input, arg.Other)),
		Grad:   func(g *op.Grad) { modGrad(g, "trunc") },
		Sample: sampleQuotients,
		Exact:  exactly(truth.Fmod),
		Tol:    exactTol("fmod is exact"),
	},
	{
		Sig:    "remainder(Tensor input, Tensor other) -> Tensor",
		More:   scalarForms("remainder"),
		Names:  append(both("remainder"), "operator.mod", "Tensor.__mod__"),
		Doc:    "Remainder of input / other rounded down: input - other·⌊input/other⌋.",
		SBP:    pointwise,
		Reject: rejectPromoted(boolAndComplex, arg.Input, arg.Other),
		Infer:  zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](kernel.Remainder), f64: kernel.Zip[float64](kernel.Remainder), i64: kernel.ZipInt(kernel.RemainderInt)}.
			dividing(promoted(arg.Input, arg.Other)),
		Grad:   remainderGrad,
		Sample: sampleQuotients,
		Exact:  exactly(truth.Remainder),
		Tol:    ulpTol(1, "fmod is exact, and one addition follows"),
	},
	{
		Sig:    "floor_divide(Tensor input, Tensor other) -> Tensor",
		More:   scalarForms("floor_divide"),
		Names:  append(both("floor_divide"), "operator.floordiv", "Tensor.__floordiv__"),
		Doc:    "Quotient of the elements rounded down: ⌊input/other⌋. PyTorch has no gradient of it.",
		SBP:    pointwise,
		Reject: rejectPromoted(boolAndComplex, arg.Input, arg.Other),
		Infer:  zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{f32: kernel.DivFloor[float32], f64: kernel.DivFloor[float64], i64: kernel.DivFloorInt}.
			dividing(promoted(arg.Input, arg.Other)),
		Grad:   noDerivative("floor_divide", arg.Input, arg.Other),
		Fixed:  []op.Handle{arg.Input, arg.Other},
		Sample: sampleQuotients,
		Tol:    exactTol("an integer"),
	},
	{
		Sig:     "rsub(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor",
		More:    []string{"rsub(Tensor input, Scalar other, *, Scalar alpha=1) -> Tensor"},
		Names:   []string{"torch.rsub"},
		Doc:     "Difference the other way round: other - alpha·input.",
		Traits:  op.Cancels | op.Additive,
		SBP:     anyOf(pointwise, additive(arg.Input, arg.Other)),
		Reject:  firstError(rejectBoolSub, checkAlpha),
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Other, arg.Input),
		Kernels: addKernels(-1, arg.Other, arg.Input),
		Grad:    rsubGrad,
		Sample:  sampleRsub,
		Exact:   exactly(truth.Rsub),
		Formula: rsubFormula,
		Tol:     ulpTol(1, "one rounding: "+openCL),
	},
	{
		Sig:     "atan2(Tensor input, Tensor other) -> Tensor",
		Names:   both("atan2", "arctan2"),
		Doc:     "Angle of the point (other, input), in [-π, π]. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectComplex(arg.Input, arg.Other),
		Infer:   zipped(floatPromoted, floatPromoted, arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](kernel.Atan2), f64: kernel.Zip[float64](kernel.Atan2)}.kernels(floatPromoted),
		Grad:    atan2Grad,
		Sample:  sampleBothPositive,
		Exact:   exactly(truth.Atan2),
		Tol:     ulpTol(6, "atan2: "+openCL),
	},
	{
		Sig:     "hypot(Tensor input, Tensor other) -> Tensor",
		Names:   both("hypot"),
		Doc:     "Length of the hypotenuse: √(input² + other²).",
		Traits:  op.Commutative,
		SBP:     pointwise,
		Reject:  rejectPromoted(append(integralSet, complexTypes...), arg.Input, arg.Other),
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](math.Hypot), f64: kernel.Zip[float64](math.Hypot)}.kernels(promoted(arg.Input, arg.Other)),
		Grad:    hypotGrad,
		Sample:  sampleBothPositive,
		Exact:   exactly(truth.Hypot),
		Tol:     ulpTol(4, "hypot: "+openCL),
	},
	{
		Sig:     "logaddexp(Tensor input, Tensor other) -> Tensor",
		Names:   both("logaddexp"),
		Doc:     "Logarithm of a sum of exponentials: log(e^input + e^other).",
		Traits:  op.Commutative,
		SBP:     pointwise,
		Reject:  rejectPromoted(append(integralSet, complexTypes...), arg.Input, arg.Other),
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](kernel.Logaddexp), f64: kernel.Zip[float64](kernel.Logaddexp)}.kernels(promoted(arg.Input, arg.Other)),
		Grad:    func(g *op.Grad) { logaddexpGrad(g, 1) },
		Sample:  sampleTwo(-3, 3),
		Exact:   exactly(truth.LogAddExp),
		Formula: logAddExpFormula("exp", "log1p", 1),
		Tol:     logaddTol,
	},
	{
		Sig:     "logaddexp2(Tensor input, Tensor other) -> Tensor",
		Names:   both("logaddexp2"),
		Doc:     "Binary logarithm of a sum of powers of two: log2(2^input + 2^other).",
		Traits:  op.Commutative,
		SBP:     pointwise,
		Reject:  rejectPromoted(append(integralSet, complexTypes...), arg.Input, arg.Other),
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](kernel.Logaddexp2), f64: kernel.Zip[float64](kernel.Logaddexp2)}.kernels(promoted(arg.Input, arg.Other)),
		Grad:    func(g *op.Grad) { logaddexpGrad(g, math.Ln2) },
		Sample:  sampleTwo(-3, 3),
		Exact:   exactly(truth.LogAddExp2),
		Formula: logAddExpFormula("exp2", "log1p", 1/math.Ln2),
		Tol:     logaddTol,
	},
	{
		Sig:     "xlogy(Tensor input, Tensor other) -> Tensor",
		More:    scalarForms("xlogy"),
		Names:   append(both("xlogy"), "torch.special.xlogy"),
		Doc:     "input·log(other), and 0 where input is 0 unless other is NaN. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectComplex(arg.Input, arg.Other),
		Infer:   zipped(floatPromoted, floatPromoted, arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](kernel.Xlogy), f64: kernel.Zip[float64](kernel.Xlogy)}.kernels(floatPromoted),
		Grad:    func(g *op.Grad) { xlogyGrad(g, "xlogy", 0) },
		Sample:  samplePositiveOther,
		Exact:   exactly(truth.XLogY),
		Tol:     ulpTol(4, "log 3 ULP, then a multiplication: "+openCL),
	},
	{
		Sig:     "xlog1py(Tensor input, Tensor other) -> Tensor",
		More:    scalarForms("xlog1py"),
		Names:   []string{"torch.special.xlog1py"},
		Doc:     "input·log(1 + other), and 0 where input is 0 unless other is NaN. Integers give float32.",
		SBP:     pointwise,
		Reject:  rejectComplex(arg.Input, arg.Other),
		Infer:   zipped(floatPromoted, floatPromoted, arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](kernel.Xlog1py), f64: kernel.Zip[float64](kernel.Xlog1py)}.kernels(floatPromoted),
		Grad:    func(g *op.Grad) { xlogyGrad(g, "xlog1py", 1) },
		Sample:  samplePositiveOther,
		Exact:   exactly(truth.XLog1pY),
		Tol:     ulpTol(3, "log1p 2 ULP, then a multiplication: "+openCL),
	},
	{
		Sig:     "copysign(Tensor input, Tensor other) -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Other: op.NoNaN},
		More:    []string{"copysign(Tensor input, Scalar other) -> Tensor"},
		Names:   both("copysign"),
		Doc:     "Magnitude of input with the sign of other. Integers give float32. Other's gradient is 0.",
		SBP:     pointwise,
		Reject:  rejectComplex(arg.Input, arg.Other),
		Infer:   zipped(floatPromoted, floatPromoted, arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Zip[float32](math.Copysign), f64: kernel.Zip[float64](math.Copysign)}.kernels(floatPromoted),
		Grad:    copysignGrad,
		Sample:  sampleApart,
		Exact:   exactly(truth.Copysign),
		Tol:     exactTol("a change of sign"),
	},
	{
		Sig:     "float_power(Tensor input, Tensor exponent) -> Tensor",
		InPlace: op.InPlaceRules{Fit: fitFloatPower},
		More:    []string{"float_power(Tensor input, Scalar exponent) -> Tensor", "float_power(Scalar input, Tensor exponent) -> Tensor"},
		Names:   both("float_power"),
		Doc:     "Power of the elements in float64, or complex128 for complex elements: input^exponent.",
		SBP:     pointwise,
		Infer:   powMeta(floatPowerType),
		Kernels: []op.Kernel{
			floatPowerKernel("real", slices.Concat(integralSet, float32Set, float64Set), kernel.PowConst[float64], kernel.Pow64),
			floatPowerKernel("complex", complexTypes, kernel.PowConstComplex, kernel.PowComplex),
		},
		Grad:   floatPowerGrad,
		Sample: sampleFloatPower,
		Exact:  exactlyWide(truth.Pow),
		Tol:    ulpTol(16, "pow: "+openCL),
	},
	{
		Sig:    "heaviside(Tensor input, Tensor values) -> Tensor",
		Names:  both("heaviside"),
		Doc:    "Step function: 0 below 0, 1 above, and values at 0. PyTorch has no gradient of it.",
		SBP:    pointwise,
		Reject: checkHeaviside,
		Infer:  elementwise(func(a op.Args) tensor.DType { return a.Value(arg.Input).DType() }, arg.Input, arg.Values),
		Kernels: []op.Kernel{
			zipKernel("integer", integralSet, arg.Input, arg.Values, promoted(arg.Input, arg.Values), fixed(kernel.Heaviside[int64])),
			zipKernel("float32", float32Set, arg.Input, arg.Values, promoted(arg.Input, arg.Values), fixed(kernel.Heaviside[float32])),
			zipKernel("float64", float64Set, arg.Input, arg.Values, promoted(arg.Input, arg.Values), fixed(kernel.Heaviside[float64])),
		},
		Grad:   noDerivative("heaviside", arg.Input, arg.Values),
		Fixed:  []op.Handle{arg.Input, arg.Values},
		Sample: sampleTwo(-2, 2),
		Tol:    exactTol("0, 1 or an input"),
	},
	{
		Sig:   "nextafter(Tensor input, Tensor other) -> Tensor",
		Names: both("nextafter"),
		Doc:   "The next number after input towards other, on the dtype's own grid. PyTorch has no gradient of it.",
		SBP:   pointwise,
		Infer: zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: []op.Kernel{
			zipKernel("float32", []tensor.DType{tensor.F32}, arg.Input, arg.Other, promoted(arg.Input, arg.Other), fixed(kernel.NextAfter32)),
			zipKernel("float64", float64Set, arg.Input, arg.Other, promoted(arg.Input, arg.Other), fixed(kernel.NextAfter64)),
			zipKernel("bfloat16", []tensor.DType{tensor.BF16}, arg.Input, arg.Other, promoted(arg.Input, arg.Other), fixed(kernel.NextAfterBF16)),
		},
		Grad:   noDerivative("nextafter", arg.Input, arg.Other),
		Fixed:  []op.Handle{arg.Input, arg.Other},
		Sample: sampleTwo(-2, 2),
		Tol:    exactTol("a neighbour of the input"),
	},
	{
		Sig:     "gcd(Tensor input, Tensor other) -> Tensor",
		Names:   both("gcd"),
		Doc:     "Greatest common divisor of the elements of two integer tensors.",
		Traits:  op.NoGrad | op.Commutative,
		SBP:     pointwise,
		Reject:  integersOnly(arg.Input, arg.Other),
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{i64: kernel.ZipInt(kernel.Gcd)}.kernels(promoted(arg.Input, arg.Other)),
		Sample:  sampleIntegers,
		Tol:     exactTol("integers"),
	},
	{
		Sig:     "lcm(Tensor input, Tensor other) -> Tensor",
		Names:   both("lcm"),
		Doc:     "Least common multiple of the elements of two integer tensors.",
		Traits:  op.NoGrad | op.Commutative,
		SBP:     pointwise,
		Reject:  integersOnly(arg.Input, arg.Other),
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{i64: kernel.ZipInt(kernel.Lcm)}.kernels(promoted(arg.Input, arg.Other)),
		Sample:  sampleIntegers,
		Tol:     exactTol("integers"),
	},
}, specialOps)

func remainderGrad(g *op.Grad) {
	if g.Value(arg.Input) == nil {
		noDerivative("remainder of a number", arg.Other)(g)
	}
	modGrad(g, "floor")
}

func rsubGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value { return g.Neg(g.Mul(g.G(), cmplxConj(number(g.Args, arg.Alpha)))) })
	g.To(arg.Other, g.G)
}

func sampleRsub(s *op.Sampler) []any {
	args := sampleTwo(-2, 2)(s)
	if s.Bool() {
		args = append(args, op.Kw("alpha", s.Int(-2, 3)))
	}
	return args
}

func atan2Grad(g *op.Grad) {
	f64 := func(v op.Value) op.Value { return g.Cast(v, tensor.F64) } // of float32, no square of it overflows
	x, y := f64(g.Value(arg.Input)), f64(g.Value(arg.Other))
	over := func(d op.Value) op.Value {
		squares := g.Add(g.Mul(x, x), g.Mul(y, y))
		return g.Mul(g.Mul(f64(g.G()), d), g.Op("where", g.Op("eq", squares, 0), 0.0, g.Op("reciprocal", squares)))
	}
	g.To(arg.Input, func() op.Value { return over(y) })
	g.To(arg.Other, func() op.Value { return over(g.Neg(x)) })
}

func hypotGrad(g *op.Grad) {
	part := func(name op.TensorArg) func() op.Value {
		return func() op.Value {
			return g.Mul(wide(g, g.G()), g.Div(wide(g, g.Value(name)), wide(g, g.Out[0])))
		}
	}
	g.To(arg.Input, part(arg.Input))
	g.To(arg.Other, part(arg.Other))
}

func copysignGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value {
		x := g.Value(arg.Input)
		ratio := g.Op("where", g.Op("eq", x, 0), 0.0, g.Div(g.Out[0], x))
		return g.Mul(g.G(), ratio)
	})
	g.To(arg.Other, func() op.Value { return zeros(g, g.G()) })
}

func sampleFloatPower(s *op.Sampler) []any {
	a, b := twoShapes(s)
	switch s.Index(3) {
	case 0:
		return []any{s.Tensor(0.5, 2, a...), s.Tensor(-2, 2, b...)}
	case 1:
		return []any{s.Tensor(0.5, 2, a...), s.Float(-3, 3)}
	}
	return []any{s.Float(0.5, 3), s.Tensor(-2, 2, a...)}
}

func checkHeaviside(a op.Args) error {
	x, y := a.Value(arg.Input).DType(), a.Value(arg.Values).DType()
	if x.IsComplex() || y.IsComplex() {
		return op.RuntimeError("heaviside is not implemented for complex tensors")
	}
	if x != y {
		return op.RuntimeError("argument 'values' must have input's dtype %s, not %s", x, y)
	}
	return nil
}

// boolAndComplex are the dtypes that divisions with a remainder lack.
var boolAndComplex = append([]tensor.DType{tensor.Bool}, complexTypes...)

var logaddTol = op.Tol{
	Class: op.Accumulating, Terms: func(op.Args) int { return 2 },
	Reason: "max(x, y) + log1p(e^-|x-y|), whose terms cancel for negative maxima",
}

// zip are the block functions of a map over "input" and "other", one per lane
// type; nil where there is none.
type zip struct {
	f32  func(dst, a, b []float32)
	f64  func(dst, a, b []float64)
	i64  func(dst, a, b []int64)
	c128 func(dst, a, b []complex128)
}

// kernels returns a kernel for every lane, with the operands brought to the
// dtype to. Without an integer lane, integers and bool are computed in float32.
func (z zip) kernels(to func(op.Args) tensor.DType) []op.Kernel {
	var ks []op.Kernel
	reals := float32Set
	if z.i64 != nil {
		ks = append(ks, zipKernel("integer", integralSet, arg.Input, arg.Other, to, fixed(z.i64)))
	} else {
		reals = slices.Concat(float32Set, integralSet)
	}
	if z.f32 != nil {
		ks = append(ks, zipKernel("float32", reals, arg.Input, arg.Other, to, fixed(z.f32)))
	}
	if z.f64 != nil {
		ks = append(ks, zipKernel("float64", float64Set, arg.Input, arg.Other, to, fixed(z.f64)))
	}
	if z.c128 != nil {
		ks = append(ks, zipKernel("complex", complexTypes, arg.Input, arg.Other, to, fixed(z.c128)))
	}
	return ks
}

// dividing is kernels for divisions: an integer zero in other is an error.
func (z zip) dividing(to func(op.Args) tensor.DType) []op.Kernel {
	ks := z.kernels(to)
	ks[0].Run = guardZero(to, ks[0].Run)
	return ks
}

// floatPromoted is the promoted dtype of input and other; float32 for integers.
func floatPromoted(a op.Args) tensor.DType { return floatResult(a.Promoted(arg.Input, arg.Other)) }

// rejectPromoted rejects arguments that promote to one of the dtypes.
func rejectPromoted(ds []tensor.DType, names ...op.Handle) func(op.Args) error {
	return func(a op.Args) error {
		if d := a.Promoted(names...); slices.Contains(ds, d) {
			return op.RuntimeError("not implemented for %s", d)
		}
		return nil
	}
}

func integersOnly(names ...op.Handle) func(op.Args) error {
	return func(a op.Args) error {
		if d := a.Promoted(names...); !slices.Contains(integerTypes, d) {
			return op.RuntimeError("arguments must be integers, not %s", d)
		}
		return nil
	}
}

// noDerivative is the gradient of an operator for which PyTorch refuses one.
func noDerivative(id string, names ...op.TensorArg) func(*op.Grad) {
	return func(g *op.Grad) {
		for _, n := range names {
			if g.Needs(n) {
				op.Fail(op.RuntimeError("the derivative of %s with respect to '%s' is not implemented", id, n))
			}
		}
	}
}

func minimumDef(sig string, names ...string) *op.Def {
	return &op.Def{
		Sig:    sig,
		Names:  names,
		Doc:    "Smaller of two real elements; NaN if either is NaN. Its gradient goes in halves to equal elements.",
		Traits: op.Commutative,
		SBP:    pointwise,
		Reject: refuseComplex(arg.Input, arg.Other),
		Infer:  zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{f32: kernel.Minimum32, f64: kernel.Minimum[float64], i64: kernel.MinimumInt}.
			kernels(promoted(arg.Input, arg.Other)),
		Grad:   minimumGrad,
		Sample: sampleApart,
		Exact:  exactly(truth.Minimum),
		Tol:    selectTol("one of its inputs"),
	}
}

func minimumGrad(g *op.Grad) {
	x, y := g.Value(arg.Input), g.Value(arg.Other)
	half := func(loses op.Value) op.Value {
		d := g.Op("where", g.Op("eq", x, y), g.Div(g.G(), 2), g.G())
		return g.Op("where", loses, 0.0, d)
	}
	g.To(arg.Input, func() op.Value { return half(g.Op("gt", x, y)) })
	g.To(arg.Other, func() op.Value { return half(g.Op("lt", x, y)) })
}

// winnerGrad passes the gradient to input where it wins or other is NaN, and
// to other elsewhere.
func winnerGrad(g *op.Grad, wins string) {
	x, y := g.Value(arg.Input), g.Value(arg.Other)
	first := g.Op("logical_or", g.Op(wins, x, y), g.Op("isnan", y))
	g.To(arg.Input, func() op.Value { return g.Op("where", first, g.G(), 0.0) })
	g.To(arg.Other, func() op.Value { return g.Op("where", first, 0.0, g.G()) })
}

// modGrad is the gradient of input - other·round(input/other).
func modGrad(g *op.Grad, mode string) {
	g.To(arg.Input, g.G)
	g.To(arg.Other, func() op.Value {
		q := g.Op("div", g.Any(arg.Input), g.Any(arg.Other), op.Kw("rounding_mode", mode))
		return g.Neg(g.Mul(g.G(), q))
	})
}

// logaddexpGrad shares the gradient as a logistic function of k times the difference.
func logaddexpGrad(g *op.Grad, k float64) {
	x, y := wide(g, g.Value(arg.Input)), wide(g, g.Value(arg.Other))
	share := func(d op.Value) op.Value {
		return g.Mul(wide(g, g.G()), g.Op("sigmoid", g.Mul(d, k)))
	}
	g.To(arg.Input, func() op.Value { return share(g.Sub(x, y)) })
	g.To(arg.Other, func() op.Value { return share(g.Sub(y, x)) })
}

// xlogyGrad is the gradient of x·log(y + shift), id's formula.
func xlogyGrad(g *op.Grad, id string, shift int) {
	x, y := g.Any(arg.Input), g.Any(arg.Other)
	g.To(arg.Input, func() op.Value {
		d := g.Op(id, g.G(), y)
		zero := g.Op("eq", g.Value(arg.Input), 0)
		if v := g.Value(arg.Other); v != nil {
			return g.Op("where", g.Op("logical_and", zero, g.Op("le", v, -shift)), 0.0, d)
		}
		if number(g.Args, arg.OtherScalar).Float() <= float64(-shift) {
			return g.Op("where", zero, 0.0, d)
		}
		return d
	})
	g.To(arg.Other, func() op.Value {
		if shift != 0 {
			y = g.Add(y, shift)
		}
		return g.Div(g.Mul(g.G(), x), y)
	})
}

func floatPowerType(a op.Args) tensor.DType {
	if a.Promoted(arg.Input, arg.Exponent).IsComplex() {
		return tensor.C128
	}
	return tensor.F64
}

// floatPowerKernel is powKernel with the operands brought to 64 bits.
func floatPowerKernel[T kernel.Lane](name string, ds []tensor.DType, constant func(float64) func(dst, a []T), general func(dst, a, b []T)) op.Kernel {
	k := zipKernel(name, ds, arg.Input, arg.Exponent, floatPowerType, fixed(general))
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

// floatPowerGrad is powGrad of the operands in 64 bits.
func floatPowerGrad(g *op.Grad) {
	d := floatPowerType(g.Args)
	args := g.Args
	args.Vals = slices.Clone(args.Vals)
	pow := *g
	for i, v := range args.Vals {
		if x, ok := v.(op.Value); ok {
			args.Vals[i] = g.Cast(x, d)
		}
	}
	pow.Args = args
	g.To(arg.Input, func() op.Value { return powGradInput(&pow) })
	g.To(arg.Exponent, func() op.Value { return powGradExponent(&pow) })
}

// sampleApart draws two tensors of one shape whose elements are far from each other.
func sampleApart(s *op.Sampler) []any {
	a, _ := twoShapes(s)
	both := s.Distinct(append([]int{2}, a...)...)
	return []any{both.Select(0, 0), both.Select(0, 1)}
}

// sampleQuotients draws operands whose quotient is far from integers; of integers any.
func sampleQuotients(s *op.Sampler) []any {
	a, b := twoShapes(s)
	x, y := s.Tensor(0.1, 0.9, a...), tensor.New(s.DType, b...)
	for i := range y.Len() {
		y.Set(i, complex([]float64{1, -1}[s.Index(2)], 0))
	}
	for i := range x.Len() {
		x.Set(i, x.At(i)+complex(float64(s.Int(-3, 3)), 0))
	}
	if !s.Fresh {
		return []any{x, y}
	}
	by := complex([]float64{1, 2, 3, 0.5}[s.Index(4)], 0)
	if s.DType.IsInt() {
		by = complex(math.Ceil(real(by)), 0)
	}
	for i := range y.Len() {
		y.Set(i, y.At(i)*by)
	}
	for i := range x.Len() {
		if s.DType.IsInt() {
			x.SetInt(i, s.Int(-7, 8))
		} else {
			x.Set(i, x.At(i)*by)
		}
	}
	return []any{x, y}
}

func sampleBothPositive(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{s.Tensor(0.3, 2, a...), s.Tensor(0.3, 2, b...)}
}

func samplePositiveOther(s *op.Sampler) []any {
	a, b := twoShapes(s)
	switch s.Index(4) {
	case 0:
		return []any{s.Tensor(-2, 2, a...), s.Float(0.5, 2)}
	case 1:
		return []any{s.Float(-2, 2), s.Tensor(0.5, 2, b...)}
	}
	return []any{s.Tensor(-2, 2, a...), s.Tensor(0.5, 2, b...)}
}

func sampleIntegers(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{someIntegers(s, a), someIntegers(s, b)}
}

func someIntegers(s *op.Sampler, shape []int) *tensor.Tensor {
	t := tensor.New(tensor.I64, shape...)
	for i := range t.Len() {
		t.SetInt(i, s.Int(-20, 21))
	}
	return t
}
