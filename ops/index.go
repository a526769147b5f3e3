package ops

import (
	"errors"
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var indexOps = slices.Concat(embeddingOps, embeddingBagOps, alongOps, advancedOps, flatIndexOps, maskOps, matrixOps)

// alongOps choose entries of one dimension by an index vector.
var alongOps = []*op.Def{
	{
		Sig:     "index_select(Tensor input, int dim, Tensor index) -> Tensor",
		SBP:     anyOf(linear(arg.Input), alongOthers(arg.Input), selectedRows(arg.Index)),
		Names:   both("index_select"),
		Doc:     "The entries index[0], index[1], … of dimension dim.",
		Reject:  checkSelect,
		Infer:   func(a op.Args) ([]op.Meta, error) { return one(a.Value(arg.Input).DType(), selectedShape(a), nil), nil },
		Kernels: []op.Kernel{{Name: "index", Run: runIndexSelect}},
		Grad:    op.Gradient(indexSelectGrad),
		Sample:  sampleIndexSelect,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "index_add(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
		SBP:     anyOf(additive(arg.Input, arg.Source), alongOthers(arg.Input, arg.Source), addedAlong(arg.Index, arg.Source)),
		Names:   both("index_add"),
		Doc:     "A copy of input with alpha times the entries of source added along dim: for dim 1 of three, out[i,index[j],k] += alpha·source[i,j,k].",
		Reject:  firstError(checkIndexAdd, checkEntryAlpha),
		Infer:   inferScatter,
		Kernels: []op.Kernel{{Name: "index", Run: runIndexAdd}},
		Grad:    indexAddGrad,
		Sample:  sampleIndexAdd,
		Tol:     addedInPlace(ownMagnitude(accumulating(entryTerms, "a sum of at most as many elements as index has"))),
	},
	{
		Sig:     "index_copy(Tensor input, int dim, Tensor index, Tensor source) -> Tensor",
		SBP:     anyOf(additive(arg.Input, arg.Source), alongOthers(arg.Input, arg.Source)),
		Names:   both("index_copy"),
		Doc:     "A copy of input with entries of dim replaced: for dim 1 of three, out[i,index[j],k] = source[i,j,k].",
		Reject:  checkIndexCopy,
		Infer:   inferScatter,
		Kernels: []op.Kernel{{Name: "index", Run: runIndexCopy}},
		Grad:    indexCopyGrad,
		Sample:  func(s *op.Sampler) []any { return sampleEntries(s, true) },
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "index_fill(Tensor input, int dim, Tensor index, Tensor value) -> Tensor",
		InPlace: op.InPlaceRules{Expanded: true},
		SBP:     anyOf(additive(arg.Input, arg.ValueTensor), alongOthers(arg.Input)),
		More:    []string{"index_fill(Tensor input, int dim, Tensor index, Scalar value) -> Tensor"},
		Names:   both("index_fill"),
		Doc:     "A copy of input with the entries index[0], index[1], … of dimension dim set to value.",
		Reject:  checkIndexFill,
		Long:    []op.Handle{arg.Index},
		Infer:   inferIndexFill,
		Kernels: []op.Kernel{{Name: "index", Run: runIndexFill}},
		Grad:    indexFillGrad,
		Sample:  sampleIndexFill,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "index_reduce(Tensor input, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
		Names:   both("index_reduce"),
		Doc:     "A copy of input with the entries of source reduced into it along dim by prod, mean, amax or amin; the entries of input that index names take part with include_self only.",
		SBP:     alongOthers(arg.Input, arg.Source),
		Reject:  firstError(checkIndexAdd, checkReduction("prod", "mean", "amax", "amin")),
		Infer:   inferScatter,
		Kernels: []op.Kernel{{Name: "index", Run: runIndexReduce}},
		Grad:    reductionGrad(indexWriter),
		Sample:  sampleIndexReduce,
		Tol:     addedInPlace(accumulating(entryTerms, "combines at most as many elements as index has")),
	},
	{
		Magnitude: "scatter.reduce",
		Sig:       "scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
		Names:     both("scatter_reduce"),
		Doc:       "A copy of input with the elements of src reduced into it along dim by sum, prod, mean, amax or amin, as scatter_add does for sum; the elements of input that index names take part with include_self only.",
		SBP:       alongOthers(arg.Input, arg.Index, arg.Src),
		Reject:    firstError(checkReduction("sum", "prod", "mean", "amax", "amin"), checkScatter),
		Infer:     inferScatter,
		Kernels:   []op.Kernel{{Name: "index", Run: runScatterReduce}},
		Grad:      reductionGrad(scatterWriter),
		Sample:    sampleScatterReduce,
		Tol:       addedInPlace(accumulating(entryTerms, "combines at most as many elements as index has")),
	},
	{
		Sig:     "scatter.reduce(Tensor input, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
		Names:   both("scatter"),
		Doc:     "A copy of input with elements of src added or multiplied into it along dim. PyTorch has no gradient of it.",
		SBP:     alongOthers(arg.Input, arg.Index, arg.Src),
		Reject:  firstError(checkReduction("add", "multiply"), checkScatter),
		Infer:   inferScatter,
		Kernels: []op.Kernel{{Name: "index", Run: func(c *op.Run) error { return reduceElements(c, scatterReduction(c.Args), true, c.Tensor(arg.Src)) }}},
		Grad:    noDerivative("scatter with argument 'reduce'", arg.Input, arg.Src),
		Fixed:   []op.Handle{arg.Input, arg.Index, arg.Src},
		Sample: func(s *op.Sampler) []any {
			return append(sampleScatter(s), op.Kw("reduce", []string{"add", "multiply"}[s.Index(2)]))
		},
		Tol: addedInPlace(ownMagnitude(accumulating(entryTerms, "combines at most as many elements as index has"))),
	},
	{
		Sig:     "scatter.value(Tensor input, int dim, Tensor index, Scalar value, *, str? reduce=None) -> Tensor",
		Names:   both("scatter"),
		Doc:     "A copy of input with a number written, added or multiplied into it along dim.",
		SBP:     alongOthers(arg.Input, arg.Index),
		Reject:  checkScatterValue,
		Infer:   inferScatter,
		Kernels: []op.Kernel{{Name: "index", Run: runScatterValue}},
		Grad:    op.Gradient(scatterValueGrad),
		Sample:  sampleScatterValue,
		Tol:     addedInPlace(ownMagnitude(accumulating(entryTerms, "combines at most as many elements as index has"))),
	},
}

func runIndexSelect(c *op.Run) error {
	s, err := chosenEntries(c.Tensor(arg.Input), dimOf(c.Args), c.Tensor(arg.Index))
	if err == nil {
		s.Take(c.Out[0])
	} else if dimOf(c.Args) == 1 { // which PyTorch selects by a function of its own
		return op.RuntimeError("%v", err)
	}
	return err
}

func indexSelectGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	return g.Op("index_add", zeros(g, x), dimOf(g.Args), g.Value(arg.Index), g.G())
}

