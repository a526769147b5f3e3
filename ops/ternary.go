package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/internal/truth"
	"plumb/op"
	"plumb/tensor"
)

var ternaryOps = []*op.Def{
	{
		Sig:     "masked_fill(Tensor input, Tensor mask, Tensor value) -> Tensor",
		InPlace: op.InPlaceRules{Expanded: true},
		More:    []string{"masked_fill(Tensor input, Tensor mask, Scalar value) -> Tensor"},
		SBP:     anyOf(pointwise, additive(arg.Input, arg.ValueTensor)),
		Names:   both("masked_fill"),
		Doc:     "Replaces the elements where a bool mask holds by one value, a number or a 0-d tensor.",
		Reject:  checkMaskedFill,
		Infer:   inferMaskedFill,
		Kernels: []op.Kernel{
			maskedFillKernel[int64]("integer", integralSet),
			maskedFillKernel[float32]("float32", float32Set),
			maskedFillKernel[float64]("float64", float64Set),
			maskedFillKernel[complex128]("complex", complexTypes),
		},
		Grad:   maskedFillGrad,
		Sample: sampleMaskedFill,
		Tol:    ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:    "addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
		SBP:    anyOf(pointwise, multilinear([]op.Handle{arg.Tensor1, arg.Tensor2}, arg.Input)),
		Names:  both("addcmul"),
		Doc:    "Adds a product: input + value·tensor1·tensor2.",
		Reject: firstError(rejectPromoted([]tensor.DType{tensor.Bool}, threeNames...), checkFactor),
		Infer:  zipped(promoted(threeNames...), promoted(threeNames...), threeNames...),
		Kernels: []op.Kernel{
			factorKernel("integer", integerTypes, func(v op.Scalar) func(dst, a, b, c []int64) { return kernel.Addcmul(v.Int()) }),
			factorKernel("float32", float32Set, func(v op.Scalar) func(dst, a, b, c []float32) { return kernel.AddcmulFloat[float32](v.Float()) }),
			factorKernel("float64", float64Set, func(v op.Scalar) func(dst, a, b, c []float64) { return kernel.AddcmulFloat[float64](v.Float()) }),
			factorKernel("complex", complexTypes, func(v op.Scalar) func(dst, a, b, c []complex128) { return kernel.Addcmul(v.Complex()) }),
		},
		Grad:   addcmulGrad,
		Sample: sampleFactor(-2, 2),
		Exact:  exactly(truth.Addcmul),
		Tol:    ownMagnitude(twoTermTol),
	},
	{
		Sig:    "addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
		Names:  both("addcdiv"),
		Doc:    "Adds a quotient: input + value·tensor1/tensor2.",
		SBP:    anyOf(pointwise, additive(arg.Input, arg.Tensor1)),
		Reject: firstError(rejectIntegerQuotient, rejectPromoted(integralSet, threeNames...), checkFactor),
		Infer:  zipped(promoted(threeNames...), promoted(threeNames...), threeNames...),
		Kernels: []op.Kernel{
			factorKernel("float32", float32Set, func(v op.Scalar) func(dst, a, b, c []float32) { return kernel.Addcdiv[float32](v.Float()) }),
			factorKernel("float64", float64Set, func(v op.Scalar) func(dst, a, b, c []float64) { return kernel.Addcdiv[float64](v.Float()) }),
			factorKernel("complex", complexTypes, func(v op.Scalar) func(dst, a, b, c []complex128) {
				return kernel.AddcdivComplex(v.Complex())
			}),
		},
		Grad:    addcdivGrad,
		Sample:  sampleFactor(0.5, 2),
		Exact:   exactly(truth.Addcdiv),
		Formula: addcdivFormula,
		Tol:     twoTermTol,
	},
	{
		Sig:    "lerp(Tensor input, Tensor end, Tensor weight) -> Tensor",
		More:   []string{"lerp(Tensor input, Tensor end, Scalar weight) -> Tensor"},
		Names:  both("lerp"),
		Doc:    "Linear interpolation: input + weight·(end - input).",
		SBP:    anyOf(pointwise, additive(arg.Input, arg.EndTensor)),
		Reject: checkLerp,
		Infer:  zipped(lerpType, lerpType, arg.Input, arg.EndTensor, arg.Weight),
		Kernels: []op.Kernel{
			lerpKernel("float32", float32Set, kernel.Lerp[float32]),
			lerpKernel("float64", float64Set, kernel.Lerp[float64]),
			lerpKernel("complex", complexTypes, kernel.LerpComplex),
		},
		Grad:    lerpGrad,
		Sample:  sampleLerp,
		Exact:   exactLerp,
		Formula: lerpFormula,
		Tol: op.Tol{
			Class: op.Accumulating, Terms: func(op.Args) int { return 3 },
			Reason: "a difference, a product and a sum, which may cancel",
		},
	},
	{
		Sig:     "clamp.Tensor(Tensor input, Tensor? min=None, Tensor? max=None) -> Tensor",
		Names:   both("clamp", "clip"),
		Traits:  op.Monotone,
		Doc:     "Limits each element by tensors: min(max(x, min), max); NaN if any is NaN. The gradient is x's at the bounds.",
		SBP:     pointwise,
		Reject:  firstError(needsBound, rejectComplex(arg.Input, arg.MinTensor, arg.MaxTensor), rejectBoolBounds),
		Infer:   zipped(promoted(arg.Input, arg.MinTensor, arg.MaxTensor), promoted(arg.Input, arg.MinTensor, arg.MaxTensor), arg.Input, arg.MinTensor, arg.MaxTensor),
		Kernels: clampToKernels(arg.MinTensor, arg.MaxTensor),
		Grad:    func(g *op.Grad) { clampToGrad(g, arg.MinTensor, arg.MaxTensor) },
		Sample:  sampleClampTensor,
		Tol:     selectTol("the input or a bound"),
	},
	boundTensor("clamp_min", arg.MinTensor, "Raises each element to a lower bound: max(x, min)."),
	boundTensor("clamp_max", arg.MaxTensor, "Lowers each element to an upper bound: min(x, max)."),
}

