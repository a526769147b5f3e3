package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var layoutOps = slices.Concat(getitemOps, setitemOps, viewOps, splitOps, joinOps, orderOps, padOps)

// viewOps are views that shape.go does not have.
var viewOps = []*op.Def{
	viewOp(&op.Def{
		Sig:    "select(Tensor input, int dim, int index) -> Tensor",
		SBP:    mapped(viewed(selected)),
		Names:  both("select"),
		Doc:    "Entry index of dimension dim, which the result lacks.",
		Grad:   op.Gradient(selectGrad),
		Sample: sampleSelect,
	}, selected),
	viewOp(&op.Def{
		Sig:    "diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor",
		SBP:    mapped(viewed(diagonal)),
		Names:  both("diagonal"),
		Doc:    "The diagonal of the matrices in dimensions dim1 and dim2, offset entries above the main one, as the last dimension.",
		Grad:   op.Gradient(diagonalGrad),
		Sample: sampleDiagonal,
	}, diagonal),
	viewOp(&op.Def{
		Sig:    "unfold(Tensor input, int dimension, int size, int step) -> Tensor",
		SBP:    mapped(unwindowed(viewed(unfolded))),
		Names:  []string{"Tensor.unfold"},
		Doc:    "Windows of size entries, step apart, of a dimension; a window's entries are the last dimension.",
		Grad:   op.Gradient(unfoldGrad),
		Sample: sampleUnfold,
	}, unfolded),
	viewOp(&op.Def{
		Sig:    "movedim(Tensor input, int[] source, int[] destination) -> Tensor",
		SBP:    mapped(viewed(moved)),
		More:   []string{"movedim(Tensor input, int source, int destination) -> Tensor"},
		Names:  both("movedim", "moveaxis"),
		Doc:    "Moves dimensions source to the positions destination; the others keep their order.",
		Grad:   op.Gradient(movedimGrad),
		Sample: sampleMovedim,
	}, moved),
	viewOp(&op.Def{
		Sig:    "unflatten(Tensor input, int dim, int[] sizes) -> Tensor",
		SBP:    regrouped(unflattenedShape, arg.Sizes, dimOf),
		Names:  both("unflatten"),
		Doc:    "Splits dimension dim into the given sizes, one of which may be -1.",
		Grad:   op.Gradient(reshapeGrad),
		Sample: sampleUnflatten,
	}, reshaped(unflattenedShape)),
	viewOp(&op.Def{
		Sig:    "ravel(Tensor input) -> Tensor",
		SBP:    regrouped(func(a op.Args) ([]int, error) { return []int{tensor.NumElements(a.Value(arg.Input).Shape())}, nil }, "", nil),
		Names:  both("ravel"),
		Doc:    "The elements in row-major order, in one dimension.",
		Traits: op.Idempotent,
		Grad:   op.Gradient(reshapeGrad),
		Sample: sampleUnary(-2, 2),
	}, reshaped(func(a op.Args) ([]int, error) { return []int{tensor.NumElements(a.Value(arg.Input).Shape())}, nil })),
	transposition("T", "Reverses the order of the dimensions.", func(n int) []int {
		dims := allDims(n)
		slices.Reverse(dims)
		return dims
	}, "Tensor.T"),
	transposition("mT", "Exchanges the last two dimensions.", lastTwo, "Tensor.mT"),
	adjointView("H", "Tensor.H"), adjointView("mH", "Tensor.mH", "torch.adjoint", "Tensor.adjoint"),
	like("view_as", "view", "Tensor.view_as", reshapedAs),
	like("reshape_as", "reshape", "Tensor.reshape_as", reshapedAs),
	like("expand_as", "expand", "Tensor.expand_as", linearly),
	{
		Sig:     "type_as(Tensor input, Tensor other) -> Tensor",
		Names:   []string{"Tensor.type_as"},
		Doc:     "Converts the elements to other's dtype, as Tensor.to does.",
		Compose: composeTypeAs,
		Fixed:   []op.Handle{arg.Other},
		Unread:  unread(arg.Other),
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 4)...), s.Tensor(-2, 2, 1)} },
		Tol:     exactTol("a conversion, rounded once"),
	},
	{
		Sig:     "diagonal_scatter(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
		SBP:     anyOf(additive(arg.Input, arg.Src), scatteredDiagonal),
		Names:   both("diagonal_scatter"),
		Doc:     "A copy of input in which a diagonal comes from src.",
		Infer:   inferDiagonalScatter,
		Kernels: []op.Kernel{{Name: "copy", Run: runDiagonalScatter}},
		Grad:    diagonalScatterGrad,
		Sample:  sampleDiagonalScatter,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "select_scatter(Tensor input, Tensor src, int dim, int index) -> Tensor",
		Names:   both("select_scatter"),
		Doc:     "A copy of input in which entry index of dimension dim comes from src.",
		Compose: composeSelectScatter,
		Sample:  sampleSelectScatter,
		Tol:     exactTol("copies its inputs"),
	},
	viewOp(&op.Def{
		Sig:           "as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
		InPlace:       op.InPlaceRules{NoGradView: true},
		NotSplittable: "it reads storage, which a piece lacks",
		Names:         both("as_strided"),
		Doc:           "A view of the input's storage with the given shape, strides and offset; elements may occur more than once.",
		Reject:        checkAsStrided,
		Grad:          op.Gradient(asStridedGrad),
		Sample:        sampleAsStrided,
	}, asStrided),
	{
		Sig: "as_strided.back(Tensor input, int[] shape, int[] stride) -> Tensor",
		Doc: "The adjoint of a view of a contiguous tensor of the shape with the given strides, followed by the offset: every element of input is added where the view reads.",
		SBP: linear(arg.Input),
		Infer: func(a op.Args) ([]op.Meta, error) {
			return one(a.Value(arg.Input).DType(), a.Ints(arg.Shape), nil), nil
		},
		Kernels: []op.Kernel{{Name: "sum", When: op.DTypeIn(arg.Input, slices.Concat(float32Set, float64Set, complexTypes)...), Run: runAsStridedBack}},
		Grad:    op.Gradient(asStridedBackGrad),
		Sample:  sampleAsStridedBack,
		Tol: ownMagnitude(op.Tol{
			Class: op.Accumulating, Terms: func(a op.Args) int { return 1 + tensor.NumElements(a.Value(arg.Input).Shape()) },
			Reason: "a sum of at most as many elements as input has",
		}),
	},
}