func sampleIndexSelect(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	return []any{s.Tensor(-2, 2, shape...), d - s.Index(2)*len(shape), sampleIndex(s, []int{s.Index(5)}, shape[d])}
}

func runIndexAdd(c *op.Run) error {
	return reduceEntries(c, kernel.ReduceSum, true, c.Scalar(arg.Alpha))
}

func indexAddGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value { return g.G() })
	g.To(arg.Source, func() op.Value { return g.Mul(entries(g), g.Scalar(arg.Alpha).Any()) })
}

func sampleIndexAdd(s *op.Sampler) []any {
	args := sampleEntries(s, false)
	if s.Bool() {
		args = append(args, op.Kw("alpha", s.Int(-3, 4)))
	}
	return args
}

func runIndexCopy(c *op.Run) error {
	c.Out[0].CopyFrom(c.Tensor(arg.Input))
	if holdNothing(c.Out[0], dimOf(c.Args)) {
		return nil
	}
	s, err := chosenEntries(c.Out[0], dimOf(c.Args), c.Tensor(arg.Index))
	if err == nil {
		s.Put(reshapedTo(c.Tensor(arg.Source), s.View.Shape()))
	}
	return err
}

// holdNothing reports whether the entries of a dimension have no elements: PyTorch does not
// look at the indices of entries to write then.
func holdNothing(t *tensor.Tensor, dim int) bool {
	return t.Dim() > 1 && tensor.NumElements(reducedShape(t.Shape(), []int{dim}, false)) == 0
}

func indexCopyGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value { return g.Op("index_fill", g.G(), dimOf(g.Args), g.Value(arg.Index), 0.0) })
	g.To(arg.Source, func() op.Value { return entries(g) })
}

func inferIndexFill(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	return one(v.DType(), v.Shape(), denseStrides(v)), nil
}

func runIndexFill(c *op.Run) error {
	out := c.Out[0]
	out.CopyFrom(c.Tensor(arg.Input))
	if holdNothing(out, dimOf(c.Args)) {
		return nil
	}
	if sizeAlong(out, dimOf(c.Args)) == 0 && c.Tensor(arg.Index).Len() > 0 {
		return op.RuntimeError("argument 'index' names entries of dimension %d, which is empty", dimOf(c.Args))
	}
	if v := c.Tensor(arg.ValueTensor); v != nil && v.DType().IsFloat() {
		if err := fits(op.ScalarOf(v.Float(0)), out.DType()); err != nil {
			return err
		}
	}
	index, err := wrappedIndex(c.Tensor(arg.Index), sizeAlong(out, dimOf(c.Args)), dimOf(c.Args))
	if err != nil {
		return err
	}
	s, err := chosenEntries(out, dimOf(c.Args), index)
	if err == nil {
		s.Put(repeated(operand(c.Args, arg.ValueTensor, out.DType()), s.View.Shape()))
	}
	return err
}

func indexFillGrad(g *op.Grad) {
	d, index := dimOf(g.Args), g.Value(arg.Index)
	g.To(arg.Input, func() op.Value { return g.Op("index_fill", g.G(), d, index, 0.0) })
	g.To(arg.ValueTensor, func() op.Value { return g.Op("sum", g.Sub(g.G(), g.Op("index_fill", g.G(), d, index, 0.0))) })
}

func sampleIndexFill(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	args := []any{s.Tensor(-2, 2, shape...), d, signedIndex(s, shape[d], s.Index(4)), 3.0}
	if s.Bool() {
		args[2], args[3] = sampleIndex(s, []int{2}, shape[d]), s.Tensor(-2, 2) // PyTorch's gradient of value takes no negative index
	}
	return args
}

func runIndexReduce(c *op.Run) error {
	return reduceEntries(c, kernel.Reduction(c.Str(arg.ReduceStr)), c.Bool(arg.IncludeSelf), op.ScalarOf(int64(1)))
}

func sampleIndexReduce(s *op.Sampler) []any {
	args := sampleEntries(s, false)
	return append(distinctPair(s, args, 3), sampleReduction(s, "prod", "mean", "amax", "amin"), op.Kw("include_self", s.Bool()))
}

func runScatterReduce(c *op.Run) error {
	return reduceElements(c, kernel.Reduction(c.Str(arg.ReduceStr)), c.Bool(arg.IncludeSelf), c.Tensor(arg.Src))
}

func sampleScatterReduce(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	args := distinctPair(s, []any{s.Tensor(-2, 2, shape...), d, sampleIndex(s, shape, shape[d]), s.Tensor(-2, 2, shape...)}, 3)
	return append(args, sampleReduction(s, "sum", "prod", "mean", "amax", "amin"), op.Kw("include_self", s.Bool()))
}

func scatterValueGrad(g *op.Grad) op.Value {
	if g.Has(arg.Reduce) {
		noDerivative("scatter with argument 'reduce'", arg.Input)(g)
	}
	return g.Op("scatter.value", g.G(), dimOf(g.Args), g.Value(arg.Index), 0.0)
}

func sampleScatterValue(s *op.Sampler) []any {
	args := sampleScatter(s)
	return append(args[:3], s.Float(0, 2))
}

// sizeAlong is the size of a dimension; that of a 0-d tensor is 1.
func sizeAlong(v op.Value, d int) int {
	if len(v.Shape()) == 0 {
		return 1
	}
	return v.Shape()[d]
}

