package ops

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// orderOps reverse, rotate and repeat the entries of dimensions.
var orderOps = []*op.Def{
	{
		Sig:     "flip(Tensor input, int[] dims) -> Tensor",
		SBP:     anyOf(linear(arg.Input), besides(dimsOf(arg.Dims), arg.Input)),
		Names:   both("flip"),
		Doc:     "Reverses the order of the entries of the dimensions.",
		Traits:  op.Involution,
		Infer:   inferFlip,
		Kernels: []op.Kernel{{Name: "copy", Run: runFlip}},
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Op("flip", g.G(), g.Ints(arg.Dims)) }),
		Sample:  sampleFlip,
		Tol:     ownMagnitude(exactTol("a copy")),
	},
	flips("fliplr", 2, 1), flips("flipud", 1, 0),
	{
		Sig:     "rot90(Tensor input, int k=1, int[] dims=[0, 1]) -> Tensor",
		Names:   both("rot90"),
		Doc:     "Rotates by k quarter turns in the plane of two dimensions, from the first towards the second.",
		Reject:  checkRot90,
		Compose: rot90,
		Sample:  sampleRot90,
		Tol:     exactTol("a copy"),
	},
	{
		Sig:     "roll(Tensor input, int[1] shifts, int[1]? dims=[]) -> Tensor",
		Names:   both("roll"),
		Doc:     "Moves the entries of each of the dims on by its shift; what leaves at the end enters at the start. Without dims, of the flattened tensor.",
		Reject:  checkRoll,
		Compose: func(b op.Builder, a op.Args) []op.Value { return vals(roll(b, a)) },
		Sample:  sampleRoll,
		Tol:     exactTol("copies its input"),
	},
	{
		Sig:     "repeat(Tensor input, int[] repeats) -> Tensor",
		Names:   []string{"Tensor.repeat"},
		Doc:     "Copies of the tensor beside each other, repeats[i] times along dimension i; new dimensions lead.",
		Reject:  checkRepeat,
		Compose: composeRepeat,
		Sample:  sampleRepeat,
		Tol:     exactTol("copies its input"),
	},
	{
		Sig:     "tile(Tensor input, int[] dims) -> Tensor",
		Names:   both("tile"),
		Doc:     "Copies of the tensor beside each other, dims[i] times along dimension i; missing leading counts are 1.",
		Compose: composeTile,
		Sample:  sampleRepeat,
		Tol:     exactTol("copies its input"),
	},
	{
		Sig:     "repeat_interleave(Tensor input, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
		More:    []string{"repeat_interleave(Tensor input, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor"},
		Names:   both("repeat_interleave"),
		Doc:     "Every entry of a dimension repeats times in a row, where a tensor tells the times of each entry; without dim, of the flattened tensor.",
		Compose: func(b op.Builder, a op.Args) []op.Value { return vals(interleaved(b, a)) },
		Sample:  sampleRepeatInterleave,
		Tol:     exactTol("copies its input"),
	},
}

func composeRepeat(b op.Builder, a op.Args) []op.Value {
	return vals(repeatedAlong(b, a.Value(arg.Input), a.Ints(arg.RepeatsInts)))
}

func composeTile(b op.Builder, a op.Args) []op.Value {
	x, n := a.Value(arg.Input), a.Ints(arg.Dims)
	if k := len(x.Shape()) - len(n); k > 0 {
		n = append(slices.Repeat([]int{1}, k), n...)
	}
	return vals(b.Op("repeat", x, n))
}

func sampleRepeatInterleave(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	if s.Bool() {
		return []any{s.Tensor(-2, 2, shape...), 1 + s.Index(3)}
	}
	return []any{s.Tensor(-2, 2, shape...), s.Index(4), s.Index(len(shape))}
}

func inferFlip(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	_, err := flippedDims(a)
	return one(v.DType(), v.Shape(), denseStrides(v)), err
}

func sampleFlip(s *op.Sampler) []any {
	shape := s.Shape(0, 4)
	dims := slices.DeleteFunc(allDims(len(shape)), func(int) bool { return s.Bool() })
	return []any{s.Tensor(-2, 2, shape...), dims}
}

func sampleRot90(s *op.Sampler) []any {
	shape := s.Shape(2, 4)
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), s.Int(-5, 6), []int{d, (d+1)%len(shape) - len(shape)}}
}

func sampleRoll(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	if s.Bool() {
		return []any{s.Tensor(-2, 2, shape...), []int{int(s.Int(-7, 8))}}
	}
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), []int{int(s.Int(-7, 8)), 2}, []int{d, -1}}
}

