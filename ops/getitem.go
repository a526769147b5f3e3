package ops

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var getitemOps = []*op.Def{
	{
		Sig:     "getitem(Tensor input, Index index) -> Tensor",
		Names:   []string{"operator.getitem", "Tensor.__getitem__"},
		Doc:     "input[index]: ints select, slices cut, None inserts a dimension, True one of size 1 and False one of size 0, an ellipsis stands for the dimensions left; tensors and lists go to the operator index.",
		Compose: getitem,
		Sample:  sampleGetitem,
		Tol:     exactTol("a view of its input"),
	},
}

// getitem applies the parts of the index from left to right, then the tensors
// among them together.
func getitem(b op.Builder, a op.Args) []op.Value {
	x, index := a.Value(arg.Input), numbered(a.Any(arg.Index).(op.Index))
	used := 0
	for _, e := range index {
		used += consumed(e)
	}
	rank := len(x.Shape())
	if used > rank {
		op.Fail(op.IndexError("too many indices for tensor of dimension %d", rank))
	}
	var dims []int
	var tensors []op.Value
	dim := 0
	for _, e := range index {
		switch e := e.(type) {
		case int64:
			x = selectItem(b, x, dim, int(e))
			continue
		case int:
			x = selectItem(b, x, dim, e)
			continue
		case op.Slice:
			x = sliceItem(b, x, dim, e)
		case nil:
			x = b.Op("unsqueeze", x, dim)
		case bool:
			x = b.Op("unsqueeze", x, dim)
			dims, tensors = append(dims, dim), append(tensors, whether(b, e))
		case op.Ellipsis:
			dim += rank - used
			continue
		case []any:
			list := b.Op("tensor", e)
			dims, tensors = append(dims, dim), append(tensors, list)
			dim += consumed(list)
			continue
		case op.Value:
			dims, tensors = append(dims, dim), append(tensors, e)
			dim += consumed(e)
			continue
		default:
			op.Fail(unsupportedIndex(e))
		}
		dim++
	}
	switch {
	case len(tensors) > 0:
		return vals(b.Op("index", x, dims, tensors))
	case x == a.Value(arg.Input):
		return vals(b.Op("alias", x))
	}
	return vals(x)
}

// numbered has a number for each tensor that stands for one, as PyTorch does: one of
// integers without dimensions selects, so that the result is a view. In a graph, where
// its element is not known, it is an index as others are.
func numbered(index op.Index) op.Index {
	index = slices.Clone(index)
	for i, e := range index {
		v, ok := e.(op.Value)
		if !ok || len(v.Shape()) != 0 || !v.DType().IsInt() || v.DType() == tensor.U8 {
			continue
		}
		if t, err := op.ElementsOf(v); err == nil && t != nil {
			index[i] = t.Int(0)
		}
	}
	return index
}

// whether is the index that a bool means in the dimension that it inserts.
func whether(b op.Builder, is bool) op.Value {
	places := []any{}
	if is {
		places = append(places, 0)
	}
	return b.Op("tensor", places, op.Kw("dtype", tensor.I64))
}

func unsupportedIndex(e any) error {
	return fmt.Errorf("%w: an index with a %s", op.ErrUnknown, op.TypeName(e))
}

// consumed returns how many dimensions an entry of an index speaks of.
func consumed(e any) int {
	switch e := e.(type) {
	case nil, bool, op.Ellipsis:
		return 0
	case []any:
		if kind, shape, err := shapeOfList(e); err == nil && kind == tensor.Bool {
			return len(shape)
		}
	case op.Value:
		if e.DType() == tensor.Bool || e.DType() == tensor.U8 {
			return len(e.Shape())
		}
	}
	return 1
}

func selectItem(b op.Builder, x op.Value, dim, i int) op.Value {
	if dim >= len(x.Shape()) {
		op.Fail(op.IndexError("too many indices for tensor of dimension %d", len(x.Shape())))
	}
	if n := x.Shape()[dim]; i < -n || i >= n {
		op.Fail(op.IndexError("index %d is out of bounds for dimension %d with size %d", i, dim, n))
	}
	return b.Op("select", x, dim, i)
}

func sliceItem(b op.Builder, x op.Value, dim int, s op.Slice) op.Value {
	step := 1
	if s.Step != nil {
		step = *s.Step
	}
	if step <= 0 {
		op.Fail(op.ValueError("step must be greater than zero"))
	}
	if s.Start == nil && s.Stop == nil && step == 1 {
		return x
	}
	return b.Op("slice", x, dim, sliceEnd(s.Start), sliceEnd(s.Stop), step)
}

func sliceEnd(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

func sampleGetitem(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	index := op.Index{}
	for i, n := range shape {
		switch s.Index(5) {
		case 0:
			index = append(index, s.Int(-int64(n), int64(n)))
		case 1:
			index = append(index, nil, op.Slice{})
		case 2:
			start, step := s.Index(n), 1+s.Index(2)
			index = append(index, op.Slice{Start: &start, Step: &step})
		case 3:
			stop := int(s.Int(-1, int64(n)+1))
			index = append(index, op.Slice{Stop: &stop})
		case 4:
			index = append(index, op.Ellipsis{})
			if i+1 < len(shape) {
				index = append(index, s.Index(shape[len(shape)-1]))
			}
			return []any{s.Tensor(-2, 2, shape...), index}
		}
	}
	return []any{s.Tensor(-2, 2, shape...), index}
}
