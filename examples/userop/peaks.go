package userop

import (
	"math"
	"slices"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// peaks is a windowed operator with two results. PyTorch has none of the kind; its
// Formula is what the kernel is judged by.
var peaks = &op.Def{
	Sig: "peaks(Tensor x, int size, int dim=-1) -> (Tensor values, Tensor indices)",
	Doc: "The largest of each size neighbours along a dimension, and where they are.",
	Infer: func(a op.Args) ([]op.Meta, error) {
		dim, shape, err := windows(a)
		if err != nil {
			return nil, err
		}
		shape[dim] -= a.Int("size") - 1
		return []op.Meta{{DType: a.Value("x").DType(), Shape: shape}, {DType: tensor.I64, Shape: shape}}, nil
	},
	SBP: func(a op.Args) []op.Sharding {
		dim, shape, _ := windows(a)
		var all []op.Sharding
		for axis := range shape {
			if axis != dim { // a window needs its neighbours
				all = append(all, ops.ShardAxis(map[op.TensorArg]int{"x": axis}, op.S(axis)))
			}
		}
		return all
	},
	Kernels: []op.Kernel{{Name: "rows", When: op.DTypeIn("x", tensor.F32, tensor.F64), Run: func(c *op.Run) error {
		dim, _, err := windows(c.Args)
		if err != nil {
			return err
		}
		for row := range ops.Rows(dim, c.Tensor("x"), c.Out[0], c.Out[1]) {
			x, values, indices := row[0], row[1], row[2]
			for i := range values.Len() {
				at := i
				for k := i; k < i+c.Int("size"); k++ {
					if v := x.Float(k); v > x.Float(at) || math.IsNaN(v) && !math.IsNaN(x.Float(at)) {
						at = k
					}
				}
				values.Set(i, x.At(at))
				indices.SetInt(i, int64(at))
			}
		}
		return nil
	}}},
	Grad: func(g *op.Grad) { // what arrives goes back to where the largest was
		x := g.Value("x")
		g.To("x", func() op.Value { return g.Op("scatter_add", g.FullLike(x, 0), g.Int("dim"), g.Out[1], g.G()) })
	},
	Sample: func(s *op.Sampler) []any {
		shape := s.Shape(1, 3)
		dim := s.Index(len(shape))
		return []any{s.Distinct(shape...), int(s.Int(1, int64(shape[dim])+1)), dim - len(shape)*s.Index(2)}
	},
	Formula: func(b op.Builder, a op.Args) []op.Value {
		dim, shape, _ := windows(a)
		largest := b.All("max.dim", b.Op("unfold", a.Value("x"), dim, a.Int("size"), 1), -1)
		first := slices.Repeat([]int{1}, len(shape))
		first[dim] = shape[dim] - a.Int("size") + 1
		return []op.Value{largest[0], b.Add(largest[1], b.Reshape(b.Arange(first[dim]), first))}
	},
	Tol: op.Tol{Class: op.Exact, Reason: "selects elements"},
}

// windows returns the dimension of the windows and the shape of x, or a refusal.
func windows(a op.Args) (dim int, shape []int, err error) {
	shape = slices.Clone(a.Value("x").Shape())
	if dim, err = ops.WrapDim(a.Int("dim"), len(shape)); err != nil {
		return 0, nil, err
	}
	if len(shape) == 0 || a.Int("size") < 1 || a.Int("size") > shape[dim] {
		return 0, nil, op.RuntimeError("peaks: size %d has to be between 1 and the size of dimension %d of shape %v", a.Int("size"), dim, shape)
	}
	return dim, shape, nil
}
