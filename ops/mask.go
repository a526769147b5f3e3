package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// maskOps choose elements by truth values.
var maskOps = []*op.Def{
	{
		Sig:            "nonzero(Tensor input, *, bool as_tuple=False) -> Tensor",
		Names:          append(both("nonzero"), "torch.argwhere(input)", "Tensor.argwhere(input)"),
		Doc:            "The indices of the elements that are not zero, one row for each, in row-major order.",
		Traits:         op.NoGrad | op.Dynamic,
		NotSplittable:  dependsOnAll,
		Infer:          inferNonzero,
		Kernels:        []op.Kernel{{Name: "scan", Run: runNonzero}},
		SelectOverload: func(a op.Args) bool { return !a.Bool(arg.AsTuple) },
		Sample:         func(s *op.Sampler) []any { return []any{sampleIndex(s, s.Shape(0, 4), 2).Convert(s.DType)} },
		Tol:            exactTol("places in its input"),
	},
	{
		Sig:           "nonzero.tuple(Tensor input, *, bool as_tuple) -> Tensor[]",
		Names:         both("nonzero"),
		Doc:           "The indices of the elements that are not zero, one vector for each dimension.",
		Traits:        op.NoGrad | op.Dynamic,
		NotSplittable: dependsOnAll,
		Compose:       composePlaces(arg.Input),
		Sample:        sampleNonzeroTuple,
		Tol:           exactTol("places in its input"),
	},
	{
		Sig:           "where.nonzero(Tensor condition) -> Tensor[]",
		Names:         []string{"torch.where"},
		Doc:           "The indices of the elements that are not zero, one vector for each dimension.",
		Traits:        op.NoGrad | op.Dynamic,
		NotSplittable: dependsOnAll,
		Compose:       composePlaces(arg.Condition),
		Sample:        func(s *op.Sampler) []any { return []any{sampleIndex(s, s.Shape(0, 4), 2).Convert(s.DType)} },
		Tol:           exactTol("places in its input"),
	},
	{
		Sig:     "masked_select(Tensor input, Tensor mask) -> Tensor",
		SBP:     linear(arg.Input),
		Names:   both("masked_select"),
		Doc:     "The elements of input at which mask holds, in row-major order, both broadcast to one shape.",
		Traits:  op.Dynamic,
		Reject:  checkMask("masked_select"),
		Infer:   inferMaskedSelect,
		Kernels: []op.Kernel{{Name: "scan", Run: runMaskedSelect}},
		Grad:    op.Gradient(maskedSelectGrad),
		Sample:  sampleMaskedSelect,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "masked_scatter(Tensor input, Tensor mask, Tensor source) -> Tensor",
		SBP:     additive(arg.Input, arg.Source),
		Names:   both("masked_scatter"),
		Doc:     "A copy of input, broadcast with mask, in which the elements at which mask holds are the first ones of source, both in row-major order.",
		Reject:  firstError(checkMask("masked_scatter"), checkMaskedSource),
		Infer:   inferMaskedScatter,
		Kernels: []op.Kernel{{Name: "scan", Run: runMaskedScatter}},
		Grad:    maskedScatterGrad,
		Sample:  sampleMaskedScatter,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "masked_scatter.backward(Tensor grad, Tensor mask, int[] size) -> Tensor",
		SBP:     linear(arg.Grad),
		Doc:     "Gradient of masked_scatter with respect to its source: the elements of grad at which mask holds, then zeros, in a tensor of the given size.",
		Infer:   func(a op.Args) ([]op.Meta, error) { return one(a.Value(arg.Grad).DType(), a.Ints(arg.Size), nil), nil },
		Kernels: []op.Kernel{{Name: "scan", Run: runMaskedScatterBackward}},
		Grad:    op.GradientOf(arg.Grad, maskedScatterBackwardGrad),
		Sample:  sampleMaskedScatterBackward,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
}

func inferNonzero(a op.Args) ([]op.Meta, error) {
	t, err := elementsOf(a.Value(arg.Input), "input")
	if err != nil {
		return nil, err
	}
	n := kernel.CountTrue(t.Convert(tensor.Bool))
	return one(tensor.I64, []int{n, t.Dim()}, []int{1, max(n, 1)}), nil
}

func runNonzero(c *op.Run) error {
	x := c.Tensor(arg.Input)
	kernel.Coordinates(c.Out[0], kernel.TruePlaces(x.Convert(tensor.Bool)), x.Shape())
	return nil
}

func sampleNonzeroTuple(s *op.Sampler) []any {
	return []any{sampleIndex(s, s.Shape(0, 4), 2).Convert(s.DType), op.Kw("as_tuple", true)}
}

func inferMaskedSelect(a op.Args) ([]op.Meta, error) {
	mask, err := broadcastMask(a)
	if err != nil {
		return nil, err
	}
	return one(a.Value(arg.Input).DType(), []int{kernel.CountTrue(mask)}, nil), nil
}

func runMaskedSelect(c *op.Run) error {
	s, err := masked(c.Args, c.Tensor(arg.Input))
	if err == nil {
		s.Take(c.Out[0])
	}
	return err
}

func maskedSelectGrad(g *op.Grad) op.Value {
	shape, err := broadcastShape(g.Value(arg.Input), g.Value(arg.Mask))
	if err != nil {
		op.Fail(err)
	}
	return g.Op("masked_scatter", g.Expand(zeros(g, g.Value(arg.Input)), shape), g.Value(arg.Mask), g.G())
}

func sampleMaskedSelect(s *op.Sampler) []any {
	x, mask := sampleMasked(s)
	return []any{x, mask}
}

func inferMaskedScatter(a op.Args) ([]op.Meta, error) {
	shape, err := broadcastShape(a.Value(arg.Input), a.Value(arg.Mask))
	return one(a.Value(arg.Input).DType(), shape, nil), err
}

func runMaskedScatter(c *op.Run) error {
	out, src := c.Out[0], c.Tensor(arg.Source)
	x, err := c.Tensor(arg.Input).Expand(out.Shape()...)
	if err != nil {
		return err
	}
	out.CopyFrom(x)
	s, err := masked(c.Args, out)
	if err != nil {
		return err
	}
	if n := s.View.Len(); n > src.Len() {
		return op.RuntimeError("argument 'source' has %d elements, fewer than the %d at which 'mask' holds", src.Len(), n)
	}
	s.Put(src.Reshape(src.Len()).Narrow(0, 0, s.View.Len(), 1))
	return nil
}

func maskedScatterGrad(g *op.Grad) {
	mask := g.Value(arg.Mask)
	g.To(arg.Input, func() op.Value { return g.Op("where", g.Cast(mask, tensor.Bool), 0.0, g.G()) })
	g.To(arg.Source, func() op.Value { return g.Op("masked_scatter.backward", g.G(), mask, g.Value(arg.Source).Shape()) })
}

func sampleMaskedScatter(s *op.Sampler) []any {
	x, mask := sampleMasked(s)
	return []any{x, mask, s.Tensor(-2, 2, 5, 5, 5)}
}

func runMaskedScatterBackward(c *op.Run) error {
	out := c.Out[0]
	clear(out.Storage())
	s, err := maskedAt(c.Tensor(arg.Grad), c.Tensor(arg.Mask))
	if err == nil {
		s.Take(out.Reshape(out.Len()).Narrow(0, 0, s.View.Len(), 1))
	}
	return err
}

func maskedScatterBackwardGrad(g *op.Grad) op.Value {
	return g.Op("masked_scatter", zeros(g, g.Value(arg.Grad)), g.Value(arg.Mask), g.G())
}

func sampleMaskedScatterBackward(s *op.Sampler) []any {
	x, _ := sampleMasked(s)
	return []any{x, sampleIndex(s, x.Shape(), 2).Convert(tensor.Bool), []int{x.Len() + s.Index(3)}}
}

func checkMask(name string) func(op.Args) error {
	return func(a op.Args) error {
		if v := a.Value(arg.Mask); v.DType() != tensor.Bool {
			return op.RuntimeError("expected argument 'mask' to have dtype bool, not %s", v.DType())
		}
		return nil
	}
}

func checkMaskedSource(a op.Args) error {
	if d, v := a.Value(arg.Input).DType(), a.Value(arg.Source).DType(); d != v {
		return op.RuntimeError("expected argument 'source' to have the dtype of 'input', %s, not %s", d, v)
	}
	return nil
}

// composePlaces returns the columns of nonzero; a number counts as a vector of one element.
func composePlaces(name op.TensorArg) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		x := a.Value(name)
		places := b.Op("nonzero", x)
		if len(x.Shape()) == 0 {
			return vals(b.Op("sum", places, op.Kw("dim", []int{1})))
		}
		return b.All("unbind", places, 1)
	}
}

