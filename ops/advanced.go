package ops

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// advancedOps index by tensors, as x[i, j] does.
var advancedOps = []*op.Def{
	{
		Sig:     "index(Tensor input, int[] dims, Tensor[] indices) -> Tensor",
		SBP:     linear(arg.Input),
		Doc:     "The elements that index tensors name, broadcast to one shape: indices[k] counts along dimension dims[k], from either end; a mask takes as many dimensions from there on as it has. Their shape stands in place of the dimensions when those are adjacent, else in front.",
		Traits:  op.Dynamic,
		Reject:  checkAdvanced,
		Infer:   inferIndex,
		Kernels: []op.Kernel{{Name: "index", Run: runIndex}},
		Grad:    op.Gradient(indexGrad),
		Sample: func(s *op.Sampler) []any {
			x, dims, indices := sampleLookup(s, false)
			return []any{x, dims, indices}
		},
		Tol: ownMagnitude(exactTol("copies its inputs")),
	},
	putDef("index.put(Tensor input, int[] dims, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor"),
	inPlace(op.InPlaceRules{Expanded: true},
		putDef("index_put(Tensor input, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor", both("index_put")...)),
}

func inferIndex(a op.Args) ([]op.Meta, error) {
	x, err := lookupOf(a)
	if err != nil {
		return nil, err
	}
	return one(a.Value(arg.Input).DType(), x.shape, x.resultStrides(a.Value(arg.Input))), nil
}

func runIndex(c *op.Run) error {
	s, err := lookedUp(c.Args, c.Tensor(arg.Input))
	if err == nil {
		s.Take(c.Out[0])
	}
	return err
}

func indexGrad(g *op.Grad) op.Value {
	return g.Op("index.put", zeros(g, g.Value(arg.Input)), g.Ints(arg.Dims), g.Values(arg.IndicesTensors), g.G(), true)
}

func putDef(sig string, names ...string) *op.Def {
	id := sig[:slices.Index([]byte(sig), '(')]
	with := func(g *op.Grad, rest ...any) []any {
		if g.Sig.Takes(arg.Dims) {
			return slices.Concat([]any{g.Ints(arg.Dims)}, rest)
		}
		return rest
	}
	return &op.Def{
		Sig:     sig,
		SBP:     additive(arg.Input, arg.Values),
		Names:   names,
		Doc:     "A copy of input in which the elements that index tensors name are values, or have values added to them with accumulate; values are broadcast to the shape of what the same indices read.",
		Traits:  op.Dynamic,
		Reject:  firstError(checkAdvanced, checkPut),
		Infer:   inferPut,
		Kernels: []op.Kernel{{Name: "index", Run: runPut}},
		Grad: func(g *op.Grad) {
			g.To(arg.Input, func() op.Value {
				if g.Bool(arg.Accumulate) {
					return g.G()
				}
				return g.Op(id, append([]any{g.G()}, with(g, g.Values(arg.IndicesTensors), zeros(g, g.Value(arg.Values)))...)...)
			})
			g.To(arg.Values, func() op.Value { return g.Op("index", g.G(), lookupDims(g.Args), g.Values(arg.IndicesTensors)) })
		},
		Sample: func(s *op.Sampler) []any {
			accumulate := s.Bool()
			x, dims, indices := sampleLookup(s, !accumulate)
			if len(names) > 0 {
				indices = sampleLeading(s, x.Shape())
			}
			values := s.Tensor(-2, 2)
			if s.Bool() {
				values = s.Tensor(-2, 2, 1)
			}
			args := []any{x}
			if len(names) == 0 {
				args = append(args, dims)
			}
			return append(args, indices, values, accumulate)
		},
		Tol: addedInPlace(ownMagnitude(accumulating(putTerms, "adds at most as many values as there are indices"))),
	}
}

func inferPut(a op.Args) ([]op.Meta, error) {
	x, err := lookupOf(a)
	if err != nil {
		return nil, err
	}
	if got, err := indexedTo(a.Value(arg.Values), x.shape); err != nil {
		return got, err
	}
	v := a.Value(arg.Input)
	return one(v.DType(), v.Shape(), denseStrides(v)), nil
}

func putTerms(a op.Args) int {
	if !a.Bool(arg.Accumulate) {
		return 1
	}
	n := 1
	for _, v := range a.Values(arg.IndicesTensors) {
		n += tensor.NumElements(v.Shape())
	}
	return n
}

// lookup is how index tensors read a tensor.
type lookup struct {
	dims    []int      // one for each index, ascending
	indices []op.Value // int32 or int64, not yet broadcast
	of      []int      // the shape that the indices are broadcast to
	shape   []int      // of what is read
	at      int        // where of stands in shape
	kept    []int      // the dimensions that no index takes
}

