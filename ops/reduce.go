package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var reduceOps = []*op.Def{
	{
		Sig:   "sum(Tensor input, int[1]? dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		SBP:   anyOf(linear(arg.Input), summing),
		More:  []string{"sum(Tensor input, *, dtype? dtype=None) -> Tensor"},
		Names: both("sum"),
		Doc:   "Sum over the dimensions dim, all of them by default. Integers and bool give int64 unless dtype says otherwise.",
		Infer: inferReduced(sumType),
		Kernels: []op.Kernel{
			sumKernel("integer", integralSet, func(out, in *tensor.Tensor, dims []int, _ int) {
				kernel.Sum[int64, int64](out, in, dims, 1)
			}, sumType),
			sumKernel("float32", float32Set, func(out, in *tensor.Tensor, dims []int, _ int) {
				kernel.Sum[float32, float64](out, in, dims, 1)
			}, sumType),
			sumKernel("float64", float64Set, func(out, in *tensor.Tensor, dims []int, _ int) {
				kernel.Sum[float64, float64](out, in, dims, 1)
			}, sumType),
			sumKernel("complex", complexTypes, func(out, in *tensor.Tensor, dims []int, _ int) {
				kernel.SumComplex(out, in, dims, 1)
			}, sumType),
		},
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return spread(g) }),
		Sample: sampleReduced,
		Tol:    ownMagnitude(op.Tol{Class: op.Accumulating, Terms: reducedTerms, Reason: "a sum of Terms elements"}),
	},
	{
		Sig:    "mean(Tensor input, int[1]? dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		SBP:    anyOf(linear(arg.Input), reduced),
		More:   []string{"mean(Tensor input, *, dtype? dtype=None) -> Tensor"},
		Names:  both("mean"),
		Doc:    "Mean over the dimensions dim, all of them by default: the sum divided by the number of elements.",
		Reject: checkMean,
		Infer:  inferReduced(meanType),
		Kernels: []op.Kernel{
			sumKernel("float32", float32Set, func(out, in *tensor.Tensor, dims []int, n int) {
				kernel.Sum[float32](out, in, dims, float64(n))
			}, meanType),
			sumKernel("float64", float64Set, func(out, in *tensor.Tensor, dims []int, n int) {
				kernel.Sum[float64](out, in, dims, float64(n))
			}, meanType),
			sumKernel("complex", complexTypes, func(out, in *tensor.Tensor, dims []int, n int) {
				kernel.SumComplex(out, in, dims, float64(n))
			}, meanType),
		},
		Saves:  func(a op.Args) bool { return a.Has(arg.DimInts) },
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Div(spread(g), max(reducedTerms(g.Args), 1)) }),
		Sample: sampleReduced,
		Tol:    ownMagnitude(fractional(op.Tol{Class: op.Accumulating, Terms: reducedTerms, Reason: "a sum of Terms elements, divided"})),
	},
	{
		Sig:           "max(Tensor input) -> Tensor",
		Traits:        op.Monotone,
		NotSplittable: "the maximum of a split axis would be a partial maximum, which the vocabulary lacks",
		Names:         both("max"),
		Doc:           "Largest element; NaN if there is one. Its gradient is spread evenly over all elements that equal it.",
		Reject:        firstError(rejectTypes(arg.Input, complexTypes...), rejectEmpty),
		Infer:         func(a op.Args) ([]op.Meta, error) { return one(a.Value(arg.Input).DType(), []int{}, nil), nil },
		Kernels: []op.Kernel{
			maxAllKernel[int64]("integer", integralSet),
			maxAllKernel[float32]("float32", float32Set),
			maxAllKernel[float64]("float64", float64Set),
		},
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return spreadEvenly(g) }),
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...)} },
		Tol:    ownMagnitude(selectTol("one of its inputs")),
	},
	{
		Sig:    "max.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
		Traits: op.Monotone,
		SBP:    reduced,
		Names:  both("max"),
		Doc:    "Largest elements along dim and the first index of each; a NaN is larger than everything. The gradient goes to that index.",
		Reject: checkMaxDim,
		Infer:  inferMaxDim,
		Kernels: []op.Kernel{
			maxDimKernel[int64]("integer", integralSet),
			maxDimKernel[float32]("float32", float32Set),
			maxDimKernel[float64]("float64", float64Set),
		},
		Grad:   op.Gradient(maxDimGrad),
		Sample: sampleMaxDim,
		Tol:    ownMagnitude(selectTol("one of its inputs")),
	},
}

func sampleMaxDim(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	n := int64(len(shape))
	return []any{s.Distinct(shape...), s.Int(-n, n), s.Bool()}
}

// reducedDims returns the wrapped dim argument, all dimensions for None or none.
func reducedDims(a op.Args) ([]int, error) {
	return wrapDims(a.Ints(arg.DimInts), len(a.Value(arg.Input).Shape()))
}

// reducedTerms returns how many elements each result combines.
func reducedTerms(a op.Args) int {
	dims, _ := reducedDims(a)
	n := 1
	for _, d := range dims {
		n *= a.Value(arg.Input).Shape()[d]
	}
	return n
}