// broadcastMask returns the mask in the shape that it has with the input.
func broadcastMask(a op.Args) (*tensor.Tensor, error) {
	shape, err := broadcastShape(a.Value(arg.Input), a.Value(arg.Mask))
	if err != nil {
		return nil, err
	}
	mask, err := elementsOf(a.Value(arg.Mask), "mask")
	if err != nil {
		return nil, err
	}
	return mask.Convert(tensor.Bool).Expand(shape...)
}

// masked selects the elements of t, broadcast with the mask, at which it holds.
func masked(a op.Args, t *tensor.Tensor) (kernel.Selection, error) {
	mask, err := broadcastMask(a)
	if err != nil {
		return kernel.Selection{}, err
	}
	if t, err = t.Expand(mask.Shape()...); err != nil {
		return kernel.Selection{}, err
	}
	return maskedAt(t, mask)
}

func maskedAt(t, mask *tensor.Tensor) (kernel.Selection, error) {
	mask, err := mask.Convert(tensor.Bool).Expand(t.Shape()...)
	if err != nil {
		return kernel.Selection{}, err
	}
	places := kernel.TruePlaces(mask)
	offsets := tensor.New(tensor.I64, len(places))
	for i, at := range places {
		offsets.SetInt(i, placeOf(t, int64(at)))
	}
	view, err := t.AsStrided([]int{len(places)}, []int{0}, t.Offset())
	return kernel.Selection{View: view, Offsets: offsets}, err
}