func composeTypeAs(b op.Builder, a op.Args) []op.Value {
	return vals(b.Op("to", a.Value(arg.Input), a.Value(arg.Other).DType()))
}

func inferDiagonalScatter(a op.Args) ([]op.Meta, error) {
	l, err := diagonal(a)
	if err != nil {
		return nil, err
	}
	v := a.Value(arg.Input)
	if src := a.Value(arg.Src).Shape(); !slices.Equal(src, l.shape) {
		return nil, op.RuntimeError("expected argument 'src' to have the diagonal's size %s but got %s", tensor.ShapeString(l.shape), tensor.ShapeString(src))
	}
	return one(v.DType(), v.Shape(), iteratorStrides(v.Shape(), v)), nil
}

func runDiagonalScatter(c *op.Run) error {
	out := c.Out[0]
	out.CopyFrom(c.Tensor(arg.Input))
	part, err := viewOf(out, c.Args, diagonal)
	if err == nil {
		part.CopyFrom(c.Tensor(arg.Src))
	}
	return err
}

func diagonalScatterGrad(g *op.Grad) {
	offset, d1, d2 := g.Int(arg.Offset), g.Int(arg.Dim1), g.Int(arg.Dim2)
	g.To(arg.Input, func() op.Value {
		return g.Op("diagonal_scatter", g.G(), zeros(g, g.Value(arg.Src)), offset, d1, d2)
	})
	g.To(arg.Src, func() op.Value { return g.Op("diagonal", g.G(), offset, d1, d2) })
}

func sampleDiagonalScatter(s *op.Sampler) []any {
	args := sampleDiagonal(s)
	x := args[0].(*tensor.Tensor)
	d1, d2, offset := args[2].(int), args[3].(int), int(args[1].(int64))
	l := diagonalOf(x, offset, d1, d2)
	return []any{x, s.Tensor(-2, 2, l.shape...), offset, d1, d2}
}

func composeSelectScatter(b op.Builder, a op.Args) []op.Value {
	d, i, err := selection(a)
	if err != nil {
		op.Fail(err)
	}
	x, src := a.Value(arg.Input), a.Value(arg.Src)
	if entry := slices.Delete(slices.Clone(x.Shape()), d, d+1); !slices.Equal(src.Shape(), entry) {
		op.Fail(op.RuntimeError("src must have the shape %s of an entry, but has %s", tensor.ShapeString(entry), tensor.ShapeString(src.Shape())))
	}
	return vals(b.Op("slice_scatter", x, b.Op("unsqueeze", src, d), d, i, i+1))
}

