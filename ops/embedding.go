package ops

import (
	"slices"

	"plumb/op"
	"plumb/tensor"
)

var embeddingOps = []*op.Def{
	embeddingDef("embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", "torch.nn.functional.embedding", "input"),
	embeddingDef("embedding.torch(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", "torch.embedding", "indices"),
}

// embeddingDef is embedding under one of its signatures; index names the argument of row numbers.
func embeddingDef(sig, name, index string) *op.Def {
	return &op.Def{
		Sig:       sig,
		SBP:       embedded(index),
		Magnitude: sig[:len(sig)-len(afterName(sig))],
		Names:     []string{name},
		Doc:       "The rows of weight that " + index + " numbers: out[i,j] = weight[" + index + "[i,j]]. Row padding_idx has no gradient; with scale_grad_by_freq, gradients are divided by how often a row occurs.",
		Check:     checkEmbedding(index),
		Infer: func(a op.Args) ([]op.Meta, error) {
			w := a.Value("weight")
			return one(w.DType(), slices.Concat(a.Value(index).Shape(), w.Shape()[1:]), nil), nil
		},
		Kernels: []op.Kernel{{Name: "rows", Run: func(c *op.Run) error {
			rows := c.Tensor(index).Reshape(c.Tensor(index).Len())
			s, err := chosenEntries(c.Tensor("weight"), 0, rows)
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
			if index == "indices" {
				args[0], args[1] = args[1], args[0]
			}
			return args
		},
		Tol: exactTol("copies rows"),
	}
}

// afterName is a signature from its parameter list on.
func afterName(sig string) string { return sig[slices.Index([]byte(sig), '('):] }

func checkEmbedding(index string) func(op.Args) error {
	return func(a op.Args) error {
		rows, w := a.Value(index), a.Value("weight")
		switch {
		case index == "input" && a.Has("padding_idx") && a.Int("padding_idx") != 0 && len(w.Shape()) == 0:
			return op.IndexError("argument 'weight' has no dimension of rows for argument 'padding_idx' to choose from")
		case index == "input" && a.Has("padding_idx") && !inRows(a.Int("padding_idx"), w):
			return &op.Error{Class: "AssertionError", Msg: "argument 'padding_idx' must be within num_embeddings"}
		case index == "input" && a.Has("max_norm"):
			return notUnderstood("embedding", "max_norm")
		case a.Bool("sparse"):
			return notUnderstood("embedding", "sparse")
		case len(w.Shape()) != 2:
			return op.RuntimeError("argument 'weight' must be 2-D, but has %d dimensions", len(w.Shape()))
		case rows.DType() != tensor.I64 && rows.DType() != tensor.I32:
			return op.RuntimeError("expected argument '%s' to have dtype int64 or int32, not %s", index, rows.DType())
		}
		return nil
	}
}

func inRows(i int, w op.Value) bool {
	n := sizeAlong(w, 0)
	return -n <= i && i < n
}

func embeddingGrad(index string) func(g *op.Grad) {
	return func(g *op.Grad) {
		g.To("weight", func() op.Value {
			w := g.Value("weight")
			n := tensor.NumElements(g.Value(index).Shape())
			rows := g.Reshape(g.Value(index), []int{n})
			d := g.Reshape(g.G(), []int{n, w.Shape()[1]})
			if pad, ok := paddingRow(g.Args, index); ok {
				d = g.Op("where", g.Reshape(g.Op("eq", rows, pad), []int{n, 1}), 0.0, d)
			}
			if g.Bool("scale_grad_by_freq") {
				d = g.Div(d, g.Reshape(frequencies(g, rows, w), []int{n, 1}))
			}
			return g.Op("index_add", zeros(g, w), 0, rows, d)
		})
	}
}

// paddingRow returns the row without a gradient, if there is one.
func paddingRow(a op.Args, index string) (int, bool) {
	pad := a.Int("padding_idx")
	if index == "indices" {
		return pad, pad >= 0
	}
	if pad < 0 {
		pad += sizeAlong(a.Value("weight"), 0)
	}
	return pad, a.Has("padding_idx")
}

// frequencies returns, for every row number, how often it occurs.
func frequencies(g *op.Grad, rows, w op.Value) op.Value {
	ones := g.Cast(g.Op("eq", rows, rows), w.DType())
	none := g.Op("sum", zeros(g, w), op.Kw("dim", []int{1}))
	return g.Op("index_select", g.Op("index_add", none, 0, rows, ones), 0, rows)
}
