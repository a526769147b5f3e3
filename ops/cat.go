package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

func runCat(c *op.Run) error {
	parts := slices.DeleteFunc(c.Tensors(arg.Tensors), func(t *tensor.Tensor) bool { return skipped(t) })
	if len(parts) > 0 {
		kernel.Cat(c.Out[0], parts, catDim(c.Args))
	}
	return nil
}

func sampleCat(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	var parts []any
	for range 1 + s.Index(3) {
		part := slices.Clone(shape)
		part[d] = 1 + s.Index(4)
		parts = append(parts, s.Tensor(-2, 2, part...))
	}
	return []any{parts, d}
}

// skipped reports whether cat passes over a tensor, as PyTorch does for
// 1-d tensors without elements.
func skipped(v op.Value) bool { return len(v.Shape()) == 1 && v.Shape()[0] == 0 }

// catParts returns the tensors that are not skipped; the first one when all are.
func catParts(a op.Args) []op.Value {
	vs := a.Values(arg.Tensors)
	parts := slices.DeleteFunc(slices.Clone(vs), skipped)
	if len(parts) == 0 {
		return vs[:1]
	}
	return parts
}

// catDim returns the wrapped dimension; 0 when every tensor is skipped.
func catDim(a op.Args) int {
	first := catParts(a)[0]
	if skipped(first) {
		return 0
	}
	d, _ := wrapDim(a.Int(arg.Dim), len(first.Shape()))
	return d
}

func checkCat(a op.Args) error {
	vs := a.Values(arg.Tensors)
	if len(vs) == 0 {
		return op.ValueError("torch.cat(): expected argument 'tensors' to be a non-empty list of Tensors")
	}
	for i, v := range vs {
		if len(v.Shape()) == 0 {
			return op.RuntimeError("zero-dimensional tensor (at position %d) cannot be concatenated", i)
		}
	}
	first := catParts(a)[0]
	if skipped(first) {
		return nil
	}
	_, err := wrapDim(a.Int(arg.Dim), len(first.Shape()))
	return err
}

func inferCat(a op.Args) ([]op.Meta, error) {
	parts, d := catParts(a), catDim(a)
	shape := slices.Clone(parts[0].Shape())
	for i, v := range parts[1:] {
		if len(v.Shape()) != len(shape) {
			return nil, op.RuntimeError("Tensors must have same number of dimensions: got %d and %d", len(shape), len(v.Shape()))
		}
		for j, n := range v.Shape() {
			if j != d && n != shape[j] {
				return nil, op.RuntimeError("Sizes of tensors must match except in dimension %d. Expected size %d but got size %d for tensor number %d in the list", d, shape[j], n, i+1)
			}
		}
		shape[d] += v.Shape()[d]
	}
	return one(catType(a), shape, catStrides(a, shape)), nil
}

func catType(a op.Args) tensor.DType {
	var dim, zeroDim tensor.DType
	for _, v := range a.Values(arg.Tensors) {
		if len(v.Shape()) == 0 {
			zeroDim = tensor.Promote(zeroDim, v.DType())
		} else {
			dim = tensor.Promote(dim, v.DType())
		}
	}
	return tensor.PromoteWrapped(dim, zeroDim, tensor.Invalid)
}

// catStrides is channels-last when every tensor is, else contiguous.
func catStrides(a op.Args, shape []int) []int {
	for _, v := range a.Values(arg.Tensors) {
		if len(v.Shape()) != 4 || tensor.Contiguous.Matches(v.Shape(), v.Strides()) || !tensor.ChannelsLast.Matches(v.Shape(), v.Strides()) {
			return nil
		}
	}
	return tensor.ChannelsLast.Strides(shape)
}

func catGrad(g *op.Grad) {
	d, at := catDim(g.Args), 0
	for _, v := range g.Values(arg.Tensors) {
		if skipped(v) {
			g.ToValue(v, func() op.Value { return zeros(g, v) })
			continue
		}
		n := v.Shape()[d]
		from := at
		g.ToValue(v, func() op.Value { return g.Op("narrow", g.G(), d, from, n) })
		at += n
	}
}
