package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var shapeOps = slices.Concat([]*op.Def{
	viewOp(&op.Def{
		Sig:    "flatten(Tensor input, int start_dim=0, int end_dim=-1) -> Tensor",
		SBP:    regrouped(flattenedShape, "", nil),
		Names:  both("flatten"),
		Doc:    "Merges the dimensions start_dim to end_dim into one.",
		Grad:   op.Gradient(reshapeGrad),
		Sample: sampleFlatten,
	}, reshaped(flattenedShape)),
	viewOp(&op.Def{
		Sig:    "reshape(Tensor input, int[] shape) -> Tensor",
		SBP:    regrouped(func(a op.Args) ([]int, error) { return inferShape(a, a.Ints(arg.Shape)) }, arg.Shape, fromFirst),
		Names:  both("reshape"),
		Doc:    "The same elements in another shape, in which one -1 is inferred.",
		Grad:   op.Gradient(reshapeGrad),
		Sample: sampleReshape,
	}, reshaped(func(a op.Args) ([]int, error) { return inferShape(a, a.Ints(arg.Shape)) })),
	viewOp(&op.Def{
		Sig:    "view(Tensor input, int[] size) -> Tensor",
		SBP:    regrouped(func(a op.Args) ([]int, error) { return inferShape(a, a.Ints(arg.Size)) }, arg.Size, fromFirst),
		Names:  []string{"Tensor.view"},
		Doc:    "The same storage in another shape, in which one -1 is inferred.",
		Grad:   op.Gradient(reshapeGrad),
		Sample: sampleReshape,
	}, viewLayout),
	viewOp(&op.Def{
		Sig: "transpose(Tensor input, int dim0, int dim1) -> Tensor",
		SBP: mapped(viewed(func(a op.Args) (layout, error) {
			return transposed(a.Value(arg.Input), a.Int(arg.Dim0), a.Int(arg.Dim1))
		})),
		Names:  append(both("transpose", "swapdims"), "torch.swapaxes(input, axis0, axis1)", "Tensor.swapaxes(input, axis0, axis1)"),
		Doc:    "Exchanges two dimensions.",
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Op("transpose", g.G(), g.Int(arg.Dim0), g.Int(arg.Dim1)) }),
		Sample: sampleTranspose,
	}, func(a op.Args) (layout, error) {
		return transposed(a.Value(arg.Input), a.Int(arg.Dim0), a.Int(arg.Dim1))
	}),
	viewOp(&op.Def{
		Sig:    "t(Tensor input) -> Tensor",
		SBP:    mapped(viewed(shardT)),
		Names:  both("t"),
		Doc:    "Transposes a matrix; fewer dimensions stay as they are.",
		Reject: checkT,
		Traits: op.Involution,
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Op("t", g.G()) }),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 2)...)} },
	}, func(a op.Args) (layout, error) {
		v := a.Value(arg.Input)
		return transposed(v, 0, max(len(v.Shape())-1, 0))
	}),
	viewOp(&op.Def{
		Sig:    "permute(Tensor input, int[] dims) -> Tensor",
		SBP:    mapped(viewed(permuted)),
		Names:  both("permute"),
		Doc:    "Reorders the dimensions: dimension i of the result is dimension dims[i] of the input.",
		Grad:   op.Gradient(permuteGrad),
		Sample: samplePermute,
	}, permuted),
	viewOp(&op.Def{
		Sig:    "expand(Tensor input, int[] size) -> Tensor",
		SBP:    repeatedAxes(arg.Size),
		Names:  []string{"Tensor.expand"},
		Doc:    "Repeats dimensions of size 1, and new leading ones, without a copy; -1 keeps a size.",
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.G() }),
		Sample: sampleExpand,
	}, expanded),
	broadcastTo,
	viewOp(&op.Def{
		Sig:    "unsqueeze(Tensor input, int dim) -> Tensor",
		SBP:    mapped(unsqueezedPlaces),
		Names:  both("unsqueeze"),
		Doc:    "Inserts a dimension of size 1 at dim.",
		Grad:   op.Gradient(reshapeGrad),
		Sample: sampleUnsqueeze,
	}, unsqueezed),
	viewOp(&op.Def{
		Sig:    "squeeze(Tensor input, int? dim=None) -> Tensor",
		More:   []string{"squeeze(Tensor input, int[] dim) -> Tensor"},
		SBP:    anyOf(linear(arg.Input), squeezedAxes),
		Names:  both("squeeze"),
		Doc:    "Removes dimension dim, or each of a list, if its size is 1; every such dimension by default.",
		Grad:   op.Gradient(reshapeGrad),
		Sample: sampleSqueeze,
	}, squeezed),
	viewOp(&op.Def{
		Sig:    "narrow(Tensor input, int dim, int start, int length) -> Tensor",
		SBP:    anyOf(linear(arg.Input), alongOthers(arg.Input)),
		Names:  both("narrow"),
		Doc:    "The length entries of dimension dim from start on.",
		Grad:   op.Gradient(narrowGrad),
		Sample: sampleNarrow,
	}, narrowed),
	viewOp(&op.Def{
		Sig:    "contiguous(Tensor input, *, MemoryFormat memory_format=contiguous_format) -> Tensor",
		SBP:    linearly,
		Names:  []string{"Tensor.contiguous"},
		Doc:    "The same tensor in the given memory order; itself if it has that already.",
		Traits: op.Idempotent | op.ItselfOrCopy,
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.G() }),
		Sample: sampleUnary(-2, 2),
	}, contiguous),
	{
		Sig:     "clone(Tensor input, *, MemoryFormat? memory_format=None) -> Tensor",
		SBP:     linearly,
		Names:   both("clone"),
		Doc:     "A copy, in the memory order of the input unless memory_format says otherwise.",
		Traits:  op.Idempotent,
		Infer:   inferClone,
		Kernels: []op.Kernel{copyKernel},
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.G() }),
		Sample:  sampleUnary(-2, 2),
		Tol:     ownMagnitude(exactTol("a copy")),
	},
	castOp(&op.Def{
		Sig:     "to(Tensor input, device? device=None, dtype? dtype=None, bool non_blocking=False, bool copy=False, *, Tensor? other=None, MemoryFormat? memory_format=None) -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Input: op.IntRange},
		SBP:     converted,
		More: []string{
			"to(Tensor input, dtype dtype, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor",
			"to(Tensor input, Tensor other, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor",
		},
		Names:  []string{"Tensor.to"},
		Doc:    "Converts the elements to a dtype: floats round to nearest even, and truncate towards integers; bool asks whether they are non-zero; complex to real drops the imaginary part. The input itself if it has the dtype and lies as memory_format says.",
		Reject: checkDevice,
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 4)...), s.DType} },
		Tol:    ownMagnitude(exactTol("a conversion, rounded once")),
	}, targetType, func(a op.Args) bool { return a.Bool(arg.Copy) }),
	{
		Sig:     "cat(Tensor[] tensors, int dim=0) -> Tensor",
		SBP:     concatenated,
		Names:   []string{"torch.cat", "torch.concat", "torch.concatenate"},
		Doc:     "Joins tensors along dim; 1-d tensors without elements are skipped.",
		Reject:  checkCat,
		Infer:   inferCat,
		Kernels: []op.Kernel{{Name: "copy", Run: runCat}},
		Grad:    catGrad,
		Sample:  sampleCat,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
		SBP:     anyOf(additive(arg.Input, arg.Src), alongOthers(arg.Input, arg.Src)),
		Names:   both("slice_scatter"),
		Doc:     "A copy of input in which the entries start, start+step, … below end of dimension dim come from src.",
		Reject:  checkSlice,
		Infer:   sliceScatterMeta,
		Kernels: []op.Kernel{{Name: "copy", Over: []op.TensorArg{arg.Input}, Run: runSliceScatter}},
		Grad:    sliceScatterGrad,
		Sample:  sampleSliceScatter,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	viewOp(&op.Def{
		Sig:    "slice(Tensor input, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
		SBP:    anyOf(linear(arg.Input), alongOthers(arg.Input)),
		Doc:    "The entries start, start+step, … below end of dimension dim: input[start:end:step] there.",
		Reject: checkSlice,
		Grad:   op.Gradient(sliceGrad),
		Sample: sampleSlice,
	}, sliced),
	{
		Sig:     "gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
		SBP:     anyOf(linear(arg.Input), alongOthers(arg.Input, arg.Index), entriesOf(arg.Index)),
		Names:   both("gather"),
		Doc:     "Picks along dim: for dim 1 of three, out[i,j,k] = input[i,index[i,j,k],k].",
		Reject:  checkIndex(arg.Input),
		Infer:   inferGather,
		Kernels: []op.Kernel{{Name: "index", Run: runGather}},
		Grad:    op.Gradient(gatherGrad),
		Sample:  sampleGather,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "scatter(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
		SBP:     anyOf(additive(arg.Input, arg.Src), alongOthers(arg.Input, arg.Index, arg.Src)),
		Names:   both("scatter"),
		Doc:     "A copy of input with elements replaced along dim: for dim 1 of three, out[i,index[i,j,k],k] = src[i,j,k].",
		Reject:  checkScatter,
		Infer:   inferScatter,
		Kernels: []op.Kernel{{Name: "index", Over: []op.TensorArg{arg.Input}, Run: runScatter}},
		Grad:    scatterGrad,
		Sample:  sampleScatter,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "scatter_add(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
		SBP:     anyOf(additive(arg.Input, arg.Src), alongOthers(arg.Input, arg.Index, arg.Src), addedAlong(arg.Index, arg.Src)),
		Names:   both("scatter_add"),
		Doc:     "A copy of input with elements added along dim: for dim 1 of three, out[i,index[i,j,k],k] += src[i,j,k].",
		Reject:  checkScatter,
		Infer:   inferScatter,
		Kernels: []op.Kernel{{Name: "index", Over: []op.TensorArg{arg.Input}, Run: runScatterAdd}},
		Grad:    scatterAddGrad,
		Sample:  sampleScatter,
		Tol:     addedInPlace(ownMagnitude(accumulating(entryTerms, "a sum of at most as many elements as index has"))),
	},
}, casts)

