package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// flatIndexOps count elements in row-major order, or along one dimension.
var flatIndexOps = []*op.Def{
	{
		Sig:     "take(Tensor input, Tensor index) -> Tensor",
		SBP:     anyOf(linear(arg.Input), axes("index * -> *")),
		Names:   both("take"),
		Doc:     "The elements that index names in row-major order, from either end: out[i] = input.flatten()[index[i]].",
		Reject:  checkTake,
		Infer:   inferTake,
		Kernels: []op.Kernel{{Name: "index", Run: runTake}},
		Grad:    op.Gradient(takeGrad),
		Sample:  sampleTake,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:    "put(Tensor input, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
		SBP:    additive(arg.Input, arg.Source),
		Names:  both("put"),
		Doc:    "A copy of input in which the elements that index names in row-major order are those of source, or have them added with accumulate.",
		Reject: checkPutFlat,
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg.Input)
			return one(v.DType(), v.Shape(), denseStrides(v)), nil
		},
		Kernels: []op.Kernel{{Name: "index", Run: runPutFlat}},
		Grad:    putGrad,
		Sample:  samplePut,
		Tol: addedInPlace(ownMagnitude(accumulating(func(a op.Args) int {
			if a.Bool(arg.Accumulate) {
				return entryTerms(a)
			}
			return 1
		}, "adds at most as many elements as index has"))),
	},
	{
		Sig:     "take_along_dim(Tensor input, Tensor indices, int? dim=None) -> Tensor",
		SBP:     anyOf(linear(arg.Input), provided(func(a op.Args) bool { return a.Has(arg.Dim) }, alongOthers(arg.Input, arg.Indices)), entriesOf(arg.Indices)),
		Names:   both("take_along_dim"),
		Doc:     "Picks along dim as gather does, with input and indices broadcast in the other dimensions; in row-major order without dim.",
		Reject:  checkTakeAlong,
		Infer:   inferTakeAlongDim,
		Kernels: []op.Kernel{{Name: "index", Run: runTakeAlongDim}},
		Grad:    op.Gradient(takeAlongDimGrad),
		Sample:  sampleTakeAlongDim,
		Tol:     ownMagnitude(exactTol("copies its inputs")),
	},
	{
		Sig:     "one_hot(Tensor input, int num_classes=-1) -> Tensor",
		Names:   []string{"torch.nn.functional.one_hot"},
		Doc:     "Rows of num_classes zeros with a 1 at the place that each element names; num_classes is one more than the largest by default.",
		Traits:  op.NoGrad | op.Dynamic,
		SBP:     provided(func(a op.Args) bool { return a.Int(arg.NumClasses) >= 0 }, pointwise),
		Reject:  checkOneHot,
		Long:    []op.Handle{arg.Input},
		Infer:   inferOneHot,
		Kernels: []op.Kernel{{Name: "write", Run: runOneHot}},
		Sample:  sampleOneHot,
		Tol:     exactTol("zeros and ones"),
	},
}

func inferTake(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Index).Shape(), nil), nil
}

func runTake(c *op.Run) error {
	s, err := flatSelection(c.Tensor(arg.Input), c.Tensor(arg.Index))
	if err == nil {
		s.Take(c.Out[0])
	}
	return err
}

func takeGrad(g *op.Grad) op.Value {
	return g.Op("put", zeros(g, g.Value(arg.Input)), g.Value(arg.Index), g.G(), true)
}

func sampleTake(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 3)...)
	return []any{x, signedIndex(s, x.Len(), 4).Reshape([][]int{{4}, {2, 2}, {1, 4, 1}}[s.Index(3)]...)}
}

func putGrad(g *op.Grad) {
	g.To(arg.Input, func() op.Value {
		if g.Bool(arg.Accumulate) {
			return g.G()
		}
		return g.Op("put", g.G(), g.Value(arg.Index), zeros(g, g.Value(arg.Source)), false)
	})
	g.To(arg.Source, func() op.Value {
		return g.Reshape(g.Op("take", g.G(), g.Value(arg.Index)), g.Value(arg.Source).Shape())
	})
}

func samplePut(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 3)...)
	index := sampleUnique(s, x.Len())
	source := s.Tensor(-2, 2, index.Len())
	if s.Bool() {
		source = source.Reshape(1, index.Len())
	}
	return []any{x, index, source, s.Bool()}
}