// sampleMasked draws a tensor and a mask that is broadcast with it either way.
func sampleMasked(s *op.Sampler) (x, mask *tensor.Tensor) {
	shape := s.Shape(0, 3)
	of := slices.Clone(shape)
	if len(shape) > 0 && s.Bool() {
		of[s.Index(len(of))] = 1
	}
	if len(shape) > 0 && s.Index(3) == 0 {
		shape = slices.Clone(shape)
		shape[s.Index(len(shape))] = 1
	}
	return s.Tensor(-2, 2, shape...), sampleIndex(s, of, 2).Convert(tensor.Bool)
}

// matrixOps read and write diagonals and triangles.
var matrixOps = []*op.Def{
	triangleDef("tril", "below and on", false),
	triangleDef("triu", "above and on", true),
	{
		Sig:    "trace(Tensor input) -> Tensor",
		SBP:    linear(arg.Input),
		Names:  both("trace"),
		Doc:    "Sum of the diagonal of a matrix; integers give int64.",
		Reject: checkTrace,
		Infer:  inferTrace,
		Kernels: []op.Kernel{
			traceKernel("integer", integerTypes, func(out, in *tensor.Tensor, dims []int, _ float64) { kernel.Sum[int64, int64](out, in, dims, 1) }),
			traceKernel("float32", float32Set, kernel.Sum[float32, float64]),
			traceKernel("float64", float64Set, kernel.Sum[float64, float64]),
			traceKernel("complex", complexTypes, kernel.SumComplex),
		},
		Grad:   op.Gradient(traceGrad),
		Sample: sampleTrace,
		Tol:    ownMagnitude(accumulating(func(a op.Args) int { return slices.Min(a.Value(arg.Input).Shape()) }, "a sum of the diagonal")),
	},
	{
		Sig:     "diag(Tensor input, int diagonal=0) -> Tensor",
		SBP:     linear(arg.Input),
		Names:   both("diag"),
		Doc:     "The diagonal of a matrix, diagonal steps above the main one; of a vector, the square matrix with that diagonal and zeros elsewhere.",
		Reject:  checkDiag,
		Infer:   inferDiag,
		Kernels: []op.Kernel{{Name: "copy", Run: runDiag}},
		Grad:    op.Gradient(diagGrad),
		Sample:  sampleDiag,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "diag.backward(Tensor grad, int[] size, int diagonal) -> Tensor",
		SBP:     linear(arg.Grad),
		Doc:     "A matrix of zeros with the given diagonal.",
		Infer:   inferDiagBackward,
		Kernels: []op.Kernel{{Name: "copy", Run: runDiagBackward}},
		Grad:    op.GradientOf(arg.Grad, func(g *op.Grad) op.Value { return g.Op("diag", g.G(), g.Int(arg.Diagonal)) }),
		Sample:  sampleDiagBackward,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
}

func checkTrace(a op.Args) error {
	if n := len(a.Value(arg.Input).Shape()); n != 2 {
		return op.RuntimeError("expected argument 'input' to be a matrix, but got a tensor with %d dimensions", n)
	}
	return rejectTypes(arg.Input, tensor.Bool)(a)
}

func inferTrace(a op.Args) ([]op.Meta, error) {
	d := a.Value(arg.Input).DType()
	if d.IsInt() {
		d = tensor.I64
	}
	return one(d, []int{}, nil), nil
}

func traceGrad(g *op.Grad) op.Value {
	shape := g.Value(arg.Input).Shape()
	return g.Op("triu", g.Op("tril", g.Expand(g.G(), shape)))
}

func sampleTrace(s *op.Sampler) []any {
	rows, more := 1+s.Index(4), s.Index(3) // PyTorch 1.13 gives a wrong gradient to more rows than columns
	return []any{s.Tensor(-2, 2, rows, rows+more)}
}

func inferDiag(a op.Args) ([]op.Meta, error) {
	shape := a.Value(arg.Input).Shape()
	if len(shape) == 1 {
		n := shape[0] + max(a.Int(arg.Diagonal), -a.Int(arg.Diagonal))
		return one(a.Value(arg.Input).DType(), []int{n, n}, nil), nil
	}
	_, _, n := matrixDiagonal(shape, a.Int(arg.Diagonal))
	return one(a.Value(arg.Input).DType(), []int{n}, nil), nil
}

func runDiag(c *op.Run) error {
	x, out := c.Tensor(arg.Input), c.Out[0]
	if x.Dim() == 2 {
		out.CopyFrom(diagonalView(x, c.Int(arg.Diagonal)))
		return nil
	}
	clear(out.Storage())
	diagonalView(out, c.Int(arg.Diagonal)).CopyFrom(x)
	return nil
}

func diagGrad(g *op.Grad) op.Value {
	x, k := g.Value(arg.Input), g.Int(arg.Diagonal)
	if len(x.Shape()) == 1 {
		return g.Op("diag", g.G(), k)
	}
	return g.Op("diag.backward", g.G(), x.Shape(), k)
}

func sampleDiag(s *op.Sampler) []any {
	shape := s.Shape(1, 2)
	return []any{s.Tensor(-2, 2, shape...), s.Int(-1, 2)}
}

func inferDiagBackward(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Grad).DType(), a.Ints(arg.Size), nil), nil
}