func sampleFlatten(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	from := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), from, from + s.Index(len(shape)-from)}
}

func sampleTranspose(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	n := int64(len(shape))
	return []any{s.Tensor(-2, 2, shape...), s.Int(-n, n), s.Int(-n, n)}
}

func shardT(a op.Args) (layout, error) {
	return transposed(a.Value(arg.Input), 0, max(len(a.Value(arg.Input).Shape())-1, 0))
}

func checkT(a op.Args) error {
	if n := len(a.Value(arg.Input).Shape()); n > 2 {
		return op.RuntimeError("t() expects argument 'input' to have at most 2 dimensions, but it has %d", n)
	}
	return nil
}

func permuteGrad(g *op.Grad) op.Value {
	dims, err := permutation(g.Args)
	if err != nil {
		op.Fail(err)
	}
	inverse := make([]int, len(dims))
	for i, d := range dims {
		inverse[d] = i
	}
	return g.Op("permute", g.G(), inverse)
}

func samplePermute(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	dims := allDims(len(shape))
	for i := range dims {
		j := i + s.Index(len(dims)-i)
		dims[i], dims[j] = dims[j], dims[i]
	}
	return []any{s.Tensor(-2, 2, shape...), dims}
}

func sampleExpand(s *op.Sampler) []any {
	size := s.Shape(1, 4)
	shape := slices.Clone(size)
	shape[s.Index(len(shape))] = 1
	return []any{s.Tensor(-2, 2, shape...), append([]int{2}, size...)}
}

