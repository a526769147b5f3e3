package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// mayBeTensor reports whether an index may be one of a list by a tensor, which
// Starlark does not take.
func mayBeTensor(index syntax.Expr) bool {
	if u, ok := index.(*syntax.UnaryExpr); ok {
		index = u.X
	}
	switch index.(type) {
	case *syntax.Literal, *syntax.TupleExpr:
		return false
	}
	return true
}

// item is x[k].
func (r *rewriter) item(e *syntax.IndexExpr) syntax.Expr {
	e.X, e.Y = r.expr(e.X), r.expr(e.Y)
	if mayBeTensor(e.Y) {
		return call(fnItem, e.Lbrack, e.X, e.Y)
	}
	return e
}

// targetItem is x[k] that is assigned to: of a list, k may be a tensor.
func (r *rewriter) targetItem(e *syntax.IndexExpr) {
	name, named := e.X.(*syntax.Ident)
	e.X, e.Y = r.expr(e.X), r.expr(e.Y)
	if named && mayBeTensor(e.Y) {
		e.Y = call(fnIndex, e.Lbrack, r.place(name, name.Name, name.NamePos), e.Y)
	}
}

// getitem is x[k]: of a sequence, k may be a tensor.
func getitem(x, k starlark.Value) (starlark.Value, error) {
	switch x := x.(type) {
	case starlark.Mapping:
		v, found, err := x.Get(k)
		if _, dict := x.(*starlark.Dict); dict && !found && err == nil {
			v, found, err = x.Get(memberValue(k))
		}
		if !found && err == nil {
			err = fmt.Errorf("key %v not in %s", k, x.Type())
		}
		return v, err
	case starlark.Indexable:
		i, err := position(k)
		if err != nil {
			return nil, fmt.Errorf("%s index: %w", x.Type(), err)
		}
		n := x.Len()
		if i < -n || i >= n {
			return nil, fmt.Errorf("%s index %d out of range [%d:%d]", x.Type(), i, -n, n-1)
		}
		return x.Index((i + n) % n), nil
	}
	return nil, fmt.Errorf("unhandled index operation %s[%s]", x.Type(), k.Type())
}

// position is that in a sequence which a value means, as Python's
// operator.index does: an integer, a bool, a tensor or array of one integer.
func position(v starlark.Value) (int, error) {
	switch v.(type) {
	case *symbol, *attr, *array:
		plain, err := plainOf("an index", starlark.Tuple{v})
		if err != nil {
			return 0, err
		}
		if _, ok := plain.(starlark.Int); !ok {
			return 0, fmt.Errorf("only integer tensors of a single element can be converted to an index")
		}
		v = plain
	}
	return starlark.AsInt32(number(v))
}

// listParts is a list whose slices are assigned to.
type listParts struct {
	*starlark.List
	t *starlark.Thread
}

// Get is there for SetKey's interface.
func (l listParts) Get(k starlark.Value) (starlark.Value, bool, error) {
	v, err := getitem(l.List, k)
	return v, err == nil, err
}

// SetKey is l[lo:hi:step] = v.
func (l listParts) SetKey(k, v starlark.Value) error {
	at, ok := k.(*slice)
	if !ok { // slice is another name's in the file
		return lack("assigning to a slice where slice is a name of the file's is not supported in test files")
	}
	all, _ := sequence(l.List)
	start, stop, step, err := sliceBounds(at.start, at.stop, at.step, len(all))
	if err != nil {
		return err
	}
	with, err := iterate(l.t, v)
	if err != nil {
		return err
	}
	if step == 1 {
		if len(all)-(stop-start)+len(with) > maxElements {
			return fmt.Errorf("a list of more than %d elements", maxElements)
		}
		return replaceAll(l.List, slices.Replace(all, start, stop, with...))
	}
	n := l.Slice(start, stop, step).(*starlark.List).Len()
	if n != len(with) {
		return fmt.Errorf("attempt to assign sequence of size %d to extended slice of size %d", len(with), n)
	}
	for i, e := range with {
		if err := l.SetIndex(start+i*step, e); err != nil {
			return err
		}
	}
	return nil
}

// getslice is x[lo:hi:step].
func getslice(x, lo, hi, step starlark.Value) (starlark.Value, error) {
	switch x := x.(type) {
	case *symbol, *attr, *array, *object:
		v, _, err := x.(starlark.Mapping).Get(&slice{lo, hi, step})
		return v, err
	case foreign:
		return nil, x.unavailable()
	}
	seq, ok := x.(starlark.Sliceable)
	if !ok {
		return nil, fmt.Errorf("%s cannot be sliced", x.Type())
	}
	start, stop, stride, err := sliceBounds(lo, hi, step, seq.Len())
	if err != nil {
		return nil, err
	}
	return seq.Slice(start, stop, stride), nil
}

// sliceBounds resolves the parts of a slice of n elements as Python does.
func sliceBounds(lo, hi, step starlark.Value, n int) (start, stop, stride int, err error) {
	part := func(v starlark.Value, def, low, high int) int {
		if v == starlark.None || err != nil {
			return def
		}
		var i int
		if i, err = position(v); err != nil {
			return def
		}
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	stride = 1
	if step != starlark.None {
		if stride, err = position(step); err != nil {
			return 0, 0, 0, err
		}
	}
	switch {
	case stride == 0:
		return 0, 0, 0, fmt.Errorf("a slice's step must not be zero")
	case stride > 0:
		start, stop = part(lo, 0, 0, n), part(hi, n, 0, n)
		stop = max(start, stop)
	default:
		start, stop = part(lo, n-1, -1, n-1), part(hi, -1, -1, n-1)
		stop = min(start, stop)
	}
	return start, stop, stride, err
}