func inferMaskedFill(a op.Args) ([]op.Meta, error) {
	shape, err := broadcastShape(a.Value(arg.Input), a.Value(arg.Mask))
	if err != nil {
		return nil, err
	}
	return one(a.Value(arg.Input).DType(), shape, nil), nil
}

func maskedFillGrad(g *op.Grad) {
	mask := g.Value(arg.Mask)
	g.To(arg.Input, func() op.Value { return g.Op("where", mask, 0.0, g.G()) })
	g.To(arg.ValueTensor, func() op.Value { return g.Op("sum", g.Op("where", mask, g.G(), 0.0)) })
}

func sampleMaskedFill(s *op.Sampler) []any {
	a, b := twoShapes(s)
	args := []any{s.Tensor(-2, 2, a...), sampleMask(s, b), s.Float(-3, 3)}
	if s.Bool() {
		args[2] = s.Tensor(-2, 2)
	}
	return args
}

func addcmulGrad(g *op.Grad) {
	value := number(g.Args, arg.Value)
	times := func(other op.TensorArg) func() op.Value {
		return func() op.Value {
			return g.Mul(wide(g, g.G()), conj(g, g.Mul(wide(g, g.Value(other)), value)))
		}
	}
	g.To(arg.Input, g.G)
	g.To(arg.Tensor1, times(arg.Tensor2))
	g.To(arg.Tensor2, times(arg.Tensor1))
}

func addcdivGrad(g *op.Grad) {
	value, y := number(g.Args, arg.Value), wide(g, g.Value(arg.Tensor2))
	g.To(arg.Input, g.G)
	g.To(arg.Tensor1, func() op.Value { return g.Mul(wide(g, g.G()), conj(g, g.Div(value, y))) })
	g.To(arg.Tensor2, func() op.Value {
		slope := g.Div(g.Mul(wide(g, g.Value(arg.Tensor1)), value), g.Mul(y, y))
		return g.Mul(g.Neg(wide(g, g.G())), conj(g, slope))
	})
}