// lookupDims returns the first dimension that each index takes.
func lookupDims(a op.Args) []int {
	if a.Sig.Takes(arg.Dims) {
		return a.Ints(arg.Dims)
	}
	var dims []int
	next := 0
	for _, v := range a.Values(arg.IndicesTensors) {
		dims = append(dims, next)
		next += taken(v)
	}
	return dims
}

// taken is how many dimensions an index takes.
func taken(v op.Value) int {
	if isMask(v) {
		return len(v.Shape())
	}
	return 1
}

func isMask(v op.Value) bool { return v.DType() == tensor.Bool || v.DType() == tensor.U8 }

func checkAdvanced(a op.Args) error {
	x, dims := a.Value(arg.Input), lookupDims(a)
	if len(dims) == 0 {
		return op.RuntimeError("argument 'indices' must have at least one tensor")
	}
	for i, v := range a.Values(arg.IndicesTensors) {
		switch {
		case !slices.Contains(indexTypes, v.DType()) && !isMask(v):
			return op.IndexError("tensors used as indices must be long, int, byte or bool tensors, but argument 'indices' has one of %s", v.DType())
		case taken(v) == 0:
			return notUnderstood("index", "indices with a 0-d mask")
		case dims[i]+taken(v) > len(x.Shape()):
			return op.IndexError("too many indices for a tensor of dimension %d: argument 'indices'", len(x.Shape()))
		case isMask(v) && !slices.Equal(v.Shape(), x.Shape()[dims[i]:dims[i]+taken(v)]):
			return op.IndexError("the shape %s of a mask in argument 'indices' does not match that of the indexed tensor, %s, from dimension %d on", tensor.ShapeString(v.Shape()), tensor.ShapeString(x.Shape()), dims[i])
		}
	}
	return nil
}

func checkPut(a op.Args) error {
	if d, v := a.Value(arg.Input).DType(), a.Value(arg.Values).DType(); d != v {
		return op.RuntimeError("expected argument 'values' to have the dtype of 'input', %s, not %s", d, v)
	}
	return nil
}

// elementsOf returns a tensor whose elements decide a shape. Values that are
// only described have none.
func elementsOf(v op.Value, name string) (*tensor.Tensor, error) {
	if t, ok := v.(*tensor.Tensor); ok {
		return t, nil
	}
	return nil, fmt.Errorf("the shape of the result depends on the elements of argument '%s'", name)
}

// lookupOf resolves masks into the places where they hold, and broadcasts.
func lookupOf(a op.Args) (*lookup, error) {
	x := &lookup{}
	for i, v := range a.Values(arg.IndicesTensors) {
		d := lookupDims(a)[i]
		if !isMask(v) {
			x.dims, x.indices = append(x.dims, d), append(x.indices, v)
			continue
		}
		t, err := elementsOf(v, "indices")
		if err != nil {
			return nil, err
		}
		places := kernel.TruePlaces(t.Convert(tensor.Bool))
		where := tensor.New(tensor.I64, max(t.Dim(), 1), len(places)).Transpose(0, 1)
		kernel.Coordinates(where, places, t.Shape())
		for j := range t.Dim() {
			x.dims, x.indices = append(x.dims, d+j), append(x.indices, where.Select(1, j))
		}
	}
	return x, x.broadcast(a.Value(arg.Input).Shape())
}

func (x *lookup) broadcast(shape []int) error {
	shapes := make([][]int, len(x.indices))
	for i, v := range x.indices {
		shapes[i] = v.Shape()
	}
	of, err := tensor.BroadcastShapes(shapes...)
	if err != nil {
		return op.IndexError("shape mismatch: the tensors in argument 'indices' could not be broadcast together: %v", err)
	}
	x.of, x.at = of, x.dims[0]
	for i, d := range x.dims {
		if i > 0 && d != x.dims[i-1]+1 {
			x.at = 0
		}
	}
	for d, n := range shape {
		if !slices.Contains(x.dims, d) {
			x.kept, x.shape = append(x.kept, d), append(x.shape, n)
		}
	}
	x.shape = slices.Insert(x.shape, x.at, of...)
	return nil
}

// laid is a value seen in another shape and other strides.
type laid struct {
	op.Value
	shape, strides []int
}

// Shape returns the shape in which the value is seen.
func (l laid) Shape() []int { return l.shape }

// Strides returns the strides in that shape.
func (l laid) Strides() []int { return l.strides }

// resultStrides follows TensorIterator over the input without its indexed
// dimensions and the indices.
func (x *lookup) resultStrides(v op.Value) []int {
	operands := []op.Value{laid{v, x.shape, x.keptStrides(v.Strides())}}
	for _, index := range x.indices {
		strides := make([]int, len(x.shape))
		copy(strides[x.at:], expandedStrides(x.of, index))
		operands = append(operands, laid{index, x.shape, strides})
	}
	return iteratorStrides(x.shape, operands...)
}