func sampleSelectScatter(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, slices.Delete(slices.Clone(shape), d, d+1)...), d, s.Index(shape[d])}
}

func asStridedGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	l := must(asStrided(g.Args))
	if tensor.NumElements(l.shape) == 0 {
		return zeros(g, x)
	}
	place := append(slices.Clone(l.strides), l.offset)
	room := max(tensor.Extent(x.Shape(), x.Strides()), l.offset+tensor.Extent(l.shape, l.strides))
	storage := g.Op("as_strided.back", g.G(), []int{room}, place)
	if mayOverlap(x.Shape(), x.Strides()) { // PyTorch shares a place's gradient among the elements of input that lie there
		own := append(slices.Clone(x.Strides()), 0)
		sharers := g.Op("as_strided.back", g.Op("ones_like", x), []int{room}, own)
		storage = g.Div(storage, g.Op("clamp_min", sharers, 1))
	}
	return g.Op("as_strided", storage, x.Shape(), x.Strides())
}

func sampleAsStrided(s *op.Sampler) []any {
	a, b := 1+s.Index(3), 1+s.Index(3)
	return []any{s.Tensor(-2, 2, 4, 5), []int{a, b}, []int{s.Index(5), s.Index(3)}, s.Index(5)}
}

func runAsStridedBack(c *op.Run) error {
	n := len(c.Ints(arg.Stride)) - 1
	strides, offset := c.Ints(arg.Stride)[:n], c.Ints(arg.Stride)[n]
	return summed(c, func(out, in *tensor.Tensor) { kernel.AddStrided(out, in, strides, offset) })
}

func asStridedBackGrad(g *op.Grad) op.Value {
	n := len(g.Ints(arg.Stride)) - 1
	whole := g.Op("clone", g.G(), op.Kw("memory_format", tensor.Contiguous))
	return g.Op("as_strided", whole, g.Value(arg.Input).Shape(), g.Ints(arg.Stride)[:n], g.Ints(arg.Stride)[n])
}

func sampleAsStridedBack(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, 2, 3), []int{4, 5}, []int{s.Index(5), s.Index(3), s.Index(5)}}
}

func selectGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	d, i, err := selection(g.Args)
	if err != nil {
		op.Fail(err)
	}
	return g.Op("slice_scatter", zeros(g, x), g.Op("unsqueeze", g.G(), d), d, i, i+1)
}

func sampleSelect(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), d, s.Int(-int64(shape[d]), int64(shape[d]))}
}

func diagonalGrad(g *op.Grad) op.Value {
	return g.Op("diagonal_scatter", zeros(g, g.Value(arg.Input)), g.G(), g.Int(arg.Offset), g.Int(arg.Dim1), g.Int(arg.Dim2))
}

func unfoldGrad(g *op.Grad) op.Value {
	return g.Op("as_strided.back", g.G(), g.Value(arg.Input).Shape(), contiguousView(g, unfolded))
}

func sampleUnfold(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), d, s.Index(shape[d] + 1), 1 + s.Index(3)}
}

func movedimGrad(g *op.Grad) op.Value {
	return g.Op("movedim", g.G(), dimList(g.Args, arg.DestinationInts), dimList(g.Args, arg.SourceInts))
}

func sampleMovedim(s *op.Sampler) []any {
	shape := s.Shape(2, 4)
	n := len(shape)
	if s.Bool() {
		return []any{s.Tensor(-2, 2, shape...), s.Int(-int64(n), int64(n)), s.Index(n)}
	}
	i, j := s.Index(n), s.Index(n)
	return []any{s.Tensor(-2, 2, shape...), []int{i, (i + 1) % n}, []int{j, (j+1)%n - n}}
}

func sampleUnflatten(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	d := s.Index(len(shape))
	shape[d] *= 2
	return []any{s.Tensor(-2, 2, shape...), d, []int{2, -1}}
}

// mayOverlap reports strides by which two elements may lie at one place, as
// PyTorch tells it: when no order of the dimensions has each stride beyond what
// those before it reach.
func mayOverlap(shape, strides []int) bool {
	order := allDims(len(shape))
	slices.SortFunc(order, func(a, b int) int { return strides[a] - strides[b] })
	reach := 0
	for _, d := range order {
		if shape[d] <= 1 {
			continue
		}
		if strides[d] <= reach {
			return true
		}
		reach += strides[d] * (shape[d] - 1)
	}
	return false
}