func inferTakeAlongDim(a op.Args) ([]op.Meta, error) {
	_, to, err := takeShapes(a)
	return one(a.Value(arg.Input).DType(), to, nil), err
}

func runTakeAlongDim(c *op.Run) error {
	from, to, err := takeShapes(c.Args)
	if err != nil {
		return err
	}
	x, index := c.Tensor(arg.Input), c.Tensor(arg.Indices)
	if !c.Has(arg.Dim) {
		x, index = x.Reshape(from...), index.Reshape(to...)
	}
	if x, err = x.Expand(from...); err == nil {
		index, err = index.Expand(to...)
	}
	if err != nil {
		return err
	}
	return badIndex(kernel.Gather(c.Out[0], x, index, takeDim(c.Args)))
}

func takeAlongDimGrad(g *op.Grad) op.Value {
	x, index := zeros(g, g.Value(arg.Input)), g.Value(arg.Indices)
	from, to, err := takeShapes(g.Args)
	if err != nil {
		op.Fail(err)
	}
	if !g.Has(arg.Dim) {
		d := g.Op("scatter_add", g.Reshape(x, from), 0, g.Reshape(index, to), g.G())
		return g.Reshape(d, g.Value(arg.Input).Shape())
	}
	return g.Op("scatter_add", g.Expand(x, from), takeDim(g.Args), g.Expand(index, to), g.G())
}

func sampleTakeAlongDim(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	x := s.Tensor(-2, 2, shape...)
	d := s.Index(len(shape)) // without dim, PyTorch wants contiguous tensors
	of := slices.Clone(shape)
	of[s.Index(len(of))] = 1
	of[d] = 1 + s.Index(4)
	return []any{x, sampleIndex(s, of, shape[d]), d - s.Index(2)*len(shape)}
}

func inferOneHot(a op.Args) ([]op.Meta, error) {
	n := a.Int(arg.NumClasses)
	if n < 0 {
		t, err := elementsOf(a.Value(arg.Input), "input")
		if err != nil {
			return nil, err
		}
		n = 1 + int(slices.Max(contiguousData[int64](t)))
	}
	return one(tensor.I64, append(slices.Clone(a.Value(arg.Input).Shape()), n), nil), nil
}

func sampleOneHot(s *op.Sampler) []any {
	n := 1 + s.Index(5)
	args := []any{sampleIndex(s, s.Shape(0, 3), n)}
	if s.Bool() {
		args = append(args, n+s.Index(3))
	}
	return args
}

func checkTake(a op.Args) error {
	x, index := a.Value(arg.Input), a.Value(arg.Index)
	switch {
	case index.DType() != tensor.I64:
		return op.RuntimeError("expected argument 'index' to have dtype int64, not %s", index.DType())
	case tensor.NumElements(x.Shape()) == 0 && tensor.NumElements(index.Shape()) > 0:
		return op.IndexError("tried to take from an empty tensor: argument 'input'")
	}
	return nil
}

func checkPutFlat(a op.Args) error {
	if err := checkTake(a); err != nil {
		return err
	}
	x, index, src := a.Value(arg.Input), a.Value(arg.Index), a.Value(arg.Source)
	switch {
	case src.DType() != x.DType():
		return op.RuntimeError("expected argument 'source' to have the dtype of 'input', %s, not %s", x.DType(), src.DType())
	case tensor.NumElements(index.Shape()) != tensor.NumElements(src.Shape()):
		return op.IndexError("expected arguments 'source' and 'index' to have the same number of elements, but they have shapes %s and %s", tensor.ShapeString(src.Shape()), tensor.ShapeString(index.Shape()))
	}
	return nil
}

// flatSelection selects the elements of t that index names in row-major order.
func flatSelection(t, index *tensor.Tensor) (kernel.Selection, error) {
	offsets, err := wrappedIndex(index, t.Len(), 0)
	if err != nil {
		return kernel.Selection{}, err
	}
	if !t.IsContiguous() {
		data := tensor.Data[int64](offsets)
		for i, at := range data[:offsets.Len()] {
			data[i] = placeOf(t, at)
		}
	}
	view, err := t.AsStrided(index.Shape(), make([]int, index.Dim()), t.Offset())
	return kernel.Selection{View: view, Offsets: offsets}, err
}