func (x *lookup) keptStrides(strides []int) []int {
	out := make([]int, 0, len(x.shape))
	for _, d := range x.kept {
		out = append(out, strides[d])
	}
	return slices.Insert(out, x.at, make([]int, len(x.of))...)
}

// lookedUp selects what the indices of a call name in t, which has the shape of its input.
func lookedUp(a op.Args, t *tensor.Tensor) (kernel.Selection, error) {
	x, err := lookupOf(a)
	if err != nil {
		return kernel.Selection{}, err
	}
	if tensor.NumElements(x.of) > 0 {
		for _, d := range x.dims {
			if t.Shape()[d] == 0 {
				return kernel.Selection{}, op.IndexError("argument 'indices' names entries of dimension %d, which is empty", d)
			}
		}
	}
	view, err := t.AsStrided(x.shape, x.keptStrides(t.Strides()), t.Offset())
	if err != nil {
		return kernel.Selection{}, err
	}
	offsets := tensor.Unset(tensor.I64, x.of, nil)
	if view.Len() == 0 {
		return kernel.Selection{View: view, Offsets: tensor.New(tensor.I64, x.shape...)}, nil
	}
	sum := tensor.Data[int64](offsets)[:offsets.Len()]
	for i, v := range x.indices {
		d := x.dims[i]
		all, err := v.(*tensor.Tensor).Expand(x.of...)
		if err != nil {
			return kernel.Selection{}, err
		}
		if err := kernel.Offsets(sum, contiguousData[int64](longIndex(all)), t, d, i > 0); err != nil {
			return kernel.Selection{}, indexFault(err)
		}
	}
	strides := make([]int, len(x.shape))
	copy(strides[x.at:], tensor.ContiguousStrides(x.of))
	offsets, err = offsets.AsStrided(x.shape, strides, 0)
	return kernel.Selection{View: view, Offsets: offsets}, err
}

// indexedTo rejects a value that cannot be broadcast to the shape.
func indexedTo(v op.Value, shape []int) ([]op.Meta, error) {
	got, err := tensor.BroadcastShapes(v.Shape(), shape)
	if err != nil || !slices.Equal(got, shape) {
		return nil, op.RuntimeError("shape mismatch: argument 'values' of shape %s cannot be broadcast to the indexing result of shape %s", tensor.ShapeString(v.Shape()), tensor.ShapeString(shape))
	}
	return nil, nil
}

func runPut(c *op.Run) error {
	choose := func(t *tensor.Tensor) (kernel.Selection, *tensor.Tensor, error) {
		s, err := lookedUp(c.Args, t)
		if err != nil {
			return s, nil, err
		}
		src, err := c.Tensor(arg.Values).Convert(t.DType()).Expand(s.View.Shape()...)
		return s, src, err
	}
	if c.Bool(arg.Accumulate) {
		return reduceInto(c, kernel.ReduceSum, true, choose)
	}
	c.Out[0].CopyFrom(c.Tensor(arg.Input))
	s, src, err := choose(c.Out[0])
	if err == nil {
		s.Put(src)
	}
	return err
}

// sampleLookup draws a tensor and one or two indices of it; with once, an
// index without repeats, so that the order of writes does not matter.
func sampleLookup(s *op.Sampler, once bool) (x *tensor.Tensor, dims []int, indices []any) {
	shape := s.Shape(1, 4)
	x = s.Tensor(-2, 2, shape...)
	first := s.Index(len(shape))
	dims = []int{first}
	switch n := shape[first]; {
	case s.Index(3) == 0:
		mask := tensor.New(tensor.Bool, n)
		for i := range n {
			mask.SetInt(i, int64(s.Index(2)))
		}
		indices = []any{mask}
	case once:
		indices = []any{sampleUnique(s, n)}
	default:
		indices = []any{signedIndex(s, n, 1+s.Index(3))}
	}
	if second := first + 1 + s.Index(2); second < len(shape) {
		dims, indices = append(dims, second), append(indices, signedIndex(s, shape[second], 1))
	}
	return x, dims, indices
}

// sampleUnique draws an index vector without repeats.
func sampleUnique(s *op.Sampler, n int) *tensor.Tensor {
	t, shift := tensor.New(tensor.I64, 1+s.Index(n)), s.Index(n)
	for i := range t.Len() {
		t.SetInt(i, int64((i+shift)%n-n*(i%2)))
	}
	return t
}

// sampleLeading draws indices of the first dimension or two without repeats.
func sampleLeading(s *op.Sampler, shape []int) []any {
	if len(shape) > 1 && s.Bool() {
		return []any{signedIndex(s, shape[0], 1), sampleUnique(s, shape[1])}
	}
	return []any{sampleUnique(s, shape[0])}
}