// indexFault gives an index out of range the class IndexError.
func indexFault(err error) error {
	var bad *kernel.BadIndex
	if errors.As(err, &bad) {
		return op.IndexError("argument 'index': %v", bad)
	}
	return err
}

func notUnderstood(name, param string) error {
	return fmt.Errorf("%s: argument '%s' is not supported: %w", name, param, op.ErrUnknown)
}

// checkVector checks an index vector of one of the dtypes.
func checkVector(a op.Args, ds ...tensor.DType) error {
	index := a.Value(arg.Index)
	if _, err := wrapDim(a.Int(arg.Dim), len(a.Value(arg.Input).Shape())); err != nil {
		return err
	}
	if n := len(index.Shape()); n > 1 {
		return op.IndexError("argument 'index' is supposed to be a vector, but has %d dimensions", n)
	}
	if !slices.Contains(ds, index.DType()) {
		return op.RuntimeError("expected dtype %s for argument 'index', but got %s", typeNames(ds), index.DType())
	}
	return nil
}

func checkSelect(a op.Args) error {
	if len(a.Value(arg.Input).Shape()) == 0 && tensor.NumElements(a.Value(arg.Index).Shape()) == 0 {
		return op.RuntimeError("argument 'index' must name an element of a scalar, but is empty")
	}
	return checkVector(a, indexTypes...)
}

func selectedShape(a op.Args) []int {
	shape := slices.Clone(a.Value(arg.Input).Shape())
	if len(shape) > 0 {
		shape[dimOf(a)] = tensor.NumElements(a.Value(arg.Index).Shape())
	}
	return shape
}

// checkSource checks the counts and the dtype of source.
func checkSource(a op.Args, counts func(format string, args ...any) *op.Error) error {
	x, src, n := a.Value(arg.Input), a.Value(arg.Source), tensor.NumElements(a.Value(arg.Index).Shape())
	d := dimOf(a)
	if src.DType() != x.DType() {
		return op.RuntimeError("expected argument 'source' to have the dtype of 'input', %s, not %s", x.DType(), src.DType())
	}
	if len(x.Shape()) == 0 && len(src.Shape()) > 1 {
		return op.RuntimeError("argument 'source' must have at most one dimension where 'input' is a scalar, not %d", len(src.Shape()))
	}
	if len(src.Shape()) == 0 && n != 1 {
		return op.IndexError("argument 'index' must have one element where 'source' is a scalar, not %d", n)
	}
	if len(src.Shape()) <= d && len(src.Shape()) > 0 || n != sizeAlong(src, d) {
		return counts("the number of elements of argument 'index', %d, must be the size of 'source' in dimension %d", n, d)
	}
	if len(x.Shape()) == 0 || len(src.Shape()) == 0 && len(x.Shape()) == 1 {
		return nil
	}
	want := slices.Clone(x.Shape())
	want[d] = n
	if !slices.Equal(want, src.Shape()) {
		return op.RuntimeError("expected argument 'source' of shape %s, but got %s", tensor.ShapeString(want), tensor.ShapeString(src.Shape()))
	}
	return nil
}

func checkIndexAdd(a op.Args) error {
	if err := checkVector(a, indexTypes...); err != nil {
		return err
	}
	if d := dimOf(a); len(a.Value(arg.Source).Shape()) == 0 && len(a.Value(arg.Input).Shape()) > 1 {
		if d == 0 {
			return op.IndexError("argument 'source' has no dimension 0")
		}
		return op.RuntimeError("argument 'source' has no dimension %d", d)
	}
	x, src, d := a.Value(arg.Input), a.Value(arg.Source), dimOf(a)
	if n := tensor.NumElements(a.Value(arg.Index).Shape()); sizeAlong(x, d) == 0 && n > 0 && len(src.Shape()) > d && n == sizeAlong(src, d) {
		return op.IndexError("argument 'index' names %d entries of dimension %d, which is empty", n, d)
	}
	return checkSource(a, op.RuntimeError)
}

func checkEntryAlpha(a op.Args) error {
	return fitsReal(a.Scalar(arg.Alpha), a.Value(arg.Input).DType())
}

