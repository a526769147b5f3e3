package ops

import (
	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// emptyOps make tensors whose elements are undefined. They are Undefined:
// two of them are alike whatever they hold.
var emptyOps = []*op.Def{
	undefined(&op.Def{
		Sig:    "empty(int[] size, " + emptyOptions + ") -> Tensor",
		Names:  []string{"torch.empty"},
		Doc:    "A tensor whose elements are undefined.",
		Infer:  inMemoryFormat(sized(func(op.Args) tensor.DType { return tensor.F32 })),
		Sample: func(s *op.Sampler) []any { return []any{s.Shape(0, 4), op.Kw("dtype", s.DType)} },
	}),
	undefined(&op.Def{
		Sig:    "empty_like(Tensor input, " + likeOptions + ") -> Tensor",
		Names:  []string{"torch.empty_like"},
		Doc:    "A tensor of the shape, dtype and memory order of the input whose elements are undefined.",
		Infer:  alike,
		Sample: sampleUnary(-2, 2),
	}),
	undefined(&op.Def{
		Sig:    "new_empty(Tensor input, int[] size, " + makeOptions + ") -> Tensor",
		Names:  []string{"Tensor.new_empty"},
		Doc:    "A tensor of the input's dtype and the given size whose elements are undefined.",
		Infer:  sized(inputType),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, 1), s.Shape(0, 4)} },
	}),
	undefined(&op.Def{
		Sig:   "empty_strided(int[] size, int[] stride, " + makeOptions + ") -> Tensor",
		Names: []string{"torch.empty_strided"},
		Doc:   "A tensor of the given size and strides whose elements are undefined.",
		Infer: strided(sized(func(op.Args) tensor.DType { return tensor.F32 })),
		Sample: func(s *op.Sampler) []any {
			size, strides := sampleStrides(s)
			return []any{size, strides, op.Kw("dtype", s.DType)}
		},
	}),
	undefined(&op.Def{
		Sig:   "new_empty_strided(Tensor input, int[] size, int[] stride, " + makeOptions + ") -> Tensor",
		Names: []string{"Tensor.new_empty_strided"},
		Doc:   "A tensor of the input's dtype and the given size and strides whose elements are undefined.",
		Infer: strided(sized(inputType)),
		Sample: func(s *op.Sampler) []any {
			size, strides := sampleStrides(s)
			return []any{s.Tensor(-2, 2, 1), size, strides}
		},
	}),
}

const emptyOptions = makeOptions + ", bool pin_memory=False, MemoryFormat? memory_format=None"

func inputType(a op.Args) tensor.DType { return a.Value(arg.Input).DType() }

// undefined completes an operator whose results hold anything; ours hold zeros.
func undefined(d *op.Def) *op.Def {
	d.Traits |= op.Random | op.Undefined
	d.NotSplittable = drawsAll
	d.Tol = drawn("the elements are undefined")
	d.Law = anyElements(d.Infer)
	return created(d, func(*op.Run) error { return nil })
}

// anyElements is the law of results that hold anything; those without elements
// are certain.
func anyElements(infer func(op.Args) ([]op.Meta, error)) func(op.Args) *op.Law {
	return func(a op.Args) *op.Law {
		metas, err := infer(a)
		if err != nil || tensor.NumElements(metas[0].Shape) == 0 {
			return nil
		}
		return &op.Law{Support: "anything", Draws: func(*tensor.Tensor) ([]op.Draw, error) { return nil, nil }}
	}
}

// inMemoryFormat lays what is inferred out as the argument memory_format says.
func inMemoryFormat(infer func(op.Args) ([]op.Meta, error)) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		metas, err := infer(a)
		f, ok := a.Any(arg.MemoryFormat).(tensor.MemoryFormat)
		if err != nil || !ok {
			return metas, err
		}
		switch rank := len(metas[0].Shape); {
		case f == tensor.Preserve:
			return nil, op.RuntimeError("unsupported memory format option Preserve")
		case f == tensor.ChannelsLast && rank != 4 && rank != 5:
			return nil, op.RuntimeError("required rank 4 tensor to use channels_last format")
		}
		metas[0].Strides = f.Strides(metas[0].Shape)
		return metas, nil
	}
}

// strided lays what is inferred out as the argument stride says.
func strided(infer func(op.Args) ([]op.Meta, error)) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		size, strides := a.Ints(arg.Size), a.Ints(arg.Stride)
		if len(size) != len(strides) {
			return nil, op.RuntimeError("mismatch in length of strides and shape")
		}
		for _, n := range strides {
			if n < 0 {
				return nil, op.RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: %s", tensor.ShapeString(strides))
			}
		}
		metas, err := infer(a)
		if err == nil {
			metas[0].Strides = strides
		}
		return metas, err
	}
}

// sampleStrides draws a size and the strides of a dense tensor in some order of
// its dimensions.
func sampleStrides(s *op.Sampler) (size, strides []int) {
	size = s.Shape(0, 4)
	strides = make([]int, len(size))
	left, step := make([]int, len(size)), 1
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		k := s.Index(len(left))
		strides[left[k]] = step
		step *= max(size[left[k]], 1)
		left = append(left[:k], left[k+1:]...)
	}
	return size, strides
}
