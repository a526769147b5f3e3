package ops

import (
	"slices"

	"plumb/kernel"
	"plumb/op"
	"plumb/tensor"
)

var sortOps = slices.Concat(orderOps, searchOps, uniqueOps)

// orderOps order the entries of a dimension.
var orderOps = []*op.Def{
	{
		Sig:     "sort(Tensor input, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Names:   both("sort"),
		Doc:     "Sorts along dim, NaN as the largest value; indices are the places in input. Equal elements keep their order.",
		Check:   checkSort,
		Infer:   inferSort,
		Kernels: sortKernels(sortRun),
		Grad:    orderGrad,
		Sample: func(s *op.Sampler) []any {
			x := s.Distinct(s.Shape(0, 4)...)
			n := int64(max(x.Dim(), 1))
			return []any{x, s.Int(-n, n), s.Bool()}
		},
		Tol: exactTol("its inputs in another order"),
	},
	{
		Sig:     "sort.stable(Tensor input, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Names:   both("sort"),
		Doc:     "Sorts along dim, NaN as the largest value; equal elements keep their order.",
		Check:   checkSort,
		Infer:   inferSort,
		Kernels: sortKernels(sortRun),
		Grad:    orderGrad,
		Sample: func(s *op.Sampler) []any {
			x := s.Distinct(s.Shape(0, 4)...)
			n := int64(max(x.Dim(), 1))
			return []any{x, op.Kw("stable", s.Bool()), op.Kw("dim", s.Int(-n, n)), op.Kw("descending", s.Bool())}
		},
		Tol: exactTol("its inputs in another order"),
	},
	{
		Sig:     "argsort(Tensor input, int dim=-1, bool descending=False) -> Tensor",
		Names:   both("argsort"),
		Doc:     "The places of the elements along dim in sorted order. Equal elements keep their order.",
		Traits:  op.NoGrad,
		Check:   checkSort,
		Infer:   inferArgsort,
		Kernels: sortKernels(sortRun),
		Sample: func(s *op.Sampler) []any {
			x := s.Distinct(s.Shape(0, 4)...)
			n := int64(max(x.Dim(), 1))
			return []any{x, s.Int(-n, n), s.Bool()}
		},
		Tol: exactTol("places in its input"),
	},
	{
		Sig:     "argsort.stable(Tensor input, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
		Names:   both("argsort"),
		Doc:     "The places of the elements along dim in sorted order; equal elements keep their order.",
		Traits:  op.NoGrad,
		Check:   checkSort,
		Infer:   inferArgsort,
		Kernels: sortKernels(sortRun),
		Sample: func(s *op.Sampler) []any {
			x := s.Distinct(s.Shape(0, 4)...)
			n := int64(max(x.Dim(), 1))
			return []any{x, op.Kw("stable", true), op.Kw("dim", s.Int(-n, n)), op.Kw("descending", s.Bool())}
		},
		Tol: exactTol("places in its input"),
	},
	{
		Sig:   "msort(Tensor input) -> Tensor",
		Names: both("msort"),
		Doc:   "Sorts along the first dimension, NaN as the largest value.",
		Check: func(a op.Args) error { return rejectTypes("input", complexTypes...)(a) },
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value("input")
			return one(v.DType(), v.Shape(), denseStrides(v)), nil
		},
		Kernels: sortKernels(func(c *op.Run, run sortFunc) error {
			out := c.Out[0]
			run(out, tensor.New(tensor.I64, out.Shape()...), c.Tensor("input"), 0, false)
			return nil
		}),
		Grad: func(g *op.Grad) {
			x := g.Value("input")
			g.To("input", func() op.Value {
				if len(x.Shape()) == 0 {
					return g.G()
				}
				return g.Op("scatter", zeros(g, x), 0, g.Op("argsort", x, 0), g.G())
			})
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...)} },
		Tol:    exactTol("its inputs in another order"),
	},
	{
		Sig:   "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
		Names: both("topk"),
		Doc:   "The k largest elements along dim, or the smallest, in sorted order, and their places; of equal elements the first ones.",
		Check: firstError(rejectTypes("input", append([]tensor.DType{tensor.Bool}, complexTypes...)...), checkTopK),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value("input")
			shape := slices.Clone(v.Shape())
			if len(shape) > 0 {
				shape[dimOf(a)] = a.Int("k")
			}
			return []op.Meta{{DType: v.DType(), Shape: shape}, {DType: tensor.I64, Shape: shape}}, nil
		},
		Kernels: sortKernels(func(c *op.Run, run sortFunc) error {
			run(c.Out[0], c.Out[1], c.Tensor("input"), dimOf(c.Args), c.Bool("largest"))
			return nil
		}),
		Grad: orderGrad,
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(0, 4)
			n := max(len(shape), 1)
			d, size := s.Index(n), 1
			if len(shape) > 0 {
				size = shape[d]
			}
			return []any{s.Distinct(shape...), s.Index(size) + 1, d - s.Index(2)*n, s.Bool(), s.Bool()}
		},
		Tol: exactTol("elements of its input"),
	},
	{
		Sig:   "kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
		Names: both("kthvalue"),
		Doc:   "The k-th smallest element along dim, counted from 1, and its place; NaN is the largest value.",
		Check: firstError(rejectTypes("input", append([]tensor.DType{tensor.Bool}, complexTypes...)...), checkKth),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value("input")
			shape := reducedShape(v.Shape(), []int{dimOf(a)}, a.Bool("keepdim"))
			return []op.Meta{{DType: v.DType(), Shape: shape}, {DType: tensor.I64, Shape: shape}}, nil
		},
		Kernels: sortKernels(runKth),
		Grad: func(g *op.Grad) {
			g.To("input", func() op.Value {
				x := g.Value("input")
				if len(x.Shape()) == 0 {
					return g.G()
				}
				d := dimOf(g.Args)
				kept := reducedShape(x.Shape(), []int{d}, true)
				return g.Op("scatter", zeros(g, x), d, g.Reshape(g.Out[1], kept), g.Reshape(g.G(), kept))
			})
		},
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(1, 4)
			d := s.Index(len(shape))
			return []any{s.Distinct(shape...), s.Index(shape[d]) + 1, d - s.Index(2)*len(shape), s.Bool()}
		},
		Tol: exactTol("elements of its input"),
	},
}