func checkIndexCopy(a op.Args) error {
	if err := checkVector(a, tensor.I64); err != nil {
		return err
	}
	x, src, d := a.Value(arg.Input).Shape(), a.Value(arg.Source).Shape(), dimOf(a)
	if len(x) > 0 && len(src) > 0 {
		if len(x) != len(src) {
			return op.IndexError("when 'source' and 'input' are not scalars, their dimensionality must match: %d and %d", len(src), len(x))
		}
		if !slices.Equal(reducedShape(x, []int{d}, false), reducedShape(src, []int{d}, false)) {
			return op.RuntimeError("argument 'source' of shape %s must have the sizes of 'input', %s, in all dimensions but %d", tensor.ShapeString(src), tensor.ShapeString(x), d)
		}
	}
	if sizeAlong(a.Value(arg.Input), d) == 0 && tensor.NumElements(a.Value(arg.Index).Shape()) > 0 && tensor.NumElements(src) > 0 {
		return op.RuntimeError("argument 'index' names entries of dimension %d, which is empty", d)
	}
	return checkSource(a, op.IndexError)
}

func checkIndexFill(a op.Args) error {
	index, value := a.Value(arg.Index), a.Value(arg.ValueTensor)
	switch {
	case index.DType() != tensor.I64:
		return op.IndexError("expected dtype int64 for argument 'index', but got %s", index.DType())
	case len(index.Shape()) > 1:
		return op.RuntimeError("argument 'index' has to be a vector or scalar")
	case value != nil && value.DType().IsComplex() && !a.Value(arg.Input).DType().IsComplex():
		return op.RuntimeError("argument 'value' of dtype %s cannot be converted to %s", value.DType(), a.Value(arg.Input).DType())
	case value != nil && len(value.Shape()) > 0:
		return op.RuntimeError("argument 'value' must be 0-dimensional, but has %d dimensions", len(value.Shape()))
	}
	if _, err := wrapDim(a.Int(arg.Dim), len(a.Value(arg.Input).Shape())); err != nil {
		return err
	}
	if value != nil {
		return nil
	}
	return fitsReal(a.Scalar(arg.Value), a.Value(arg.Input).DType())
}

// fitsReal is fits that also rejects a complex number for a real tensor.
func fitsReal(s op.Scalar, d tensor.DType) error {
	if s.DType().IsComplex() && !d.IsComplex() {
		return op.RuntimeError("value %v cannot be converted to type %s without overflow", s.Any(), d)
	}
	return fits(s, d)
}

// checkReduction checks that the argument reduce is one of the names.
func checkReduction(names ...string) func(op.Args) error {
	return func(a op.Args) error {
		r := a.Str(arg.ReduceStr)
		if !slices.Contains(names, r) {
			return op.RuntimeError("argument 'reduce' must be one of %v, but is '%s'", names, r)
		}
		switch d := a.Value(arg.Input).DType(); {
		case d.IsComplex() && r != "add" && r != "multiply", d == tensor.Bool && r == "mean":
			return op.RuntimeError("reduce='%s' is not implemented for argument 'input' of dtype %s", r, d)
		}
		return nil
	}
}

func checkScatterValue(a op.Args) error {
	if a.Has(arg.Reduce) {
		if err := checkReduction("add", "multiply")(a); err != nil {
			return err
		}
	}
	if err := checkIndex(arg.Input)(a); err != nil {
		return err
	}
	return fitsReal(a.Scalar(arg.Value), a.Value(arg.Input).DType())
}

// chosenEntries selects the entries of dimension d that a vector names.
func chosenEntries(t *tensor.Tensor, d int, index *tensor.Tensor) (kernel.Selection, error) {
	if t.Dim() == 0 {
		t, _ = t.View(1)
	}
	n, size, step := index.Len(), t.Shape()[d], t.Strides()[d]
	if size == 0 && n > 0 && t.Dim() > 1 {
		return kernel.Selection{}, op.RuntimeError("argument 'index' names %d entries of dimension %d, which is empty", n, d)
	}
	offsets := index.Convert(tensor.I64)
	for i, v := range tensor.Data[int64](offsets)[:n] {
		if v < 0 || v >= int64(size) {
			return kernel.Selection{}, indexFault(&kernel.BadIndex{Index: int(v), Dim: d, Size: size})
		}
		offsets.SetInt(i, v*int64(step))
	}
	shape, strides := slices.Clone(t.Shape()), slices.Clone(t.Strides())
	shape[d], strides[d] = n, 0
	view, err := t.AsStrided(shape, strides, t.Offset())
	if err != nil {
		return kernel.Selection{}, err
	}
	along := make([]int, len(shape))
	along[d] = 1
	offsets, err = offsets.AsStrided(shape, along, 0)
	return kernel.Selection{View: view, Offsets: offsets}, err
}