// broadcastTo has expand's semantics but always takes a list as a function.
var broadcastTo = &op.Def{
	Sig:     "broadcast_to(Tensor input, int[] size) -> Tensor",
	Names:   both("broadcast_to"),
	Doc:     "Applies expand.",
	Compose: func(b op.Builder, a op.Args) []op.Value { return vals(b.Expand(a.Value(arg.Input), a.Ints(arg.Size))) },
	Sample:  sampleBroadcastTo,
	Tol:     exactTol("a view of its input"),
}

func sampleBroadcastTo(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	return []any{s.Tensor(-2, 2, shape...), append([]int{2}, shape...)}
}

// vals is the result list of a composition.
func vals(vs ...op.Value) []op.Value { return vs }

// must ends a composition with the error.
func must[T any](v T, err error) T {
	if err != nil {
		op.Fail(err)
	}
	return v
}

// transposition is an attribute that permutes the dimensions.
func transposition(name, doc string, order func(n int) []int, names ...string) *op.Def {
	return &op.Def{
		Sig:    name + "(Tensor input) -> Tensor",
		Names:  names,
		Doc:    doc,
		Traits: op.Involution,
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x := a.Value(arg.Input)
			return vals(b.Op("permute", x, order(len(x.Shape()))))
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(2, 4)...)} },
		Tol:    exactTol("a view of its input"),
	}
}

func lastTwo(n int) []int {
	if n == 1 {
		op.Fail(op.RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got %d-D tensor.", n))
	}
	dims := allDims(n)
	if n > 1 {
		dims[n-1], dims[n-2] = n-2, n-1
	}
	return dims
}

// adjointView exchanges the last two dimensions and conjugates.
func adjointView(name string, names ...string) *op.Def {
	return &op.Def{
		Sig:    name + "(Tensor input) -> Tensor",
		Names:  names,
		Doc:    "Exchanges the last two dimensions and conjugates complex numbers.",
		Traits: op.Involution,
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x := a.Value(arg.Input)
			n := len(x.Shape())
			if n == 1 && name != "H" || n != 2 && n != 0 && name == "H" {
				op.Fail(op.RuntimeError("tensor.%s is only supported on matrices, got %d-D tensor.", name, n))
			}
			if n == 2 || n > 2 {
				x = b.Op("transpose", x, -2, -1)
			}
			if x.DType().IsComplex() {
				x = b.Op("conj", x)
			}
			return vals(x)
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Dims(2)...)} },
		Tol:    exactTol("a view of its input"),
	}
}

// like is an operator that brings its input to the shape of another tensor.
func like(name, id, public string, shardings sharder) *op.Def {
	return &op.Def{
		Sig:   name + "(Tensor input, Tensor other) -> Tensor",
		Names: []string{public},
		Doc:   "Applies " + id + " with other's shape.",
		SBP:   shardings,
		Compose: func(b op.Builder, a op.Args) []op.Value {
			return vals(b.Op(id, a.Value(arg.Input), a.Value(arg.Other).Shape()))
		},
		Fixed:  []op.Handle{arg.Other},
		Unread: unread(arg.Other),
		Sample: sampleLike,
		Tol:    exactTol("a view of its input"),
	}
}

func sampleLike(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...)}
}

// viewOf applies a layout rule of the argument input to a tensor of its shape.
func viewOf(t *tensor.Tensor, a op.Args, rule func(op.Args) (layout, error)) (*tensor.Tensor, error) {
	l, err := rule(withInput(a, t))
	if err != nil {
		return nil, err
	}
	return t.AsStrided(l.shape, l.strides, t.Offset()+l.offset)
}

func withInput(a op.Args, v op.Value) op.Args {
	vs := slices.Clone(a.Vals)
	vs[a.Sig.Index(arg.Input)] = v
	return op.Args{Sig: a.Sig, Vals: vs}
}

// contiguousView returns the strides, and after them the offset, that the
// layout rule gives a contiguous input.
func contiguousView(g *op.Grad, rule func(op.Args) (layout, error)) []int {
	x := g.Value(arg.Input)
	l := must(rule(withInput(g.Args, dense{x, tensor.ContiguousStrides(x.Shape())})))
	return append(slices.Clone(l.strides), l.offset)
}