func sampleUnsqueeze(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	return []any{s.Tensor(-2, 2, shape...), s.Index(len(shape) + 1)}
}

func sampleSqueeze(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	d := s.Index(len(shape) + 1)
	shape = slices.Insert(shape, d, 1)
	x := s.Tensor(-2, 2, shape...)
	switch s.Index(4) {
	case 0:
		return []any{x}
	case 1:
		return []any{x, s.Index(len(shape))}
	}
	return []any{x, d - s.Index(2)*len(shape)}
}

func narrowGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	d, start, n, err := narrowRange(g.Args)
	if err != nil {
		op.Fail(err)
	}
	return g.Op("slice_scatter", zeros(g, x), g.G(), d, start, start+n)
}

func sampleNarrow(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	start := s.Index(shape[d])
	return []any{s.Tensor(-2, 2, shape...), d, start, s.Index(shape[d] - start + 1)}
}

func runSliceScatter(c *op.Run) error {
	s := sliceOf(c.Args)
	c.Out[0].CopyFrom(c.Tensor(arg.Input))
	c.Out[0].Narrow(s.dim, s.start, s.n, s.step).CopyFrom(c.Tensor(arg.Src))
	return nil
}

func sliceScatterGrad(g *op.Grad) {
	s := sliceOf(g.Args)
	g.To(arg.Input, func() op.Value {
		return g.Op("slice_scatter", g.G(), zeros(g, g.Value(arg.Src)), s.dim, s.start, s.end, s.step)
	})
	g.To(arg.Src, func() op.Value { return g.Op("slice", g.G(), s.dim, s.start, s.end, s.step) })
}

