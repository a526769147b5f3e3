package ops

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// complexOps take complex tensors apart and put them together.
var complexOps = []*op.Def{
	{
		Sig:     "complex(Tensor real, Tensor imag) -> Tensor",
		Names:   []string{"torch.complex"},
		Doc:     "real + i·imag.",
		SBP:     anyOf(pointwise, additive(arg.Real, arg.Imag)),
		Reject:  checkParts(arg.Real, arg.Imag),
		Infer:   elementwise(func(a op.Args) tensor.DType { return complexOf(a.Value(arg.Real).DType()) }, arg.Real, arg.Imag),
		Kernels: []op.Kernel{{Name: "copy", Run: runComplex}},
		Grad:    complexGrad,
		Saves:   savesTensors,
		Sample:  sampleComplex,
		Tol:     exactTol("copies its inputs"),
	},
	{
		Sig:     "polar(Tensor abs, Tensor angle) -> Tensor",
		Names:   []string{"torch.polar"},
		Doc:     "abs·cos(angle) + i·abs·sin(angle).",
		Reject:  checkParts(arg.Abs, arg.Angle),
		Compose: composePolar,
		Sample:  samplePolar,
		Tol:     ulpTol(5, "OpenCL: sin and cos 4 ULP, and a product"),
	},
	partOp("real", 0), partOp("imag", 1),
	{
		Sig:   "angle(Tensor input) -> Tensor",
		Names: both("angle"),
		Doc:   "Argument of each complex number, in [-π, π]; of a real one 0, or π below 0. Integers give float32.",
		SBP:   pointwise,
		Infer: elementwise(func(a op.Args) tensor.DType { return floatResult(a.Value(arg.Input).DType()).Real() }, arg.Input),
		Kernels: append(unary{f32: kernel.AngleReal[float32], f64: kernel.AngleReal[float64]}.kernels(), op.Kernel{
			Name: "complex", When: op.DTypeIn(arg.Input, complexTypes...), Run: runAngle,
		}),
		Grad:    op.Gradient(angleGrad),
		Saves:   savesTensors,
		Sample:  sampleDistinct,
		NoExact: "a real number has one of two angles, that of a complex one is atan2 of its parts",
		Tol:     ulpTol(6, "atan2: "+openCL),
	},
	{
		Sig:    "view_as_real(Tensor input) -> Tensor",
		Names:  []string{"torch.view_as_real"},
		Doc:    "A view of a complex tensor as pairs of reals, in a last dimension of size 2.",
		Traits: op.View,
		SBP:    linearly,
		Infer:  inferViewAsReal,
		View:   viewViewAsReal,
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Op("view_as_complex", g.Op("contiguous", g.G())) }),
		Sample: func(s *op.Sampler) []any { return []any{complexSample(s, s.Shape(0, 3))} },
		Tol:    exactTol("a view of its input"),
	},
	{
		Sig:    "view_as_complex(Tensor input) -> Tensor",
		Names:  []string{"torch.view_as_complex"},
		Doc:    "A view of a tensor whose last dimension has size 2 as complex numbers.",
		Traits: op.View,
		SBP:    anyOf(linear(arg.Input), planes(1, arg.Input)),
		Reject: checkPairs,
		Infer:  inferViewAsComplex,
		View:   viewViewAsComplex,
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Op("view_as_real", g.G()) }),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, append(s.Shape(0, 3), 2)...)} },
		Tol:    exactTol("a view of its input"),
	},
}

func runComplex(c *op.Run) error {
	for i, part := range []op.TensorArg{arg.Real, arg.Imag} {
		x, err := c.Tensor(part).Expand(c.Out[0].Shape()...)
		if err != nil {
			return err
		}
		component(c.Out[0], i).CopyFrom(x)
	}
	return nil
}

func complexGrad(g *op.Grad) {
	g.To(arg.Real, func() op.Value { return g.Op("real", g.G()) })
	g.To(arg.Imag, func() op.Value { return g.Op("imag", g.G()) })
}

func sampleComplex(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...)}
}

func runAngle(c *op.Run) error {
	kernel.Map1(c.Out[0], c.Tensor(arg.Input), kernel.AngleComplex)
	return nil
}

// angleGrad is i·x/|x|², 0 for the number 0.
func angleGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	if !x.DType().IsComplex() {
		return zeros(g, x)
	}
	r := g.Op("abs", x)
	turned := g.Mul(g.Div(x, g.Mul(r, r)), 1i)
	return g.Op("where", g.Op("eq", x, 0), 0.0, g.Mul(g.G(), turned))
}

func composePolar(b op.Builder, a op.Args) []op.Value {
	r, phi := a.Value(arg.Abs), a.Value(arg.Angle)
	return vals(b.Op("complex", b.Mul(r, b.Op("cos", phi)), b.Mul(r, b.Op("sin", phi))))
}

func samplePolar(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	return []any{s.Tensor(0.1, 2, shape...), s.Tensor(-3, 3, shape...)}
}

func inferViewAsReal(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	if !v.DType().IsComplex() {
		return nil, op.TypeError("view_as_real is only supported for complex tensors")
	}
	return one(realOf(v.DType()), append(slices.Clone(v.Shape()), 2), append(doubled(v.Strides()), 1)), nil
}

