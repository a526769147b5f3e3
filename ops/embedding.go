package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var embeddingOps = []*op.Def{
	embeddingDef("embedding(Tensor input, Tensor weight"+embeddingParams, "torch.nn.functional.embedding", arg.Input),
	embeddingDef("embedding.torch(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", "torch.embedding", arg.Indices),
	embeddingRenorm,
}

const embeddingParams = ", int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor"

// embeddingRenorm is embedding with a largest norm. PyTorch renormalises without
// gradient: that of the weight is as if its rows had been what they became.
var embeddingRenorm = &op.Def{
	Sig:            "embedding.renorm(Tensor input, Tensor weight" + embeddingParams,
	Names:          []string{"torch.nn.functional.embedding"},
	SelectOverload: func(a op.Args) bool { return a.Has(arg.MaxNorm) },
	Doc: "Embedding that first changes the rows of weight that input numbers: one of a norm of order norm_type, n, above max_norm is " +
		"multiplied by max_norm/(n + 1e-7), once however often it is numbered. The gradient passes the change over.",
	Mutates:       []op.TensorArg{arg.Weight},
	Fixed:         []op.Handle{arg.Input},
	NotSplittable: "a rank that changes rows leaves those of the others as they were",
	Reject:        firstError(checkEmbedding(arg.Input), checkRenorm),
	Infer:         inferEmbedding(arg.Input),
	Kernels: []op.Kernel{{Name: "rows", Run: func(c *op.Run) error {
		rows := c.Tensor(arg.Input).Reshape(c.Tensor(arg.Input).Len())
		s, err := chosenEntries(c.Tensor(arg.Weight), 0, rows)
		if err == nil {
			renormRows(c.Tensor(arg.Weight), rows, c.Float(arg.NormType), c.Float(arg.MaxNorm))
			s.Take(c.Out[0].Reshape(s.View.Shape()...))
		}
		return err
	}}},
	Grad: embeddingGrad(arg.Input),
	Sample: func(s *op.Sampler) []any {
		n := 2 + s.Index(4)
		weight, rows := s.Tensor(-2, 2, n, s.Index(4)+1), sampleIndex(s, s.Shape(0, 2), n-1)
		p := []float64{2, 1, 0.5, 1.2, 0, -2, math.Inf(1), math.Inf(-1)}[s.Index(8)]
		return []any{rows, weight, op.Kw("padding_idx", n-1), op.Kw("max_norm", s.Float(0.1, 3)), op.Kw("norm_type", p)}
	},
	Tol: accumulating(func(a op.Args) int { return a.Value(arg.Weight).Shape()[1] }, "the norm of a row sums one term per element"),
}

func checkRenorm(a op.Args) error {
	w, p := a.Value(arg.Weight), a.Float(arg.NormType)
	switch d := w.DType(); {
	case !a.Has(arg.MaxNorm):
		return op.TypeError("argument 'max_norm' must be a number, not None")
	case !d.IsDifferentiable() && tensor.NumElements(a.Value(arg.Input).Shape()) > 0:
		return op.RuntimeError("argument 'weight' must be floating point or complex for argument 'max_norm', not %s", d)
	case len(w.Shape()) == 2 && w.Shape()[1] == 0 && (p < 0 || math.IsInf(p, 1)) && tensor.NumElements(a.Value(arg.Input).Shape()) > 0:
		return op.RuntimeError("argument 'weight' has rows without elements, of which there is no norm of order %g", p)
	}
	return nil
}

// renormRows multiplies the rows of w that rows numbers, and whose norm of order
// p is above most, by most/(norm + 1e-7).
func renormRows(w, rows *tensor.Tensor, p, most float64) {
	numbers := slices.Sorted(slices.Values(contiguousData[int64](rows.Convert(tensor.I64))))
	for _, i := range slices.Compact(numbers) {
		row := w.Select(0, int(i))
		switch d := w.DType(); {
		case d.IsComplex():
			shrinkRow(row, tensor.C128, kernel.ComplexNormRow(p), kernel.ScaleComplex, most)
		case d == tensor.F64:
			shrinkRow(row, d, kernel.NormRow[float64](p), kernel.Scale[float64], most)
		default:
			shrinkRow(row, tensor.F32, func(x []float32) float64 { return float64(kernel.NormRow[float32](p)(x)) }, kernel.Scale[float32], most)
		}
	}
}

// shrinkRow computes in the dtype work, and rounds norm and row to that of the row.
func shrinkRow[T kernel.Lane](row *tensor.Tensor, work tensor.DType, norm func([]T) float64, scale func([]T, float64), most float64) {
	wide := row.Convert(work)
	x := contiguousData[T](wide)
	if n := rounded(realPart(row.DType()))(norm(x)); n > most {
		scale(x, most/(n+1e-7))
		row.CopyFrom(wide)
	}
}

