package ops

import (
	"fmt"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// splitOps cut a tensor into views.
var splitOps = []*op.Def{
	splitOp("split(Tensor input, %s split_size, int dim=0) -> Tensor[]", "Tensor.split"),
	splitOp("split.sections(Tensor tensor, %s split_size_or_sections, int dim=0) -> Tensor[]", "torch.split"),
	splitOp("split_with_sizes(Tensor input, %s split_sizes, int dim=0) -> Tensor[]", "torch.split_with_sizes", "Tensor.split_with_sizes"),
	{
		Sig:     "chunk(Tensor input, int chunks, int dim=0) -> Tensor[]",
		Names:   both("chunk"),
		Doc:     "Views of at most so many parts of a dimension, all of one size but the last.",
		Compose: chunk,
		InPlace: op.InPlaceRules{FrozenViews: true},
		Sample:  sampleSections,
		Tol:     exactTol("views of its input"),
	},
	{
		Sig:     "unbind(Tensor input, int dim=0) -> Tensor[]",
		Names:   both("unbind"),
		Doc:     "Views of the entries of a dimension, which they lack.",
		Compose: composeUnbind,
		InPlace: op.InPlaceRules{FrozenViews: true},
		Sample:  sampleUnbind,
		Tol:     exactTol("views of its input"),
	},
	{
		Sig:     "tensor_split(Tensor input, int[] indices, int dim=0) -> Tensor[]",
		Names:   both("tensor_split"),
		Doc:     "Views of the parts of a dimension between the indices.",
		Compose: composeTensorSplit,
		Sample:  sampleTensorSplit,
		Tol:     exactTol("views of its input"),
	},
	{
		Sig:     "tensor_split.sections(Tensor input, int sections, int dim=0) -> Tensor[]",
		Names:   both("tensor_split"),
		Doc:     "Views of so many parts of a dimension, the first ones larger by one where they cannot be equal.",
		Compose: composeTensorSplitSections,
		Sample:  sampleSections,
		Tol:     exactTol("views of its input"),
	},
	axisSplit("hsplit", 1), axisSplit("vsplit", 2), axisSplit("dsplit", 3),
	axisSplitAt("hsplit", 1), axisSplitAt("vsplit", 2), axisSplitAt("dsplit", 3),
}

func composeTensorSplit(b op.Builder, a op.Args) []op.Value {
	return cutAt(b, a.Value(arg.Input), splitDim(a), a.Ints(arg.IndicesInts))
}

func sampleTensorSplit(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	return []any{s.Tensor(-2, 2, shape...), []int{s.Index(3), 2 + s.Index(2)}, s.Index(len(shape))}
}

func composeTensorSplitSections(b op.Builder, a op.Args) []op.Value {
	x, d, k := a.Value(arg.Input), splitDim(a), a.Int(arg.Sections)
	if k <= 0 {
		op.Fail(op.RuntimeError("number of sections must be larger than 0, got %d", k))
	}
	failBeyond("number of sections", k)
	return cutAt(b, x, d, sectionEnds(x.Shape()[d], k))
}

func composeUnbind(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	d := must(wrapDim(a.Int(arg.Dim), len(x.Shape())))
	if len(x.Shape()) == 0 {
		op.Fail(op.IndexError("Dimension specified as %d but tensor has no dimensions", a.Int(arg.Dim)))
	}
	out := []op.Value{}
	for i := range x.Shape()[d] {
		out = append(out, b.Op("select", x, d, i))
	}
	return out
}

func sampleUnbind(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	return []any{s.Tensor(-2, 2, shape...), s.Index(len(shape))}
}

// splitOp is split under one of the sets of parameter names that it has.
func splitOp(format string, names ...string) *op.Def {
	sized := func(typ string) string { return fmt.Sprintf(format, typ) }
	d := &op.Def{
		Sig:     sized("int[]"),
		Names:   names,
		Doc:     "Views of the parts of a dimension, of one size or of the given ones.",
		Compose: composeSplitOp,
		InPlace: op.InPlaceRules{FrozenViews: true},
		Sample:  sampleSplitOp,
		Tol:     exactTol("views of its input"),
	}
	if names[0] != "torch.split_with_sizes" {
		d.More = []string{sized("int")}
	}
	return d
}

func composeSplitOp(b op.Builder, a op.Args) []op.Value {
	x := a.Vals[0].(op.Value)
	if n, ok := a.Vals[1].(int); ok {
		return splitEqual(b, x, n, a.Int(arg.Dim))
	}
	return splitSizes(b, x, a.Vals[1].([]int), a.Int(arg.Dim))
}

func sampleSplitOp(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	if cap := shape[d]; s.Bool() {
		n := s.Index(cap + 1)
		return []any{s.Tensor(-2, 2, shape...), []int{n, cap - n}, d}
	}
	return []any{s.Tensor(-2, 2, shape...), []int{shape[d]}, d}
}

func splitEqual(b op.Builder, x op.Value, size, dim int) []op.Value {
	if len(x.Shape()) == 0 {
		op.Fail(op.RuntimeError("split expects at least a 1-dimensional tensor"))
	}
	n := x.Shape()[must(wrapDim(dim, len(x.Shape())))]
	switch {
	case size < 0:
		op.Fail(op.RuntimeError("split expects split_size be non-negative, but got split_size=%d", size))
	case size == 0 && n > 0:
		op.Fail(op.RuntimeError("split_size can only be 0 if dimension size is 0, but got dimension size of %d", n))
	case n == 0:
		return splitSizes(b, x, []int{0}, dim)
	}
	var sizes []int
	for ; n > 0; n -= size {
		sizes = append(sizes, min(size, n))
	}
	return splitSizes(b, x, sizes, dim)
}

func splitSizes(b op.Builder, x op.Value, sizes []int, dim int) []op.Value {
	if len(x.Shape()) == 0 {
		op.Fail(op.RuntimeError("split expects at least a 1-dimensional tensor"))
	}
	d, sum := must(wrapDim(dim, len(x.Shape()))), 0
	for _, n := range sizes {
		if n < 0 {
			op.Fail(op.RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s", tensor.ShapeString(sizes)))
		}
		sum += n
	}
	if n := x.Shape()[d]; sum != n {
		op.Fail(op.RuntimeError("split_with_sizes expects split_sizes to sum exactly to %d (input tensor's size at dimension %d), but got split_sizes=%s", n, dim, tensor.ShapeString(sizes)))
	}
	out, at := []op.Value{}, 0
	for _, n := range sizes {
		out = append(out, b.Op("narrow", x, d, at, n))
		at += n
	}
	return out
}

func chunk(b op.Builder, a op.Args) []op.Value {
	x, k := a.Value(arg.Input), a.Int(arg.Chunks)
	if len(x.Shape()) == 0 {
		op.Fail(op.RuntimeError("chunk expects at least a 1-dimensional tensor"))
	}
	if k <= 0 {
		op.Fail(op.RuntimeError("chunk expects `chunks` to be greater than 0, got: %d", k))
	}
	n := x.Shape()[must(wrapDim(a.Int(arg.Dim), len(x.Shape())))]
	if n == 0 {
		failBeyond("chunks", k)
		return splitSizes(b, x, make([]int, k), a.Int(arg.Dim))
	}
	return splitEqual(b, x, (n+k-1)/k, a.Int(arg.Dim))
}

// splitDim returns the wrapped dimension of a tensor that has one.
func splitDim(a op.Args) int {
	x := a.Value(arg.Input)
	if len(x.Shape()) == 0 {
		op.Fail(op.RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"))
	}
	return must(wrapDim(a.Int(arg.Dim), len(x.Shape())))
}

// cutAt slices a dimension at the ends, clipped as Python does.
func cutAt(b op.Builder, x op.Value, dim int, ends []int) []op.Value {
	out, at := []op.Value{}, 0
	for _, end := range ends {
		out = append(out, b.Op("slice", x, dim, at, end))
		at = end
	}
	return append(out, b.Op("slice", x, dim, at))
}

func sectionEnds(n, k int) []int {
	var ends []int
	at := 0
	for i := range k - 1 {
		at += n / k
		if i < n%k {
			at++
		}
		ends = append(ends, at)
	}
	return ends
}

func sampleSections(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	return []any{s.Tensor(-2, 2, shape...), 1 + s.Index(6), s.Index(len(shape))}
}

// axisSplit is a tensor_split of one dimension into equal parts, for tensors
// of at least so many dimensions.
func axisSplit(name string, least int) *op.Def {
	return &op.Def{
		Sig:   name + "(Tensor input, int sections) -> Tensor[]",
		Names: both(name),
		Doc:   "Views of equal parts of a dimension.",
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x, k := a.Value(arg.Input), a.Int(arg.Sections)
			d := splitAxis(name, x, least)
			if n := x.Shape()[d]; k == 0 || n%k != 0 {
				op.Fail(op.RuntimeError("torch.%s attempted to split along dimension %d, but the size of the dimension %d is not divisible by the split_size %d!", name, d, n, k))
			}
			return b.All("tensor_split.sections", x, k, d)
		},
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(least, 4)
			shape[min(len(shape)-1, least-1)] = 2
			shape[min(len(shape)-1, 1)] = 2
			shape[0] = 2
			return []any{s.Tensor(-2, 2, shape...), 1 + s.Index(2)}
		},
		Tol: exactTol("views of its input"),
	}
}

func axisSplitAt(name string, least int) *op.Def {
	return &op.Def{
		Sig:   name + ".indices(Tensor input, int[] indices) -> Tensor[]",
		Names: both(name),
		Doc:   "Views of the parts of a dimension between the indices.",
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x := a.Value(arg.Input)
			return b.All("tensor_split", x, a.Ints(arg.IndicesInts), splitAxis(name, x, least))
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(least, 4)...), []int{s.Index(3), 2}} },
		Tol:    exactTol("views of its input"),
	}
}

// splitAxis returns the dimension that hsplit, vsplit or dsplit cuts.
func splitAxis(name string, x op.Value, least int) int {
	if n := len(x.Shape()); n < least {
		op.Fail(op.RuntimeError("torch.%s requires a tensor with at least %d dimension, but got a tensor with %d dimensions!", name, least, n))
	}
	switch {
	case name == "vsplit" || len(x.Shape()) == 1:
		return 0
	case name == "hsplit":
		return 1
	}
	return 2
}