func viewViewAsReal(a op.Args) (*tensor.Tensor, error) {
	if !a.Value(arg.Input).DType().IsComplex() {
		return nil, op.TypeError("view_as_real is only supported for complex tensors")
	}
	return asReal(a.Tensor(arg.Input)), nil
}

func inferViewAsComplex(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	n := len(v.Shape()) - 1
	return one(complexOf(v.DType()), v.Shape()[:n], halved(v.Strides()[:n])), nil
}

func viewViewAsComplex(a op.Args) (*tensor.Tensor, error) {
	t := a.Tensor(arg.Input)
	n := t.Dim() - 1
	return t.As(complexOf(t.DType()), t.Shape()[:n], halved(t.Strides()[:n]), t.Offset()/2)
}

// complexOf returns the complex dtype of the components' dtype.
func complexOf(d tensor.DType) tensor.DType {
	if d == tensor.F64 {
		return tensor.C128
	}
	return tensor.C64
}

// realOf returns the dtype of a complex dtype's components.
func realOf(d tensor.DType) tensor.DType {
	switch d {
	case tensor.C64:
		return tensor.F32
	case tensor.C128:
		return tensor.F64
	}
	return d
}

// errComplexHalf says that the result would be complex32.
var errComplexHalf = fmt.Errorf("%w: dtype complex32", op.ErrUnknown)

func checkParts(x, y op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		d := a.Value(x).DType()
		switch {
		case d == tensor.F16:
			return errComplexHalf
		case d != tensor.F32 && d != tensor.F64:
			return op.RuntimeError("Expected arguments '%s' and '%s' to be Float or Double tensors but got %s", x, y, d)
		case a.Value(y).DType() != d:
			return op.RuntimeError("Expected argument '%s' to have the dtype of '%s', %s, but got %s", y, x, d, a.Value(y).DType())
		}
		return nil
	}
}

// asReal is a complex tensor as pairs of reals.
func asReal(t *tensor.Tensor) *tensor.Tensor {
	u, err := t.As(realOf(t.DType()), append(slices.Clone(t.Shape()), 2), append(doubled(t.Strides()), 1), 2*t.Offset())
	if err != nil {
		panic(err)
	}
	return u
}

func component(t *tensor.Tensor, i int) *tensor.Tensor { return asReal(t).Select(t.Dim(), i) }

func doubled(xs []int) []int {
	out := make([]int, len(xs))
	for i, x := range xs {
		out[i] = 2 * x
	}
	return out
}

func halved(xs []int) []int {
	out := make([]int, len(xs))
	for i, x := range xs {
		out[i] = x / 2
	}
	return out
}

// partOp is a view of one component of complex numbers; a real tensor is its
// own real part.
func partOp(name string, i int) *op.Def {
	check := func(a op.Args) error {
		if i == 1 && !a.Value(arg.Input).DType().IsComplex() {
			return op.TypeError("imag is not implemented for tensors with non-complex dtypes: argument 'input' is %s", a.Value(arg.Input).DType())
		}
		return nil
	}
	return &op.Def{
		Sig:    name + "(Tensor input) -> Tensor",
		Names:  []string{"torch." + name, "Tensor." + name},
		Doc:    "A view of the " + name + " parts of complex numbers.",
		Traits: op.View,
		SBP:    linearly,
		Reject: check,
		Infer:  inferPartOp,
		View: func(a op.Args) (*tensor.Tensor, error) {
			t := a.Tensor(arg.Input)
			if !t.DType().IsComplex() {
				return t, nil
			}
			return component(t, i), nil
		},
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			if i == 0 {
				return g.G()
			}
			return g.Op("complex", zeros(g, g.G()), g.G())
		}),
		Sample: func(s *op.Sampler) []any { return []any{complexSample(s, s.Shape(0, 3))} },
		Tol:    exactTol("a view of its input"),
	}
}

func inferPartOp(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	if !v.DType().IsComplex() {
		return one(v.DType(), v.Shape(), v.Strides()), nil
	}
	return one(realOf(v.DType()), v.Shape(), doubled(v.Strides())), nil
}

// complexSample draws a complex tensor whatever the sampler's dtype.
func complexSample(s *op.Sampler, shape []int) *tensor.Tensor {
	c := *s
	c.DType = complexOf(s.DType)
	return c.Tensor(-2, 2, shape...)
}

func checkPairs(a op.Args) error {
	v := a.Value(arg.Input)
	n := len(v.Shape()) - 1
	switch d := v.DType(); {
	case d == tensor.F16:
		return errComplexHalf
	case d.IsComplex():
		return op.TypeError("view_as_complex is not supported for complex tensors")
	case d != tensor.F32 && d != tensor.F64:
		return op.RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s", d)
	case n < 0:
		return op.RuntimeError("Input tensor must have one or more dimensions")
	case v.Shape()[n] != 2:
		return op.RuntimeError("Tensor must have a last dimension of size 2")
	case v.Strides()[n] != 1:
		return op.RuntimeError("Tensor must have a last dimension with stride 1")
	case slices.ContainsFunc(v.Strides()[:n], func(s int) bool { return s%2 != 0 }):
		return op.RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
	}
	if t, ok := v.(interface{ Offset() int }); ok && t.Offset()%2 != 0 {
		return op.RuntimeError("Tensor must have a storage_offset divisible by 2")
	}
	return nil
}
