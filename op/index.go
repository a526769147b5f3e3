package op

import "slices"

// Index is what stands between the brackets of x[…], brought into a list: of
// int, bool, nil (None), Slice, Ellipsis, Value and nested []any.
type Index []any

// Slice is a Python slice; nil parts are left out.
type Slice struct{ Start, Stop, Step *int }

// Ellipsis is Python's "...".
type Ellipsis struct{}

// IndexOf returns the normal form of what stands between the brackets and is no
// tuple. PyTorch takes a list of less than 32 elements for a tuple where it has
// sequences, tensors, slices, None or an ellipsis in it.
func IndexOf(v any) Index {
	list, ok := v.([]any)
	if !ok || len(list) >= 32 || !slices.ContainsFunc(list, isIndex) {
		return Index{v}
	}
	return list
}

// isIndex reports whether an element of a list is an index of its own, not one
// of several numbers.
func isIndex(e any) bool {
	switch e.(type) {
	case nil, Value, []any, Slice, Ellipsis:
		return true
	}
	return false
}

// IntOf reads an int, or a tensor that Python takes for one: of one element, an
// integer or a bool.
func IntOf(v any) (int, error) {
	list, err := intsOf(Type{Kind: KInt, List: true}, []any{v})
	if err != nil {
		return 0, err
	}
	return list.([]int)[0], nil
}

// values returns the tensors of the index in order, lists included.
func (x Index) values() []Value {
	var out []Value
	for _, e := range x {
		switch e := e.(type) {
		case Value:
			out = append(out, e)
		case []any:
			out = append(out, Index(e).values()...)
		}
	}
	return out
}

func (x Index) mapValues(f func(Value) Value) Index {
	out := make(Index, len(x))
	for i, e := range x {
		switch e := e.(type) {
		case Value:
			out[i] = f(e)
		case []any:
			out[i] = []any(Index(e).mapValues(f))
		default:
			out[i] = e
		}
	}
	return out
}
