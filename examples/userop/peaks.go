package userop

import (
	"math"
	"slices"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// peaks is a windowed operator with two results, an argument that it changes and
// temporary memory. PyTorch has none of the kind; its Formula is what the kernel is
// judged by.
var peaks = &op.Def{
	Sig:     "peaks(Tensor x, Tensor seen, int size, int dim=-1) -> (Tensor values, Tensor indices)",
	Doc:     "The largest of each size neighbours along a dimension, and where they are; seen counts of each element how often it was that.",
	Mutates: []op.TensorArg{"seen"},
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
				all = append(all, ops.ShardAxis(map[op.TensorArg]int{"x": axis, "seen": axis}, op.S(axis), op.S(axis)))
			}
		}
		return all
	},
	Kernels: []op.Kernel{{
		Name: "queue", When: op.DTypeIn("x", tensor.F32, tensor.F64),
		Scratch: func(a op.Args) int { dim, shape, _ := windows(a); return 8 * shape[dim] },
		Run:     slide,
	}},
	Grad: func(g *op.Grad) { // what arrives goes back to where the largest was
		x := g.Value("x")
		g.To("x", func() op.Value { return g.Op("scatter_add", g.FullLike(x, 0), g.Int("dim"), g.Out[1], g.G()) })
	},
	Sample: func(s *op.Sampler) []any {
		shape := s.Shape(1, 3)
		dim := s.Index(len(shape))
		return []any{s.Distinct(shape...), tensor.New(tensor.I64, shape...), int(s.Int(1, int64(shape[dim])+1)), dim - len(shape)*s.Index(2)}
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

// slide moves the window along each row. The queue has the elements of the window that
// may still be the largest of one, each larger than those behind it.
func slide(c *op.Run) error {
	dim, shape, _ := windows(c.Args)
	queue, err := tensor.FromBytes(tensor.I64, shape[dim:dim+1], []int{1}, 0, c.Scratch)
	if err != nil {
		return err
	}
	for row := range ops.Rows(dim, c.Tensor("x"), c.Tensor("seen"), c.Out[0], c.Out[1]) {
		x, seen, values, indices := row[0], row[1], row[2], row[3]
		head, tail := 0, 0
		for k := range x.Len() {
			for tail > head && beats(x.Float(k), x.Float(int(queue.Int(tail-1)))) {
				tail--
			}
			queue.SetInt(tail, int64(k))
			tail++
			i := k - c.Int("size") + 1
			if i < 0 {
				continue
			}
			if queue.Int(head) < int64(i) {
				head++
			}
			at := queue.Int(head)
			values.Set(i, x.At(int(at)))
			indices.SetInt(i, at)
			seen.SetInt(int(at), seen.Int(int(at))+1)
		}
	}
	return nil
}

// beats reports whether v is larger; NaN is larger than any number.
func beats(v, w float64) bool { return v > w || math.IsNaN(v) && !math.IsNaN(w) }

// windows returns the dimension of the windows and the shape of x, or a refusal.
func windows(a op.Args) (dim int, shape []int, err error) {
	shape = slices.Clone(a.Value("x").Shape())
	if dim, err = ops.WrapDim(a.Int("dim"), len(shape)); err != nil {
		return 0, nil, err
	}
	if seen := a.Value("seen"); seen.DType() != tensor.I64 || !slices.Equal(seen.Shape(), shape) {
		return 0, nil, op.RuntimeError("peaks: seen has to be int64 of the shape %v of x, and is %s%v", shape, seen.DType(), seen.Shape())
	}
	if len(shape) == 0 || a.Int("size") < 1 || a.Int("size") > shape[dim] {
		return 0, nil, op.RuntimeError("peaks: size %d has to be between 1 and the size of dimension %d of shape %v", a.Int("size"), dim, shape)
	}
	return dim, shape, nil
}