// flips is a flip of one dimension of a tensor that has least dimensions.
func flips(name string, least, dim int) *op.Def {
	return &op.Def{
		Sig:    name + "(Tensor input) -> Tensor",
		Names:  both(name),
		Doc:    "Reverses the order of the entries of a dimension, as flip does.",
		Traits: op.Involution,
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x := a.Value(arg.Input)
			if len(x.Shape()) < least {
				op.Fail(op.RuntimeError("Input must be >= %d-d.", least))
			}
			return vals(b.Op("flip", x, []int{dim}))
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(least, 4)...)} },
		Tol:    exactTol("a copy"),
	}
}

func flippedDims(a op.Args) ([]int, error) {
	if len(a.Ints(arg.Dims)) == 0 {
		return nil, nil
	}
	return wrapDims(a.Ints(arg.Dims), len(a.Value(arg.Input).Shape()))
}

func runFlip(c *op.Run) error {
	out, in := c.Out[0], c.Tensor(arg.Input)
	if out.Dim() == 0 {
		out.CopyFrom(in)
		return nil
	}
	dims, _ := flippedDims(c.Args)
	maps := make([][]int, out.Dim())
	for d, n := range out.Shape() {
		maps[d] = allDims(n)
		if slices.Contains(dims, d) {
			slices.Reverse(maps[d])
		}
	}
	kernel.Remap(out, in, maps)
	return nil
}

func checkRot90(a op.Args) error {
	dims, n := a.Ints(arg.Dims), len(a.Value(arg.Input).Shape())
	if len(dims) != 2 {
		return op.RuntimeError("expected total rotation dims == 2, but got dims = %d", len(dims))
	}
	if n < 2 {
		return op.RuntimeError("expected total dims >= 2, but got total dims = %d", n)
	}
	first, err := wrapDim(dims[0], n)
	if err != nil {
		return err
	}
	second, err := wrapDim(dims[1], n)
	if err == nil && first == second {
		return op.RuntimeError("expected rotation dims to be different, but got dim0 = %d and dim1 = %d", dims[0], dims[1])
	}
	return err
}

func rot90(b op.Builder, a op.Args) []op.Value {
	x, dims := a.Value(arg.Input), a.Ints(arg.Dims)
	switch ((a.Int(arg.K) % 4) + 4) % 4 {
	case 1:
		return vals(b.Op("transpose", b.Op("flip", x, dims[1:]), dims[0], dims[1]))
	case 2:
		return vals(b.Op("flip", x, dims))
	case 3:
		return vals(b.Op("transpose", b.Op("flip", x, dims[:1]), dims[0], dims[1]))
	}
	return vals(b.Op("clone", x, op.Kw("memory_format", tensor.Contiguous)))
}

func checkRoll(a op.Args) error {
	shifts, dims := a.Ints(arg.Shifts), a.Ints(arg.Dims)
	switch {
	case len(shifts) == 0:
		return op.RuntimeError("`shifts` required")
	case len(dims) == 0 && len(shifts) == 1:
		return nil
	case len(shifts) != len(dims):
		return op.RuntimeError("shifts and dimensions must align. shifts: %d, dims:%d", len(shifts), len(dims))
	}
	if len(a.Value(arg.Input).Shape()) == 0 {
		return op.IndexError("Dimension specified as %d but tensor has no dimensions", dims[0])
	}
	for _, d := range dims {
		if _, err := wrapDim(d, len(a.Value(arg.Input).Shape())); err != nil {
			return err
		}
	}
	return nil
}

func roll(b op.Builder, a op.Args) op.Value {
	x := a.Value(arg.Input)
	shifts, dims := a.Ints(arg.Shifts), a.Ints(arg.Dims)
	if len(dims) == 0 {
		flat := b.Reshape(b.Op("contiguous", x), []int{tensor.NumElements(x.Shape())})
		return b.Reshape(rolled(b, flat, shifts[0], 0), x.Shape())
	}
	for i, d := range dims {
		x = rolled(b, x, shifts[i], d)
	}
	return x
}

func rolled(b op.Builder, x op.Value, shift, dim int) op.Value {
	if tensor.NumElements(x.Shape()) == 0 || len(x.Shape()) == 0 {
		return b.Op("clone", x)
	}
	d := must(wrapDim(dim, len(x.Shape())))
	n := x.Shape()[d]
	start := ((n-shift)%n + n) % n
	return b.Op("cat", vals(b.Op("narrow", x, d, start, n-start), b.Op("narrow", x, d, 0, start)), d)
}

func checkRepeat(a op.Args) error {
	repeats := a.Ints(arg.RepeatsInts)
	if len(repeats) < len(a.Value(arg.Input).Shape()) {
		return op.RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
	}
	for _, n := range repeats {
		if n < 0 {
			return op.RuntimeError("Trying to create tensor with negative dimension %d", n)
		}
	}
	return nil
}