// summed runs a kernel that adds to a result of zeros; half types in float32.
func summed(c *op.Run, add func(out, in *tensor.Tensor)) error {
	out, in := c.Out[0], c.Tensor(arg.Input)
	sum := out
	if slices.Contains(halfTypes, out.DType()) {
		sum, in = tensor.New(tensor.F32, out.Shape()...), in.Convert(tensor.F32)
	} else if err := fillZero(c); err != nil {
		return err
	}
	add(sum, in)
	if sum != out {
		out.CopyFrom(sum)
	}
	return nil
}

// selection returns the wrapped dimension and index of a select.
func selection(a op.Args) (dim, i int, err error) {
	shape := a.Value(arg.Input).Shape()
	if len(shape) == 0 {
		return 0, 0, op.IndexError("select() cannot be applied to a 0-dim tensor")
	}
	if dim, err = wrapDim(a.Int(arg.Dim), len(shape)); err != nil {
		return 0, 0, err
	}
	i = a.Int(arg.IndexInt)
	if i < -shape[dim] || i >= shape[dim] {
		return 0, 0, op.IndexError("select(): index %d out of range for tensor of size %s at dimension %d", i, tensor.ShapeString(shape), dim)
	}
	if i < 0 {
		i += shape[dim]
	}
	return dim, i, nil
}

func selected(a op.Args) (layout, error) {
	d, i, err := selection(a)
	if err != nil {
		return layout{}, err
	}
	v := a.Value(arg.Input)
	return layout{
		shape:   slices.Delete(slices.Clone(v.Shape()), d, d+1),
		strides: slices.Delete(slices.Clone(v.Strides()), d, d+1),
		offset:  i * v.Strides()[d],
	}, nil
}

func diagonal(a op.Args) (layout, error) {
	v := a.Value(arg.Input)
	n := len(v.Shape())
	d1, err := wrapDim(a.Int(arg.Dim1), n)
	if err != nil {
		return layout{}, err
	}
	d2, err := wrapDim(a.Int(arg.Dim2), n)
	if err != nil {
		return layout{}, err
	}
	if d1 == d2 {
		return layout{}, op.RuntimeError("diagonal dimensions cannot be identical %d, %d", a.Int(arg.Dim1), a.Int(arg.Dim2))
	}
	return diagonalOf(v, a.Int(arg.Offset), d1, d2), nil
}

func diagonalOf(v op.Value, offset, d1, d2 int) layout {
	shape, strides := v.Shape(), v.Strides()
	size, start := 0, 0
	if offset >= 0 {
		size, start = max(min(shape[d1], shape[d2]-offset), 0), offset*strides[d2]
	} else {
		size, start = max(min(shape[d1]+offset, shape[d2]), 0), -offset*strides[d1]
	}
	if size == 0 {
		start = 0
	}
	l := layout{offset: start}
	for i := range shape {
		if i != d1 && i != d2 {
			l.shape, l.strides = append(l.shape, shape[i]), append(l.strides, strides[i])
		}
	}
	l.shape, l.strides = append(l.shape, size), append(l.strides, strides[d1]+strides[d2])
	return l
}

func sampleDiagonal(s *op.Sampler) []any {
	shape := s.Shape(2, 4)
	n := len(shape)
	d1 := s.Index(n)
	return []any{s.Tensor(-2, 2, shape...), s.Int(-2, 3), d1, (d1 + 1 + s.Index(n-1)) % n}
}

func unfolded(a op.Args) (layout, error) {
	v, size, step := a.Value(arg.Input), a.Int(arg.SizeInt), a.Int(arg.StepInt)
	d, err := wrapDim(a.Int(arg.Dimension), len(v.Shape()))
	if err != nil {
		return layout{}, err
	}
	n, stride := 1, 1
	if len(v.Shape()) > 0 {
		n, stride = v.Shape()[d], v.Strides()[d]
	}
	switch {
	case size > n:
		return layout{}, op.RuntimeError("maximum size for tensor at dimension %d is %d but size is %d", d, n, size)
	case size < 0:
		return layout{}, op.RuntimeError("size is %d but must be non-negative", size)
	case step <= 0:
		return layout{}, op.RuntimeError("step is %d but must be > 0", step)
	}
	l := layout{shape: append(slices.Clone(v.Shape()), size), strides: append(slices.Clone(v.Strides()), stride)}
	if len(v.Shape()) > 0 {
		l.shape[d] = (n-size)/step + 1
		l.strides[d] *= step
	}
	return l, nil
}

// dimList returns an argument that is one int or a list.
func dimList(a op.Args, name op.IntsArg) []int {
	if i, ok := a.Any(name).(int); ok {
		return []int{i}
	}
	return a.Ints(name)
}