// sortFunc sorts lines, as kernel.Sort does in one lane type.
type sortFunc func(values, indices, in *tensor.Tensor, dim int, descending bool)

func sortKernels(run func(c *op.Run, f sortFunc) error) []op.Kernel {
	with := func(name string, ds []tensor.DType, f sortFunc) op.Kernel {
		return op.Kernel{Name: name, When: op.DTypeIn("input", ds...), Run: func(c *op.Run) error { return run(c, f) }}
	}
	return []op.Kernel{
		with("integer", integralSet, kernel.Sort[int64]),
		with("float32", float32Set, kernel.Sort[float32]),
		with("float64", float64Set, kernel.Sort[float64]),
	}
}

func sortRun(c *op.Run, run sortFunc) error {
	values := c.Out[0]
	if len(c.Out) == 1 {
		values = nil
	}
	run(values, c.Out[len(c.Out)-1], c.Tensor("input"), dimOf(c.Args), c.Bool("descending"))
	return nil
}

func checkSort(a op.Args) error {
	if _, err := wrapDim(a.Int("dim"), len(a.Value("input").Shape())); err != nil {
		return err
	}
	return rejectTypes("input", complexTypes...)(a)
}

func inferSort(a op.Args) ([]op.Meta, error) {
	v := a.Value("input")
	strides := denseStrides(v)
	return []op.Meta{{DType: v.DType(), Shape: v.Shape(), Strides: strides}, {DType: tensor.I64, Shape: v.Shape(), Strides: strides}}, nil
}

func inferArgsort(a op.Args) ([]op.Meta, error) {
	v := a.Value("input")
	return one(tensor.I64, v.Shape(), denseStrides(v)), nil
}

func checkTopK(a op.Args) error {
	v := a.Value("input")
	d, err := wrapDim(a.Int("dim"), len(v.Shape()))
	if err != nil {
		return err
	}
	if k := a.Int("k"); k < 0 || k > sizeAlong(v, d) {
		return op.RuntimeError("argument 'k' must be between 0 and the size %d of dimension %d, but is %d", sizeAlong(v, d), d, k)
	}
	return nil
}

func checkKth(a op.Args) error {
	v := a.Value("input")
	d, err := wrapDim(a.Int("dim"), len(v.Shape()))
	if err != nil {
		return err
	}
	n := sizeAlong(v, d)
	if n == 0 {
		return op.IndexError("expected dimension %d of argument 'input' to have non-zero size", d)
	}
	if k := a.Int("k"); k < 1 || k > n {
		return op.RuntimeError("argument 'k' must be between 1 and the size %d of dimension %d, but is %d", n, d, k)
	}
	return nil
}

func runKth(c *op.Run, run sortFunc) error {
	in := c.Tensor("input")
	if in.Dim() == 0 {
		in, _ = in.View(1)
	}
	d := dimOf(c.Args)
	values, indices := tensor.New(in.DType(), in.Shape()...), tensor.New(tensor.I64, in.Shape()...)
	run(values, indices, in, d, false)
	k := c.Int("k") - 1
	c.Out[0].CopyFrom(values.Narrow(d, k, 1, 1).Reshape(c.Out[0].Shape()...))
	c.Out[1].CopyFrom(indices.Narrow(d, k, 1, 1).Reshape(c.Out[1].Shape()...))
	return nil
}

// orderGrad sends each result's gradient to the place that it came from.
func orderGrad(g *op.Grad) {
	g.To("input", func() op.Value {
		x := g.Value("input")
		if len(x.Shape()) == 0 {
			return g.G()
		}
		return g.Op("scatter", zeros(g, x), dimOf(g.Args), g.Out[1], g.G())
	})
}

var searchOps, uniqueOps []*op.Def