func lerpGrad(g *op.Grad) {
	w := g.Any(arg.Weight)
	if v := g.Value(arg.Weight); v != nil {
		w = wide(g, v)
	}
	times := func(name op.TensorArg, slope func() any) {
		g.To(name, func() op.Value {
			if g.Out[0].DType().IsComplex() && !g.Value(name).DType().IsComplex() {
				op.Fail(op.RuntimeError("the gradient of %s would be complex, but it is real", name))
			}
			return g.Mul(wide(g, g.G()), conjOf(g, slope()))
		})
	}
	times(arg.Input, func() any { return oneMinus(g, w) })
	times(arg.EndTensor, func() any { return w })
	times(arg.Weight, func() any { return g.Sub(wide(g, g.Value(arg.EndTensor)), wide(g, g.Value(arg.Input))) })
}

func sampleLerp(s *op.Sampler) []any {
	a, b := twoShapes(s)
	args := []any{s.Tensor(-2, 2, a...), s.Tensor(-2, 2, b...), s.Float(-1, 2)}
	if s.Bool() {
		args[2] = s.Tensor(-1, 2, b...)
	}
	return args
}

func sampleClampTensor(s *op.Sampler) []any {
	a, _ := twoShapes(s)
	three := s.Distinct(append([]int{3}, a...)...)
	x, lo, hi := three.Select(0, 0), three.Select(0, 1), three.Select(0, 2)
	switch s.Index(3) {
	case 0:
		return []any{x, lo}
	case 1:
		return []any{x, op.Kw("max", hi)}
	}
	return []any{x, lo, hi}
}

var threeNames = []op.Handle{arg.Input, arg.Tensor1, arg.Tensor2}

var twoTermTol = op.Tol{
	Class: op.Accumulating, Terms: func(op.Args) int { return 2 },
	Reason: "an element and a product or quotient, which may cancel",
}

func checkMaskedFill(a op.Args) error {
	if d := a.Value(arg.Mask).DType(); d != tensor.Bool {
		return op.RuntimeError("masked_fill only supports boolean masks, but argument 'mask' has dtype %s", d)
	}
	if v := a.Value(arg.ValueTensor); v != nil {
		if n := len(v.Shape()); n != 0 {
			return op.RuntimeError("argument 'value' must be a number or a 0-d tensor, but has %d dimensions", n)
		}
		return nil
	}
	return fillable(a.Scalar(arg.Value), a.Value(arg.Input).DType())
}

// fillable rejects a number that a tensor of dtype d cannot be filled with.
func fillable(v op.Scalar, d tensor.DType) error {
	if imag(v.Complex()) != 0 && !d.IsComplex() {
		return op.RuntimeError("argument 'value' cannot be converted to %s without overflow", d)
	}
	return fits(v, d)
}

func maskedFillKernel[T float32 | float64 | int64 | complex128](name string, ds []tensor.DType) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		v := c.Scalar(arg.Value)
		if t := c.Tensor(arg.ValueTensor); t != nil {
			item, err := t.Item()
			if err != nil {
				return err
			}
			v = op.ScalarOf(item)
		}
		d := c.Tensor(arg.Input).DType()
		if err := fillable(v, d); err != nil {
			return err
		}
		kernel.Map3(c.Out[0], c.Tensor(arg.Mask), scalarTensor(v, d), c.Tensor(arg.Input), kernel.Where[T])
		return nil
	}}
}

// checkFactor rejects a value that PyTorch cannot bring to the result's dtype.
func checkFactor(a op.Args) error {
	return fillable(number(a, arg.Value), a.Promoted(threeNames...))
}

func rejectIntegerQuotient(a op.Args) error {
	x, y := a.Value(arg.Tensor1).DType(), a.Value(arg.Tensor2).DType()
	if !x.IsDifferentiable() && !y.IsDifferentiable() {
		return op.RuntimeError("a quotient of integers is not supported: arguments 'tensor1' and 'tensor2' are %s and %s", x, y)
	}
	return nil
}