// embeddingDef is embedding under one of its signatures; index names the argument of row numbers.
func embeddingDef(sig, name string, index op.TensorArg) *op.Def {
	return &op.Def{
		Sig:            sig,
		SBP:            embedded(index),
		Names:          []string{name},
		Doc:            "The rows of weight that " + string(index) + " numbers: out[i,j] = weight[" + string(index) + "[i,j]]. Row padding_idx has no gradient; with scale_grad_by_freq, gradients are divided by how often a row occurs.",
		SelectOverload: func(a op.Args) bool { return index != arg.Input || !a.Has(arg.MaxNorm) },
		Reject:         firstError(checkEmbedding(index), withoutMaxNorm(index)),
		Infer:          inferEmbedding(index),
		Kernels: []op.Kernel{{Name: "rows", Run: func(c *op.Run) error {
			rows := c.Tensor(index).Reshape(c.Tensor(index).Len())
			s, err := chosenEntries(c.Tensor(arg.Weight), 0, rows)
			if err == nil {
				s.Take(c.Out[0].Reshape(s.View.Shape()...))
			}
			return err
		}}},
		Grad: embeddingGrad(index),
		Sample: func(s *op.Sampler) []any {
			n := 2 + s.Index(4)
			scaled, shape := s.Bool(), s.Shape(0, 2)
			if scaled {
				shape = []int{1} // how often a row occurs is no part of the function
			}
			weight, rows := s.Tensor(-2, 2, n, s.Index(4)+1), sampleIndex(s, shape, n-1)
			args := []any{rows, weight, op.Kw("padding_idx", n-1), op.Kw("scale_grad_by_freq", scaled)}
			if index == arg.Indices {
				args[0], args[1] = args[1], args[0]
			}
			return args
		},
		Tol: ownMagnitude(exactTol("copies rows")),
	}
}

func inferEmbedding(index op.TensorArg) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		w := a.Value(arg.Weight)
		return one(w.DType(), slices.Concat(a.Value(index).Shape(), w.Shape()[1:]), nil), nil
	}
}

func checkEmbedding(index op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		rows, w := a.Value(index), a.Value(arg.Weight)
		switch {
		case index == arg.Input && a.Has(arg.PaddingIdx) && a.Int(arg.PaddingIdx) != 0 && len(w.Shape()) == 0:
			return op.IndexError("argument 'weight' has no dimension of rows for argument 'padding_idx' to choose from")
		case index == arg.Input && a.Has(arg.PaddingIdx) && !inRows(a.Int(arg.PaddingIdx), w):
			return &op.Error{Class: "AssertionError", Msg: "argument 'padding_idx' must be within num_embeddings"}
		case a.Bool(arg.Sparse):
			return notUnderstood("embedding", "sparse")
		case len(w.Shape()) != 2:
			return op.RuntimeError("argument 'weight' must be 2-D, but has %d dimensions", len(w.Shape()))
		case rows.DType() != tensor.I64 && rows.DType() != tensor.I32:
			return op.RuntimeError("expected argument '%s' to have dtype int64 or int32, not %s", index, rows.DType())
		}
		return nil
	}
}

// withoutMaxNorm refuses max_norm, of a module: it would have to change a parameter.
func withoutMaxNorm(index op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		if index == arg.Input && a.Has(arg.MaxNorm) {
			return notUnderstood("embedding", "max_norm")
		}
		return nil
	}
}

func inRows(i int, w op.Value) bool {
	n := sizeAlong(w, 0)
	return -n <= i && i < n
}

func embeddingGrad(index op.TensorArg) func(g *op.Grad) {
	return op.GradientOf(arg.Weight, func(g *op.Grad) op.Value {
		w := g.Value(arg.Weight)
		n := tensor.NumElements(g.Value(index).Shape())
		rows := g.Reshape(g.Value(index), []int{n})
		d := g.Reshape(g.G(), []int{n, w.Shape()[1]})
		if pad, ok := paddingRow(g.Args, index); ok {
			d = g.Op("where", g.Reshape(g.Op("eq", rows, pad), []int{n, 1}), 0.0, d)
		}
		if g.Bool(arg.ScaleGradByFreq) {
			d = g.Div(d, g.Reshape(frequencies(g, rows, w), []int{n, 1}))
		}
		return g.Op("index_add", zeros(g, w), 0, rows, d)
	})
}

// paddingRow returns the row without a gradient, if there is one.
func paddingRow(a op.Args, index op.TensorArg) (int, bool) {
	pad := a.Int(arg.PaddingIdx)
	if index == arg.Indices {
		return pad, pad >= 0
	}
	if pad < 0 {
		pad += sizeAlong(a.Value(arg.Weight), 0)
	}
	return pad, a.Has(arg.PaddingIdx)
}

// frequencies returns, for every row number, how often it occurs.
func frequencies(g *op.Grad, rows, w op.Value) op.Value {
	ones := g.Cast(g.Op("eq", rows, rows), w.DType())
	none := g.Op("sum", zeros(g, w), op.Kw("dim", []int{1}))
	return g.Op("index_select", g.Op("index_add", none, 0, rows, ones), 0, rows)
}