func sampleSliceScatter(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	start := s.Index(shape[d])
	part := slices.Clone(shape)
	part[d] = (shape[d] - start + 1) / 2
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, part...), d, start, shape[d], 2}
}

func sliceGrad(g *op.Grad) op.Value {
	s := sliceOf(g.Args)
	return g.Op("slice_scatter", zeros(g, g.Value(arg.Input)), g.G(), s.dim, s.start, s.end, s.step)
}

func sampleSlice(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), d, s.Index(shape[d]), -1 + int(s.Int(0, 7)), 1 + s.Index(3)}
}

// casts are the methods that convert to a fixed dtype.
var casts = []*op.Def{
	cast("bool", tensor.Bool), cast("byte", tensor.U8), cast("char", tensor.I8), cast("short", tensor.I16),
	cast("int", tensor.I32), cast("long", tensor.I64), cast("half", tensor.F16), cast("bfloat16", tensor.BF16),
	cast("float", tensor.F32), cast("double", tensor.F64), cast("cfloat", tensor.C64), cast("cdouble", tensor.C128),
}

func cast(name string, d tensor.DType) *op.Def {
	def := castOp(&op.Def{
		Sig:    name + "(Tensor input, *, MemoryFormat? memory_format=None) -> Tensor",
		Names:  []string{"Tensor." + name},
		Doc:    "Converts the elements to " + d.String() + ", as Tensor.to does.",
		Traits: op.Idempotent,
		SBP:    linearly,
		Sample: sampleUnary(-2, 2),
		Tol:    exactTol("a conversion, rounded once"),
	}, func(op.Args) tensor.DType { return d }, func(op.Args) bool { return false })
	if !d.IsDifferentiable() && d != tensor.Bool {
		def = holding(op.IntRange, def)
	}
	if !d.IsDifferentiable() {
		def.SBP = pointwise
		def.Traits |= op.NoGrad
		def.Grad = nil
	}
	return def
}

// castOp completes the definition of a conversion, which returns its input
// where that has the dtype already and no copy is asked for.
func castOp(d *op.Def, dtype func(op.Args) tensor.DType, copies func(op.Args) bool) *op.Def {
	d.Traits |= op.View
	d.Grad = op.Gradient((*op.Grad).G)
	format := func(a op.Args) (f tensor.MemoryFormat, given bool) {
		if a.Sig.Takes(arg.MemoryFormat) {
			f, given = a.Any(arg.MemoryFormat).(tensor.MemoryFormat)
		}
		return f, given && f != tensor.Preserve
	}
	same := func(a op.Args) bool {
		v := a.Value(arg.Input)
		f, given := format(a)
		return v.DType() == dtype(a) && !copies(a) && (!given || f.Matches(v.Shape(), v.Strides()))
	}
	strides := func(a op.Args) []int {
		v := a.Value(arg.Input)
		if f, given := format(a); given {
			return f.Strides(v.Shape())
		}
		return denseStrides(v)
	}
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		v := a.Value(arg.Input)
		if same(a) {
			return one(dtype(a), v.Shape(), v.Strides()), nil
		}
		if f, _ := format(a); f == tensor.ChannelsLast && len(v.Shape()) != 4 {
			return nil, op.RuntimeError("required rank 4 tensor to use channels_last format")
		}
		return one(dtype(a), v.Shape(), strides(a)), nil
	}
	d.View = func(a op.Args) (*tensor.Tensor, error) {
		t := a.Tensor(arg.Input)
		if same(a) {
			return t, nil
		}
		metas, err := d.Infer(a)
		if err != nil {
			return nil, err
		}
		out := tensor.NewStrided(dtype(a), t.Shape(), metas[0].Strides)
		out.CopyFrom(t)
		return out, nil
	}
	return d
}