func inferReduced(dtype func(op.Args) tensor.DType) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		dims, err := reducedDims(a)
		if err != nil {
			return nil, err
		}
		return one(dtype(a), reducedShape(a.Value(arg.Input).Shape(), dims, a.Bool(arg.Keepdim)), nil), nil
	}
}

func sumType(a op.Args) tensor.DType {
	if a.Has(arg.DType) {
		return a.DType(arg.DType)
	}
	if d := a.Value(arg.Input).DType(); d.IsDifferentiable() {
		return d
	}
	return tensor.I64
}

func meanType(a op.Args) tensor.DType {
	if a.Has(arg.DType) {
		return a.DType(arg.DType)
	}
	return a.Value(arg.Input).DType()
}

func checkMean(a op.Args) error {
	if d := meanType(a); !d.IsDifferentiable() {
		return op.RuntimeError("mean(): could not infer output dtype: argument 'input' or 'dtype' must be floating point or complex, not %s", d)
	}
	return nil
}

// sumKernel converts the input to the result's dtype first where the lanes of
// that dtype cannot read it.
func sumKernel(name string, ds []tensor.DType, f func(out, in *tensor.Tensor, dims []int, n int), dtype func(op.Args) tensor.DType) op.Kernel {
	return op.Kernel{
		Name: name,
		When: op.Pred{Text: "result dtype in {" + typeNames(ds) + "}", Holds: func(a op.Args) bool { return slices.Contains(ds, dtype(a)) }},
		Run: func(c *op.Run) error {
			in, d := c.Tensor(arg.Input), dtype(c.Args)
			if in.DType() != d && tensor.Promote(in.DType(), d) != d || d == tensor.Bool {
				in = in.Convert(d)
			}
			dims, err := reducedDims(c.Args)
			if err != nil {
				return err
			}
			f(c.Out[0], in, dims, reducedTerms(c.Args))
			return nil
		},
	}
}

// spread expands the cotangent of a reduction to the shape of its input.
func spread(g *op.Grad) op.Value {
	shape := g.Value(arg.Input).Shape()
	dims, err := reducedDims(g.Args)
	if err != nil {
		op.Fail(err)
	}
	return g.Expand(g.Reshape(g.G(), reducedShape(shape, dims, true)), shape)
}

func sampleReduced(s *op.Sampler) []any {
	shape := s.Shape(0, 4)
	x := s.Tensor(-2, 2, shape...)
	if len(shape) == 0 || s.Bool() {
		return []any{x}
	}
	dims := []int{s.Index(len(shape))}
	if n := s.Index(len(shape)); n != dims[0] {
		dims = append(dims, n-len(shape))
	}
	return []any{x, dims, s.Bool()}
}

func rejectEmpty(a op.Args) error {
	if tensor.NumElements(a.Value(arg.Input).Shape()) == 0 {
		return op.RuntimeError("max(): Expected reduction dim to be specified for argument 'input' without elements")
	}
	return nil
}

func maxAllKernel[T float32 | float64 | int64](name string, ds []tensor.DType) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		in := c.Tensor(arg.Input)
		kernel.Max[T](c.Out[0], nil, in, allDims(in.Dim()))
		return nil
	}}
}

// spreadEvenly divides the cotangent by the number of elements that equal the
// maximum, NaN counted as equal to NaN, and gives each of them its part.
func spreadEvenly(g *op.Grad) op.Value {
	x, y := g.Value(arg.Input), g.Out[0]
	nan := g.Mul(g.Op("ne", x, x), g.Op("ne", y, y))
	mask := g.Add(g.Op("eq", x, y), nan)
	return g.Op("where", mask, g.Div(g.G(), g.Op("sum", mask)), 0.0)
}

func checkMaxDim(a op.Args) error {
	v := a.Value(arg.Input)
	d, err := wrapDim(a.Int(arg.Dim), len(v.Shape()))
	switch {
	case err != nil:
		return err
	case len(v.Shape()) > 0 && v.Shape()[d] == 0:
		return op.IndexError("max(): Expected reduction dim %d to have non-zero size", d)
	case v.DType().IsComplex():
		return op.TypeError("max(): does not support complex input")
	}
	return nil
}

func inferMaxDim(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	d, err := wrapDim(a.Int(arg.Dim), len(v.Shape()))
	if err != nil {
		return nil, err
	}
	shape := reducedShape(v.Shape(), []int{d}, a.Bool(arg.Keepdim))
	return []op.Meta{{DType: v.DType(), Shape: shape}, {DType: tensor.I64, Shape: shape}}, nil
}

func maxDimKernel[T float32 | float64 | int64](name string, ds []tensor.DType) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		in := c.Tensor(arg.Input)
		d, err := wrapDim(c.Int(arg.Dim), in.Dim())
		if err != nil {
			return err
		}
		kernel.Max[T](c.Out[0], c.Out[1], in, []int{d})
		return nil
	}}
}

func maxDimGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	d, err := wrapDim(g.Int(arg.Dim), len(x.Shape()))
	if err != nil {
		op.Fail(err)
	}
	kept := reducedShape(x.Shape(), []int{d}, true)
	return g.Op("scatter", zeros(g, x), d, g.Reshape(g.Out[1], kept), g.Reshape(g.G(), kept))
}