// repeated gives every dimension one of repeats before it, expands those and
// merges them.
func repeatedAlong(b op.Builder, x op.Value, repeats []int) op.Value {
	shape := append(slices.Repeat([]int{1}, len(repeats)-len(x.Shape())), x.Shape()...)
	var single, wide, merged []int
	for i, n := range shape {
		single, wide = append(single, 1, n), append(wide, repeats[i], n)
		merged = append(merged, repeats[i]*n)
	}
	if len(shape) == 0 {
		return b.Op("clone", x)
	}
	return b.Op("clone", b.Reshape(b.Expand(b.Reshape(x, single), wide), merged), op.Kw("memory_format", tensor.Contiguous))
}

func sampleRepeat(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	n := []int{2}
	for range shape {
		n = append(n, 1+s.Index(3))
	}
	return []any{s.Tensor(-2, 2, shape...), n[s.Index(2):]}
}

func interleaved(b op.Builder, a op.Args) op.Value {
	if a.Value(arg.Repeats) != nil {
		return interleavedBy(b, a)
	}
	x, n := a.Value(arg.Input), a.Int(arg.RepeatsInt)
	if n < 0 {
		op.Fail(op.RuntimeError("repeats can not be negative"))
	}
	d := 0
	if a.Has(arg.Dim) {
		d = must(entryDim(a))
	} else {
		x = b.Op("flatten", x)
	}
	shape := x.Shape()
	if size := a.Any(arg.OutputSize); size != nil && size != n*shape[d] {
		op.Fail(op.RuntimeError("allocated size does not match required size"))
	}
	wide := slices.Insert(slices.Clone(shape), d+1, n)
	merged := slices.Clone(shape)
	merged[d] *= n
	return b.Op("clone", b.Reshape(b.Expand(b.Op("unsqueeze", x, d+1), wide), merged), op.Kw("memory_format", tensor.Contiguous))
}

// interleavedBy reads how often each entry is repeated, which the result's
// shape depends on.
func interleavedBy(b op.Builder, a op.Args) op.Value {
	x, d := a.Value(arg.Input), 0
	if a.Has(arg.Dim) {
		d = must(entryDim(a))
	} else {
		x = b.Op("flatten", x)
	}
	picks := repeatedEntries(a.Value(arg.Repeats), x.Shape()[d])
	if size := a.Any(arg.OutputSize); size != nil && size != len(picks) {
		op.Fail(op.RuntimeError("allocated size does not match required size"))
	}
	shape, single := slices.Clone(x.Shape()), slices.Repeat([]int{1}, len(x.Shape()))
	shape[d], single[d] = len(picks), len(picks)
	if len(picks) == 0 {
		return b.Op("clone", b.Op("narrow", x, d, 0, 0), op.Kw("memory_format", tensor.Contiguous))
	}
	return b.Op("gather", x, d, b.Expand(b.Reshape(b.Op("tensor", picks), single), shape))
}

// repeatedEntries lists the entries 0 to n-1, each as often as repeats tells.
func repeatedEntries(repeats op.Value, n int) []any {
	counts, err := op.ElementsOf(repeats)
	switch d := repeats.DType(); {
	case err != nil:
		op.Fail(err)
	case counts == nil:
		op.Fail(fmt.Errorf("%w: the elements of argument 'repeats' of repeat_interleave are not known", op.ErrUnknown))
	case len(repeats.Shape()) > 1:
		op.Fail(op.RuntimeError("repeats must be 0-dim or 1-dim tensor"))
	case d != tensor.I64 && d != tensor.I32:
		op.Fail(op.RuntimeError("repeat_interleave is not implemented for argument 'repeats' of dtype %s", d))
	case counts.Len() != 1 && counts.Len() != n:
		op.Fail(op.RuntimeError("repeats must have the same size as input along dim"))
	}
	var picks []any
	for i := range n {
		k := counts.Int(i % counts.Len())
		if k < 0 {
			op.Fail(op.RuntimeError("repeats can not be negative"))
		}
		picks = append(picks, slices.Repeat([]any{int64(i)}, int(k))...)
	}
	return picks
}

// entryDim returns the wrapped dim of a tensor that has dimensions.
func entryDim(a op.Args) (int, error) {
	n := len(a.Value(arg.Input).Shape())
	if n == 0 {
		return 0, op.IndexError("Dimension specified as %d but tensor has no dimensions", a.Int(arg.Dim))
	}
	return wrapDim(a.Int(arg.Dim), n)
}