// placeOf returns where in its storage the element at a row-major position is.
func placeOf(t *tensor.Tensor, at int64) int64 {
	place := int64(0)
	for d := t.Dim() - 1; d >= 0; d-- {
		n := int64(t.Shape()[d])
		place += at % n * int64(t.Strides()[d])
		at /= n
	}
	return place
}

func runPutFlat(c *op.Run) error {
	choose := func(t *tensor.Tensor) (kernel.Selection, *tensor.Tensor, error) {
		s, err := flatSelection(t, c.Tensor(arg.Index))
		return s, c.Tensor(arg.Source).Convert(t.DType()).Reshape(c.Tensor(arg.Index).Shape()...), err
	}
	if c.Tensor(arg.Index).Len() > 0 && c.Bool(arg.Accumulate) {
		return reduceInto(c, kernel.ReduceSum, true, choose)
	}
	c.Out[0].CopyFrom(c.Tensor(arg.Input))
	if c.Tensor(arg.Index).Len() == 0 {
		return nil
	}
	s, src, err := choose(c.Out[0])
	if err == nil {
		s.Put(src)
	}
	return err
}

func checkTakeAlong(a op.Args) error {
	x, index := a.Value(arg.Input), a.Value(arg.Indices)
	if index.DType() != tensor.I64 {
		return op.RuntimeError("expected argument 'indices' to have dtype int64, not %s", index.DType())
	}
	if !a.Has(arg.Dim) {
		for _, v := range []op.Value{x, index} {
			if _, ok := tensor.ViewStrides(v.Shape(), v.Strides(), []int{tensor.NumElements(v.Shape())}); !ok {
				return op.RuntimeError("view size is not compatible with the strides of arguments 'input' and 'indices'")
			}
		}
		return nil
	}
	if len(x.Shape()) != len(index.Shape()) {
		return op.RuntimeError("argument 'indices' must have as many dimensions as 'input', %d, not %d", len(x.Shape()), len(index.Shape()))
	}
	if len(x.Shape()) == 0 {
		return op.IndexError("dimension specified as argument 'dim' but the tensor has no dimensions")
	}
	_, err := wrapDim(a.Int(arg.Dim), len(x.Shape()))
	return err
}

func takeDim(a op.Args) int {
	if !a.Has(arg.Dim) {
		return 0
	}
	return dimOf(a)
}

// takeShapes returns the shapes to which input and indices are broadcast.
func takeShapes(a op.Args) (from, to []int, err error) {
	x, index := a.Value(arg.Input).Shape(), a.Value(arg.Indices).Shape()
	if !a.Has(arg.Dim) {
		return []int{tensor.NumElements(x)}, []int{tensor.NumElements(index)}, nil
	}
	d := dimOf(a)
	x, index = slices.Clone(x), slices.Clone(index)
	n, m := x[d], index[d]
	x[d], index[d] = 1, 1
	from, err = tensor.BroadcastShapes(x, index)
	if err != nil {
		return nil, nil, op.RuntimeError("arguments 'input' and 'indices' cannot be broadcast together: %v", err)
	}
	to = slices.Clone(from)
	from[d], to[d] = n, m
	return from, to, nil
}

func checkOneHot(a op.Args) error {
	x, n := a.Value(arg.Input), a.Int(arg.NumClasses)
	if x.DType() != tensor.I64 {
		return op.RuntimeError("argument 'input' must be an index tensor of dtype int64, not %s", x.DType())
	}
	if tensor.NumElements(x.Shape()) == 0 {
		if n <= 0 {
			return op.RuntimeError("cannot infer argument 'num_classes' from an empty tensor")
		}
		return nil
	}
	t, ok := x.(*tensor.Tensor)
	if !ok {
		return nil
	}
	data := contiguousData[int64](t)
	switch {
	case slices.Min(data) < 0:
		return op.RuntimeError("class values of argument 'input' must be non-negative")
	case n != -1 && int(slices.Max(data)) >= n:
		return op.RuntimeError("class values of argument 'input' must be smaller than num_classes=%d", n)
	}
	return nil
}

func runOneHot(c *op.Run) error {
	out := c.Out[0]
	clear(out.Storage())
	data, n := tensor.Data[int64](out), out.Shape()[out.Dim()-1]
	for i, v := range contiguousData[int64](c.Tensor(arg.Input)) {
		data[i*n+int(v)] = 1
	}
	return nil
}