func factorKernel[T kernel.Lane](name string, ds []tensor.DType, f func(value op.Scalar) func(dst, a, b, c []T)) op.Kernel {
	return op.Kernel{Name: name, When: resultIn(ds, threeNames...), Run: func(c *op.Run) error {
		d := c.Promoted(threeNames...)
		kernel.MapTernary(c.Out[0], operand(c.Args, arg.Input, d), operand(c.Args, arg.Tensor1, d), operand(c.Args, arg.Tensor2, d), f(number(c.Args, arg.Value)))
		return nil
	}}
}

func sampleFactor(lo, hi float64) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		a, b := twoShapes(s)
		args := []any{s.Tensor(-2, 2, b...), s.Tensor(-2, 2, a...), s.Tensor(lo, hi, b...)}
		if s.Bool() {
			args = append(args, op.Kw("value", factorOf(s)))
		}
		return args
	}
}

// lerpType is the dtype of a lerp: its weight takes part as a tensor without dimensions.
func lerpType(a op.Args) tensor.DType {
	if w := a.Value(arg.Weight); w != nil {
		return a.Promoted(arg.Input, arg.EndTensor, arg.Weight)
	}
	return a.Value(arg.Input).DType()
}

// exactLerp knows nothing of a weight that is rounded first.
func exactLerp(a op.Args) op.Truth {
	if w := a.Value(arg.Weight); w != nil && w.DType() != lerpType(a) {
		return nil
	}
	return exactly(truth.Lerp)(a)
}

func checkLerp(a op.Args) error {
	d, weight := a.Value(arg.Input).DType(), a.Value(arg.Weight)
	if end := a.Value(arg.EndTensor).DType(); end != d {
		return op.RuntimeError("argument 'end' must have input's dtype %s, not %s", d, end)
	}
	if weight != nil && weight.DType() != d && len(weight.Shape()) > 0 {
		return op.RuntimeError("argument 'weight' must have input's dtype %s, not %s, or no dimensions", d, weight.DType())
	}
	if common := lerpType(a); !common.IsDifferentiable() || common.IsComplex() && slices.Contains(halfTypes, d) && len(a.Value(arg.Input).Shape())+len(a.Value(arg.EndTensor).Shape()) > 0 {
		return op.RuntimeError("not implemented for %s with a weight of %s", d, common)
	}
	if weight == nil {
		return fillable(a.Scalar(arg.WeightScalar), d)
	}
	return nil
}

func lerpKernel[T kernel.Lane](name string, ds []tensor.DType, f func(dst, a, b, c []T)) op.Kernel {
	when := op.Pred{Text: "result type in {" + typeNames(ds) + "}", Holds: func(a op.Args) bool { return slices.Contains(ds, lerpType(a)) }}
	return op.Kernel{Name: name, When: when, Run: func(c *op.Run) error {
		d := lerpType(c.Args)
		kernel.MapTernary(c.Out[0], operand(c.Args, arg.Input, d), operand(c.Args, arg.EndTensor, d), weightOf(c.Args, d), f)
		return nil
	}}
}

// weightOf returns the weight in dtype d; a number in float32 for the half
// types, which PyTorch does not round to them.
func weightOf(a op.Args, d tensor.DType) *tensor.Tensor {
	if a.Tensor(arg.Weight) != nil {
		return operand(a, arg.Weight, d)
	}
	if slices.Contains(halfTypes, d) {
		d = tensor.F32
	}
	return scalarTensor(a.Scalar(arg.WeightScalar), d)
}

// oneMinus returns 1 - w for a tensor or a Scalar.
func oneMinus(g *op.Grad, w any) any {
	if s, ok := w.(op.Scalar); ok {
		if s.DType().IsComplex() {
			return op.ScalarOf(1 - s.Complex())
		}
		return op.ScalarOf(1 - s.Float())
	}
	return g.Sub(1, w)
}

func conjOf(g *op.Grad, w any) any {
	if s, ok := w.(op.Scalar); ok {
		return cmplxConj(s)
	}
	return conj(g, w.(op.Value))
}

