package ops

import (
	"errors"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

func inferGather(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Index).Shape(), nil), nil
}

func runGather(c *op.Run) error {
	return badIndex(kernel.Gather(c.Out[0], c.Tensor(arg.Input), longIndex(c.Tensor(arg.Index)), dimOf(c.Args)))
}

func gatherGrad(g *op.Grad) op.Value {
	return g.Op("scatter_add", zeros(g, g.Value(arg.Input)), dimOf(g.Args), g.Value(arg.Index), g.G())
}

func sampleGather(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), d, sampleIndex(s, shape, shape[d])}
}

func runScatter(c *op.Run) error {
	out := c.Out[0]
	out.CopyFrom(c.Tensor(arg.Input))
	return badIndex(kernel.Scatter(out, c.Tensor(arg.Src), longIndex(c.Tensor(arg.Index)), dimOf(c.Args)))
}

func scatterGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value { return g.Op("scatter.value", g.G(), dimOf(g.Args), g.Value(arg.Index), 0.0) })
	g.To(arg.Src, func() op.Value { return gathered(g) })
}

func scatterAddGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value { return g.G() })
	g.To(arg.Src, func() op.Value { return gathered(g) })
}

// indexTypes are the dtypes of index tensors.
var indexTypes = []tensor.DType{tensor.I32, tensor.I64}

// longIndex returns an index tensor in int64, in which the kernels read it.
func longIndex(index *tensor.Tensor) *tensor.Tensor {
	if index.DType() == tensor.I64 {
		return index
	}
	return index.Convert(tensor.I64)
}

// checkIndex checks the index tensor of a gather or scatter on the input.
func checkIndex(target op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		v, index := a.Value(target), a.Value(arg.Index)
		d, err := wrapDim(a.Int(arg.Dim), len(v.Shape()))
		if err != nil {
			return err
		}
		if !slices.Contains(indexTypes, index.DType()) && tensor.NumElements(index.Shape()) > 0 {
			return op.RuntimeError("expected argument 'index' to have dtype int32 or int64, not %s", index.DType())
		}
		return indexWithin(v, index, d, true)
	}
}

// exceeds reports whether a size is larger than its counterpart.
func exceeds(sizes, limits []int) bool {
	for i, n := range sizes {
		if n > limits[i] {
			return true
		}
	}
	return false
}

// indexWithin rejects an index with another number of dimensions than v, or
// with a dimension larger than v's, dim excepted when free is set.
func indexWithin(v, index op.Value, dim int, free bool) error {
	if tensor.NumElements(index.Shape()) == 0 {
		return nil
	}
	if max(len(v.Shape()), 1) != max(len(index.Shape()), 1) {
		return op.RuntimeError("argument 'index' must have as many dimensions as the tensor it indexes: %s and %s", tensor.ShapeString(index.Shape()), tensor.ShapeString(v.Shape()))
	}
	for i, n := range index.Shape() {
		if (i != dim || !free) && n > sizeAlong(v, i) {
			return op.RuntimeError("argument 'index' of shape %s exceeds %s in dimension %d", tensor.ShapeString(index.Shape()), tensor.ShapeString(v.Shape()), i)
		}
	}
	return nil
}

func checkScatter(a op.Args) error {
	if err := checkIndex(arg.Input)(a); err != nil {
		return err
	}
	src := a.Value(arg.Src)
	if src.DType() != a.Value(arg.Input).DType() {
		return op.RuntimeError("expected argument 'src' to have the dtype of 'input', %s, not %s", a.Value(arg.Input).DType(), src.DType())
	}
	index := a.Value(arg.Index).Shape()
	if n := len(src.Shape()); n > 0 && n < len(index) && !slices.Contains(index, 0) && !exceeds(index[:n], src.Shape()) {
		return op.IndexError("dimension %d of argument 'index' is none of argument 'src' of shape %s", n, tensor.ShapeString(src.Shape()))
	}
	return indexWithin(src, a.Value(arg.Index), dimOf(a), false)
}

func inferScatter(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
}

// runScatterAdd sums half types in float32.
func runScatterAdd(c *op.Run) error {
	out, src := c.Out[0], c.Tensor(arg.Src)
	sum := out
	if slices.Contains(halfTypes, out.DType()) {
		sum, src = tensor.New(tensor.F32, out.Shape()...), src.Convert(tensor.F32)
	}
	sum.CopyFrom(c.Tensor(arg.Input))
	err := kernel.ScatterAdd(sum, src, longIndex(c.Tensor(arg.Index)), dimOf(c.Args))
	if sum != out {
		out.CopyFrom(sum)
	}
	return badIndex(err)
}

func badIndex(err error) error {
	var bad *kernel.BadIndex
	if errors.As(err, &bad) {
		return op.RuntimeError("argument 'index': %v", bad)
	}
	return err
}

// gathered is the gradient of a scatter's src, which PyTorch defines for a src
// of the index's shape.
func gathered(g *op.Grad) op.Value {
	return g.Op("gather", g.G(), dimOf(g.Args), g.Value(arg.Index))
}

func sampleIndex(s *op.Sampler, shape []int, n int) *tensor.Tensor {
	t := tensor.New(tensor.I64, shape...)
	for i := range t.Len() {
		t.SetInt(i, int64(s.Index(n)))
	}
	return t
}

// sampleScatter draws an index without repeats along dim, so that the result
// does not depend on the order of writes.
func sampleScatter(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	index := tensor.New(tensor.I64, shape...)
	shift := s.Index(shape[d])
	for i := range shape[d] {
		entry := index.Select(d, i)
		for j := range entry.Len() {
			entry.SetInt(j, int64((i+shift)%shape[d]))
		}
	}
	return []any{s.Tensor(-2, 2, shape...), d, index, s.Tensor(-2, 2, shape...)}
}