var copyKernel = op.Kernel{Name: "copy", Run: func(c *op.Run) error {
	c.Out[0].CopyFrom(c.Tensor(arg.Input))
	return nil
}}

func fillZero(c *op.Run) error {
	out := c.Out[0]
	zero, err := tensor.New(out.DType()).Expand(out.Shape()...)
	if err != nil {
		return err
	}
	out.CopyFrom(zero)
	return nil
}

// layout is how a view lies in its input's storage. Offset counts from the
// input's first element. Copied says that the strides do not allow a view, so
// that the result is a contiguous copy.
type layout struct {
	shape, strides []int
	offset         int
	copied         bool
}

// viewOp completes the definition of a View operator by its layout.
func viewOp(d *op.Def, rule func(op.Args) (layout, error)) *op.Def {
	d.Traits |= op.View
	d.Tol = ownMagnitude(exactTol("a view of its input"))
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		l, err := rule(a)
		if err != nil {
			return nil, err
		}
		return one(a.Value(arg.Input).DType(), l.shape, l.strides), nil
	}
	d.View = func(a op.Args) (*tensor.Tensor, error) {
		l, err := rule(a)
		if err != nil {
			return nil, err
		}
		t := a.Tensor(arg.Input)
		if l.copied {
			return copied(t, l), nil
		}
		return t.AsStrided(l.shape, l.strides, t.Offset()+l.offset)
	}
	return d
}

// copied returns t's elements in row-major order under another layout.
func copied(t *tensor.Tensor, l layout) *tensor.Tensor {
	if slices.Equal(t.Shape(), l.shape) {
		return t.CloneStrided(l.strides)
	}
	return t.Reshape(l.shape...)
}

func reshaped(shape func(op.Args) ([]int, error)) func(op.Args) (layout, error) {
	return func(a op.Args) (layout, error) {
		to, err := shape(a)
		if err != nil {
			return layout{}, err
		}
		v := a.Value(arg.Input)
		strides, ok := tensor.ViewStrides(v.Shape(), v.Strides(), to)
		if !ok {
			strides = tensor.ContiguousStrides(to)
		}
		return layout{shape: to, strides: strides, copied: !ok}, nil
	}
}

func viewLayout(a op.Args) (layout, error) {
	l, err := reshaped(func(a op.Args) ([]int, error) { return inferShape(a, a.Ints(arg.Size)) })(a)
	if err == nil && l.copied {
		err = op.RuntimeError("view size is not compatible with input tensor's size and stride: use .reshape(...) instead")
	}
	return l, err
}

// inferShape replaces the -1 in a shape that the input's elements are to take.
func inferShape(a op.Args, want []int) ([]int, error) {
	n := tensor.NumElements(a.Value(arg.Input).Shape())
	shape, known, hole := slices.Clone(want), 1, -1
	for i, d := range want {
		switch {
		case d >= 0:
			known *= d
		case d < -1:
			return nil, op.RuntimeError("invalid shape dimension %d", d)
		case hole >= 0:
			return nil, op.RuntimeError("only one dimension can be inferred")
		default:
			hole = i
		}
	}
	switch {
	case hole < 0 && known == n:
	case hole >= 0 && known > 0 && n%known == 0:
		shape[hole] = n / known
	case hole >= 0 && known == 0 && n == 0:
		return nil, op.RuntimeError("cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be any value and is ambiguous", tensor.ShapeString(want))
	default:
		return nil, op.RuntimeError("shape '%s' is invalid for input of size %d", tensor.ShapeString(want), n)
	}
	return shape, nil
}