// chosenElements selects the elements along d that an index tensor names, as
// gather does.
func chosenElements(t *tensor.Tensor, d int, index *tensor.Tensor) (kernel.Selection, error) {
	if t.Dim() == 0 {
		t, _ = t.View(1)
	}
	if index.Dim() == 0 {
		index, _ = index.View(1)
	}
	offsets, size, step := index.Convert(tensor.I64), t.Shape()[d], t.Strides()[d]
	data := tensor.Data[int64](offsets)
	for i, v := range data[:index.Len()] {
		if v < 0 || v >= int64(size) {
			return kernel.Selection{}, badIndex(&kernel.BadIndex{Index: int(v), Dim: d, Size: size})
		}
		data[i] = v * int64(step)
	}
	strides := slices.Clone(t.Strides())
	strides[d] = 0
	view, err := t.AsStrided(index.Shape(), strides, t.Offset())
	return kernel.Selection{View: view, Offsets: offsets}, err
}

// wrappedIndex counts negative indices from the end.
func wrappedIndex(index *tensor.Tensor, size, d int) (*tensor.Tensor, error) {
	out := index.Clone()
	data := tensor.Data[int64](out)
	for i, v := range data[:out.Len()] {
		if v < int64(-size) || v >= int64(size) {
			return nil, indexFault(&kernel.BadIndex{Index: int(v), Dim: d, Size: size})
		}
		if v < 0 {
			data[i] += int64(size)
		}
	}
	return out, nil
}

// reshapedTo returns t in a shape that may have one dimension of size 1 more or less.
func reshapedTo(t *tensor.Tensor, shape []int) *tensor.Tensor { return t.Reshape(shape...) }

// repeated returns a 0-d tensor expanded to the shape.
func repeated(t *tensor.Tensor, shape []int) *tensor.Tensor {
	out, err := t.Expand(shape...)
	if err != nil {
		panic(err)
	}
	return out
}

func runScatterValue(c *op.Run) error {
	src := repeated(scalarTensor(c.Scalar(arg.Value), c.Out[0].DType()), c.Tensor(arg.Index).Shape())
	if c.Has(arg.Reduce) {
		return reduceElements(c, scatterReduction(c.Args), true, src)
	}
	c.Out[0].CopyFrom(c.Tensor(arg.Input))
	return badIndex(kernel.Scatter(c.Out[0], src, longIndex(c.Tensor(arg.Index)), dimOf(c.Args)))
}

// signedIndex draws a vector of n indices into a dimension, counted from either end.
func signedIndex(s *op.Sampler, size, n int) *tensor.Tensor {
	t := tensor.New(tensor.I64, n)
	for i := range n {
		t.SetInt(i, s.Int(int64(-size), int64(size)))
	}
	return t
}

// distinctPair replaces argument 0 and that at i by tensors whose elements all
// differ, so that an extreme stays where it is.
func distinctPair(s *op.Sampler, args []any, i int) []any {
	if !s.DType.IsFloat() {
		return args
	}
	x, y := args[0].(*tensor.Tensor), args[i].(*tensor.Tensor)
	all := s.Distinct(x.Len() + y.Len())
	args[0] = all.Narrow(0, 0, x.Len(), 1).Clone().Reshape(x.Shape()...)
	args[i] = all.Narrow(0, x.Len(), y.Len(), 1).Clone().Reshape(y.Shape()...)
	return args
}

// sampleReduction draws one of the names that s.DType has.
func sampleReduction(s *op.Sampler, names ...string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(r string) bool {
		return s.DType == tensor.Bool && r == "mean"
	})
	return names[s.Index(len(names))]
}
