package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// softmaxDef is softmax or log_softmax under one of its two signatures.
func softmaxDef(id, params string, names []string, logarithm bool) *op.Def {
	doc := "Exponentials that sum to 1 along a dimension: exp(input)/Σ exp(input)."
	backward := "softmax.backward"
	if logarithm {
		doc = "Logarithm of softmax along a dimension: input − log Σ exp(input)."
		backward = "log_softmax.backward"
	}
	return &op.Def{
		Sig:   id + params,
		Names: names,
		Doc:   doc,
		SBP:   softmaxed,
		Infer: inferSoftmax,
		Kernels: []op.Kernel{
			{Name: "float32", When: softmaxResult(tensor.F32, tensor.BF16), Run: softmaxRun[float32](logarithm)},
			{Name: "float16", When: softmaxResult(tensor.F16), Run: softmaxRun[float32](logarithm), Since: "2"},
			{Name: "float64", When: softmaxResult(tensor.F64), Run: softmaxRun[float64](logarithm)},
			{Name: "no elements", When: emptyInput, Priority: 1, Run: zeroResults},
		},
		Formula: softmaxFormula(logarithm),
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			dim, err := softmaxDim(g.Args)
			if err != nil {
				op.Fail(err)
			}
			if tensor.NumElements(g.Out[0].Shape()) == 0 {
				return zeroGrad(g)
			}
			return g.Op(backward, g.Cast(g.G(), g.Out[0].DType()), g.Out[0], dim)
		}),
		Sample: sampleSoftmax,
		Tol:    accumulating(softmaxTerms(arg.Input), "each element sums one exponential per entry of the dimension"),
	}
}

func inferSoftmax(a op.Args) ([]op.Meta, error) {
	if _, err := softmaxDim(a); err != nil {
		return nil, err
	}
	return one(softmaxType(a), a.Value(arg.Input).Shape(), nil), nil
}

func sampleSoftmax(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 3)...)
	n := int64(max(x.Dim(), 1))
	return []any{x, int(s.Int(-n, n))}
}

// softmaxDim returns the dimension, which the functional form may choose.
func softmaxDim(a op.Args) (int, error) {
	n := len(a.Value(arg.Input).Shape())
	switch {
	case a.Has(arg.Dim):
		return wrapDim(a.Int(arg.Dim), n)
	case !a.Sig.Takes(arg.PrivateStacklevel):
		return 0, op.RuntimeError("argument 'dim' must be int, not None")
	case n == 0 || n == 1 || n == 3:
		return 0, nil
	}
	return 1, nil
}

func softmaxType(a op.Args) tensor.DType {
	if a.Has(arg.DType) {
		return a.DType(arg.DType)
	}
	return a.Value(arg.Input).DType()
}

func softmaxResult(ds ...tensor.DType) op.Pred {
	return op.Pred{
		Text:  "result dtype in {" + typeNames(ds) + "}",
		Holds: func(a op.Args) bool { return slices.Contains(ds, softmaxType(a)) },
	}
}

// softmaxTerms counts the entries of the dimension of the named tensor.
func softmaxTerms(name op.TensorArg) func(a op.Args) int {
	return func(a op.Args) int {
		s := a.Value(name).Shape()
		if d, err := wrapDim(a.Int(arg.Dim), len(s)); err == nil && len(s) > 0 {
			return s[d]
		}
		return 1
	}
}

// around splits a shape at a dimension: the sizes outside, of and inside it.
func around(shape []int, dim int) (outer, n, inner int) {
	if len(shape) == 0 {
		return 1, 1, 1
	}
	return tensor.NumElements(shape[:dim]), shape[dim], tensor.NumElements(shape[dim+1:])
}

func softmaxRun[T float32 | float64](logarithm bool) func(c *op.Run) error {
	return func(c *op.Run) error {
		dim, err := softmaxDim(c.Args)
		if err != nil {
			return err
		}
		x, out := c.Tensor(arg.Input), c.Out[0]
		outer, n, inner := around(x.Shape(), dim)
		if x.DType() != out.DType() {
			x = x.Convert(out.DType())
		}
		work := out
		if w := workType(out.DType()); w != out.DType() {
			x, work = x.Convert(w), tensor.New(w, out.Shape()...)
		}
		kernel.Softmax(outer, n, inner, contiguousData[T](x), tensor.Data[T](work), logarithm)
		if work != out {
			out.CopyFrom(work)
		}
		return nil
	}
}

func softmaxBackwardRun[T float32 | float64](logarithm bool) func(c *op.Run) error {
	return func(c *op.Run) error {
		g := c.Tensor(arg.Grad)
		outer, n, inner := around(g.Shape(), c.Int(arg.Dim))
		kernel.SoftmaxBackward(outer, n, inner, contiguousData[T](once(g, c.Int(arg.Dim))), contiguousData[T](c.Tensor(arg.Output)), tensor.Data[T](c.Out[0]), logarithm)
		return nil
	}
}

// once returns the part of t that repeats along all dimensions before dim; t
// itself where it does not.
func once(t *tensor.Tensor, dim int) *tensor.Tensor {
	dim, err := wrapDim(dim, t.Dim())
	if err != nil {
		return t
	}
	for d := range dim {
		if t.Shape()[d] == 0 || t.Shape()[d] > 1 && t.Strides()[d] != 0 {
			return t
		}
	}
	for d := range dim {
		t = t.Narrow(d, 0, 1, 1)
	}
	return t
}

func sampleSoftmaxBackward(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...), s.Index(len(shape))}
}

func softmaxBackwardGrad(g *op.Grad) {
	c, y, dim := g.Value(arg.Grad), g.Value(arg.Output), g.Int(arg.Dim)
	g.To(arg.Grad, func() op.Value { return g.Op("softmax.backward", g.G(), y, dim) })
	g.To(arg.Output, func() op.Value {
		direct := g.Mul(g.G(), g.Sub(c, sumOver(g, g.Mul(c, y), dim)))
		return g.Sub(direct, g.Mul(c, sumOver(g, g.Mul(g.G(), y), dim)))
	})
}

func logSoftmaxBackwardGrad(g *op.Grad) {
	c, y, dim := g.Value(arg.Grad), g.Value(arg.Output), g.Int(arg.Dim)
	weighted := g.Mul(g.G(), g.Op("exp", y))
	g.To(arg.Grad, func() op.Value { return g.Sub(g.G(), sumOver(g, weighted, dim)) })
	g.To(arg.Output, func() op.Value { return g.Neg(g.Mul(weighted, sumOver(g, c, dim))) })
}