func runDiagBackward(c *op.Run) error {
	clear(c.Out[0].Storage())
	diagonalView(c.Out[0], c.Int(arg.Diagonal)).CopyFrom(c.Tensor(arg.Grad))
	return nil
}

func sampleDiagBackward(s *op.Sampler) []any {
	size, k := s.Dims(2), int(s.Int(-1, 2))
	_, _, n := matrixDiagonal(size, k)
	return []any{s.Tensor(-2, 2, n), size, k}
}

func triangleDef(name, where string, upper bool) *op.Def {
	return &op.Def{
		Sig:     name + "(Tensor input, int diagonal=0) -> Tensor",
		InPlace: op.InPlaceRules{Expanded: true},
		SBP:     anyOf(linear(arg.Input), planes(2, arg.Input), strips),
		Names:   both(name),
		Doc:     "The elements of each matrix, the last two dimensions, that lie " + where + " a diagonal, that many steps above the main one; zeros elsewhere.",
		Traits:  op.Idempotent,
		Reject:  checkTriangle,
		Infer:   inferLike(arg.Input),
		Kernels: []op.Kernel{{Name: "copy", Run: func(c *op.Run) error {
			c.Out[0].CopyFrom(c.Tensor(arg.Input))
			kernel.Triangle(c.Out[0], c.Int(arg.Diagonal), upper)
			return nil
		}}},
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Op(name, g.G(), g.Int(arg.Diagonal)) }),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(2, 4)...), s.Int(-6, 7)} },
		Tol:    ownMagnitude(exactTol("copies its inputs")),
	}
}