func flattenedShape(a op.Args) ([]int, error) {
	shape := a.Value(arg.Input).Shape()
	from, err := wrapDim(a.Int(arg.StartDim), len(shape))
	if err != nil {
		return nil, err
	}
	to, err := wrapDim(a.Int(arg.EndDim), len(shape))
	if err != nil {
		return nil, err
	}
	switch {
	case from > to:
		return nil, op.RuntimeError("flatten() has invalid args: start_dim %d cannot come after end_dim %d", from, to)
	case len(shape) == 0:
		return []int{1}, nil
	}
	merged := tensor.NumElements(shape[from : to+1])
	return slices.Concat(shape[:from], []int{merged}, shape[to+1:]), nil
}

func reshapeGrad(g *op.Grad) op.Value {
	return g.Reshape(g.G(), g.Value(arg.Input).Shape())
}

func sampleReshape(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	n := tensor.NumElements(shape)
	if s.Bool() {
		return []any{s.Tensor(-2, 2, shape...), []int{-1, shape[len(shape)-1]}}
	}
	return []any{s.Tensor(-2, 2, shape...), []int{n, 1}}
}

func sliceScatterMeta(a op.Args) ([]op.Meta, error) {
	s, v := sliceOf(a), a.Value(arg.Input)
	want := slices.Clone(v.Shape())
	want[s.dim] = s.n
	if !slices.Equal(want, a.Value(arg.Src).Shape()) {
		return nil, op.RuntimeError("expected argument 'src' to have the slice's size %s but got %s", tensor.ShapeString(want), tensor.ShapeString(a.Value(arg.Src).Shape()))
	}
	return one(v.DType(), v.Shape(), iteratorStrides(v.Shape(), v)), nil
}

// contiguous keeps the input where it has the memory order already.
func contiguous(a op.Args) (layout, error) {
	v, f := a.Value(arg.Input), a.Any(arg.MemoryFormat).(tensor.MemoryFormat)
	switch {
	case f == tensor.Preserve:
		return layout{}, op.RuntimeError("preserve memory format is unsupported by the contiguous operator")
	case f == tensor.ChannelsLast && len(v.Shape()) != 4:
		return layout{}, op.RuntimeError("required rank 4 tensor to use channels_last format")
	case f.Matches(v.Shape(), v.Strides()):
		return layout{shape: v.Shape(), strides: v.Strides()}, nil
	}
	return layout{shape: v.Shape(), strides: f.Strides(v.Shape()), copied: true}, nil
}

func inferClone(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	f, given := a.Any(arg.MemoryFormat).(tensor.MemoryFormat)
	switch {
	case !given || f == tensor.Preserve:
		return one(v.DType(), v.Shape(), denseStrides(v)), nil
	case f == tensor.ChannelsLast && len(v.Shape()) != 4:
		return nil, op.RuntimeError("required rank 4 tensor to use channels_last format")
	}
	return one(v.DType(), v.Shape(), f.Strides(v.Shape())), nil
}

// targetType is the dtype argument, or that of the argument other, or the input's.
func targetType(a op.Args) tensor.DType {
	if a.Has(arg.DType) {
		return a.DType(arg.DType)
	}
	if a.Sig.Takes(arg.Other) && a.Has(arg.Other) {
		return a.Value(arg.Other).DType()
	}
	return a.Value(arg.Input).DType()
}

func checkDevice(a op.Args) error {
	if d, ok := a.Any(arg.Device).(op.DeviceName); ok && d != "cpu" {
		return op.RuntimeError("device '%s' is not available: argument 'device' must be 'cpu'", d)
	}
	return nil
}

func dimOf(a op.Args) int {
	d, _ := wrapDim(a.Int(arg.Dim), len(a.Value(arg.Input).Shape()))
	return d
}