// boundTensor is a clamp with one bound, a tensor.
func boundTensor(id string, bound op.TensorArg, doc string) *op.Def {
	return &op.Def{
		Sig:     id + ".Tensor(Tensor input, Tensor " + string(bound) + ") -> Tensor",
		Names:   both(id),
		Traits:  op.Monotone,
		Doc:     doc + " The gradient is x's at the bound.",
		SBP:     pointwise,
		Reject:  rejectComplex(arg.Input, bound),
		Infer:   zipped(promoted(arg.Input, bound), promoted(arg.Input, bound), arg.Input, bound),
		Kernels: clampToKernels(bound),
		Grad:    func(g *op.Grad) { clampToGrad(g, bound) },
		Sample:  sampleApart,
		Tol:     selectTol("the input or a bound"),
	}
}

// rejectBoolBounds rejects bools between two bounds: PyTorch has the larger and
// the smaller of two bools, but no kernel for both bounds at once.
func rejectBoolBounds(a op.Args) error {
	if a.Has(arg.MinTensor) && a.Has(arg.MaxTensor) && a.Promoted(arg.Input, arg.MinTensor, arg.MaxTensor) == tensor.Bool {
		return op.RuntimeError("not implemented for bool")
	}
	return nil
}

func clampToKernels(bounds ...op.TensorArg) []op.Kernel {
	return []op.Kernel{
		clampToKernel("integer", integralSet, bounds, kernel.MaximumInt, kernel.MinimumInt, kernel.ClampToInt),
		clampToKernel("float32", float32Set, bounds, kernel.Maximum32, kernel.Minimum32, kernel.ClampTo[float32]),
		clampToKernel("float64", float64Set, bounds, kernel.Maximum[float64], kernel.Minimum[float64], kernel.ClampTo[float64]),
	}
}

func clampToKernel[T kernel.Lane](name string, ds []tensor.DType, bounds []op.TensorArg, raise, lower func(dst, a, b []T), both func(dst, a, lo, hi []T)) op.Kernel {
	names := inputAnd(bounds)
	has := func(a op.Args, bound op.TensorArg) bool { return slices.Contains(bounds, bound) && a.Has(bound) }
	return op.Kernel{Name: name, When: resultIn(ds, names...), Run: func(c *op.Run) error {
		d := c.Promoted(names...)
		x := operand(c.Args, arg.Input, d)
		switch lo, hi := has(c.Args, arg.MinTensor), has(c.Args, arg.MaxTensor); {
		case lo && hi:
			kernel.MapTernary(c.Out[0], x, operand(c.Args, arg.MinTensor, d), operand(c.Args, arg.MaxTensor, d), both)
		case lo:
			kernel.Map2(c.Out[0], x, operand(c.Args, arg.MinTensor, d), raise)
		default:
			kernel.Map2(c.Out[0], x, operand(c.Args, arg.MaxTensor, d), lower)
		}
		return nil
	}}
}

// clampToGrad passes the gradient to x within the bounds, and to the bound
// that x violates; max wins over min.
func clampToGrad(g *op.Grad, bounds ...op.TensorArg) {
	x := g.Value(arg.Input)
	var lo, hi op.Value
	if slices.Contains(bounds, arg.MinTensor) {
		lo = g.Value(arg.MinTensor)
	}
	if slices.Contains(bounds, arg.MaxTensor) {
		hi = g.Value(arg.MaxTensor)
	}
	only := func(where string, a, b, d op.Value) op.Value {
		if a == nil || b == nil {
			return d
		}
		return g.Op("where", g.Op(where, a, b), d, 0.0)
	}
	g.To(arg.Input, func() op.Value { return only("ge", x, lo, only("le", x, hi, g.G())) })
	if lo != nil {
		g.To(arg.MinTensor, func() op.Value { return only("lt", lo, hi, only("lt", x, lo, g.G())) })
	}
	if hi != nil {
		g.To(arg.MaxTensor, func() op.Value {
			over := g.Op("gt", x, hi)
			if lo != nil {
				over = g.Op("logical_or", over, g.Op("lt", hi, lo))
			}
			return g.Op("where", over, g.G(), 0.0)
		})
	}
}
