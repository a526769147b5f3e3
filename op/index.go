package op

// Index is what stands between the brackets of x[…], brought into a list: of
// int, bool, nil (None), Slice, Ellipsis, Value and nested []any.
type Index []any

// Slice is a Python slice; nil parts are left out.
type Slice struct{ Start, Stop, Step *int }

// Ellipsis is Python's "...".
type Ellipsis struct{}

// indexOf returns the normal form of an index that is no tuple.
func indexOf(v any) Index {
	if list, ok := v.(Index); ok {
		return list
	}
	return Index{v}
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