// strips splits the rows or the columns of matrices: a rank's diagonal is further up by
// its first row, or further down by its first column.
func strips(a op.Args) []op.Sharding {
	dims := len(a.Value(arg.Input).Shape())
	strip := func(axis, up int) op.Sharding {
		s := splits(map[op.TensorArg]int{arg.Input: axis}, op.S(axis))
		s.Own = func(a op.Args, r op.Rank) map[op.Handle]any {
			shape := a.Value(arg.Input).Shape()
			start, _ := r.Piece(shape[axis])
			k := min(max(a.Int(arg.Diagonal), -shape[dims-2]), shape[dims-1]) // beyond them nothing changes
			return map[op.Handle]any{arg.Diagonal: k + up*start}
		}
		return s
	}
	return []op.Sharding{strip(dims-2, 1), strip(dims-1, -1)}
}

func checkTriangle(a op.Args) error {
	if n := len(a.Value(arg.Input).Shape()); n < 2 {
		return op.RuntimeError("expected argument 'input' to have at least 2 dimensions, but it has %d", n)
	}
	return nil
}

func traceKernel(name string, ds []tensor.DType, sum func(out, in *tensor.Tensor, dims []int, by float64)) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		sum(c.Out[0], diagonalView(c.Tensor(arg.Input), 0), []int{0}, 1)
		return nil
	}}
}

func checkDiag(a op.Args) error {
	if n := len(a.Value(arg.Input).Shape()); n != 1 && n != 2 {
		return op.RuntimeError("expected argument 'input' to be a matrix or a vector, but it has %d dimensions", n)
	}
	return nil
}

// matrixDiagonal returns where a diagonal begins and how long it is.
func matrixDiagonal(shape []int, k int) (row, column, n int) {
	row, column = max(-k, 0), max(k, 0)
	return row, column, max(min(shape[0]-row, shape[1]-column), 0)
}

func diagonalView(t *tensor.Tensor, k int) *tensor.Tensor {
	row, column, n := matrixDiagonal(t.Shape(), k)
	rs, cs := t.Strides()[0], t.Strides()[1]
	at := t.Offset()
	if n > 0 {
		at += row*rs + column*cs
	}
	v, err := t.AsStrided([]int{n}, []int{rs + cs}, at)
	if err != nil {
		panic(err)
	}
	return v
}