func moved(a op.Args) (layout, error) {
	v := a.Value(arg.Input)
	from, to := dimList(a, arg.SourceInts), dimList(a, arg.DestinationInts)
	if len(from) != len(to) {
		return layout{}, op.RuntimeError("movedim: Invalid source or destination dims: source has %d dimensions, destination %d", len(from), len(to))
	}
	n := len(v.Shape())
	order := slices.Repeat([]int{-1}, n)
	var taken []int
	for i := range from {
		s, err := wrapDim(from[i], n)
		if err != nil {
			return layout{}, err
		}
		d, err := wrapDim(to[i], n)
		if err != nil {
			return layout{}, err
		}
		if slices.Contains(taken, s) || n > 0 && order[d] >= 0 {
			return layout{}, op.RuntimeError("movedim: repeated dim in arguments 'source' or 'destination'")
		}
		if taken = append(taken, s); n > 0 {
			order[d] = s
		}
	}
	rest := slices.DeleteFunc(allDims(n), func(d int) bool { return slices.Contains(taken, d) })
	l := layout{shape: []int{}, strides: []int{}}
	for _, d := range order {
		if d < 0 {
			d, rest = rest[0], rest[1:]
		}
		l.shape, l.strides = append(l.shape, v.Shape()[d]), append(l.strides, v.Strides()[d])
	}
	return l, nil
}

func unflattenedShape(a op.Args) ([]int, error) {
	shape, sizes := a.Value(arg.Input).Shape(), slices.Clone(a.Ints(arg.Sizes))
	if len(shape) == 0 {
		return nil, op.IndexError("dimension specified as %d but tensor has no dimensions", a.Int(arg.Dim))
	}
	d, err := wrapDim(a.Int(arg.Dim), len(shape))
	if err != nil {
		return nil, err
	}
	if len(sizes) == 0 {
		return nil, op.RuntimeError("unflatten: argument 'sizes' must be non-empty")
	}
	known, hole := 1, -1
	for i, n := range sizes {
		if n == -1 {
			if hole >= 0 {
				return nil, op.RuntimeError("unflatten: only one dimension can be inferred: argument 'sizes' is %s", tensor.ShapeString(sizes))
			}
			hole = i
		} else {
			known *= n
		}
	}
	if hole >= 0 && known > 0 {
		sizes[hole] = shape[d] / known
		known *= sizes[hole]
	}
	if known != shape[d] {
		return nil, op.RuntimeError("unflatten: Provided sizes %s don't multiply up to the size of dim %d (%d) in the input tensor", tensor.ShapeString(a.Ints(arg.Sizes)), d, shape[d])
	}
	return slices.Concat(shape[:d], sizes, shape[d+1:]), nil
}

// checkAsStrided rejects lists that do not fit each other or the storage.
func checkAsStrided(a op.Args) error {
	size, stride := a.Ints(arg.Size), a.Ints(arg.Stride)
	if len(size) != len(stride) {
		return op.RuntimeError("mismatch in length of arguments 'size' and 'stride': %d and %d", len(size), len(stride))
	}
	for i, n := range size {
		if n < 0 {
			return op.RuntimeError("argument 'size' must not be negative: %s", tensor.ShapeString(size))
		}
		if stride[i] < 0 {
			return op.RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: %s", tensor.ShapeString(stride))
		}
	}
	if a.Int(arg.StorageOffset) < 0 {
		return op.RuntimeError("Tensor: invalid storage offset %d", a.Int(arg.StorageOffset))
	}
	return nil
}

// asStrided counts from the storage's start when an offset is given, which is
// the first element of every tensor but a view.
func asStrided(a op.Args) (layout, error) {
	v := a.Value(arg.Input)
	l := layout{shape: a.Ints(arg.Size), strides: a.Ints(arg.Stride), offset: a.Int(arg.StorageOffset)}
	room := tensor.Extent(v.Shape(), v.Strides())
	if t, ok := v.(interface {
		Offset() int
		Room() int
	}); ok {
		if a.Has(arg.StorageOffset) {
			l.offset -= t.Offset()
		}
		room = t.Room()/v.DType().Size() - t.Offset()
	}
	if tensor.NumElements(l.shape) > 0 && l.offset+tensor.Extent(l.shape, l.strides) > room {
		return layout{}, op.RuntimeError("setStorage: sizes %s, strides %s, storage offset %d are out of bounds for storage of %d elements",
			tensor.ShapeString(l.shape), tensor.ShapeString(l.strides), l.offset, room)
	}
	return l, nil
}
