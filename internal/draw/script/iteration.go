package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// iterate returns what a for loop sees.
func iterate(t *starlark.Thread, v starlark.Value) ([]starlark.Value, error) {
	switch v := v.(type) {
	case starlark.Bytes:
		var out []starlark.Value
		for _, b := range []byte(v) {
			out = append(out, starlark.MakeInt(int(b)))
		}
		return out, nil
	case starlark.String:
		var out []starlark.Value
		for _, c := range string(v) {
			out = append(out, starlark.String(string(c)))
		}
		return out, nil
	case *symbol:
		return v.elements()
	case *attr:
		s, err := v.resolve()
		if err != nil {
			return nil, err
		}
		return s.elements()
	case *array:
		return v.rows()
	case *iterator:
		return v.all()
	case foreign:
		if _, loads := t.Local(loadKey).(*loader); loads {
			return nil, nil
		}
		return nil, v.unavailable()
	case *generator:
		return nil, fmt.Errorf("a generator is not a sequence; use .value()")
	case *object:
		return v.iterate(t)
	case *class:
		if v.members != nil {
			return v.members, nil
		}
	case starlark.Iterable:
		if n := starlark.Len(v); n > maxElements {
			return nil, fmt.Errorf("more than %d elements", maxElements)
		}
		return slices.Collect(starlark.Elements(v)), nil
	}
	return nil, fmt.Errorf("%s is not iterable", article(v.Type()))
}

// many is the list of what a value holds; a range stays one.
func many(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("a star needs one value")
	}
	if a[0].Type() == "range" {
		return a[0], nil
	}
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	list := starlark.NewList(vs)
	return list, spend(t, list)
}

func concat(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	var out []starlark.Value
	for _, v := range a {
		vs, err := iterate(t, v)
		if err != nil {
			return nil, err
		}
		if out = append(out, vs...); len(out) > maxElements {
			return nil, fmt.Errorf("a list of more than %d elements", maxElements)
		}
	}
	list := starlark.NewList(out)
	return list, spend(t, list)
}

func merge(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	out := starlark.NewDict(4)
	for _, v := range a {
		if o, ok := v.(*object); ok && o.class.lookup("keys") != nil {
			whole, err := toDict(t, starlark.Tuple{o}, nil)
			if err != nil {
				return nil, err
			}
			v = whole
		}
		m, ok := v.(starlark.IterableMapping)
		if !ok {
			return nil, fmt.Errorf("%s is not a dict", article(v.Type()))
		}
		for _, item := range m.Items() {
			if err := out.SetKey(item[0], item[1]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func anyTrue(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return truths(t, a, true) }

func allTrue(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return truths(t, a, false)
}

// truths is any and all: the first element with the truth decides.
func truths(t *starlark.Thread, a starlark.Tuple, decides bool) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("any and all take one argument, not %d", len(a))
	}
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	for _, v := range vs {
		b, err := truth(t, v)
		if err != nil {
			return nil, err
		}
		if bool(b.Truth()) == decides {
			return starlark.Bool(decides), nil
		}
	}
	return starlark.Bool(!decides), nil
}

func mapCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 2 {
		return nil, fmt.Errorf("map takes a function and sequences")
	}
	rows, err := transpose(t, a[1:], false)
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(rows))
	for i, row := range rows {
		if out[i], err = starlark.Call(t, a[0], row, nil); err != nil {
			return nil, err
		}
	}
	return &iterator{rest: out}, nil
}

// transpose is zip; strict asks for equal lengths.
func transpose(t *starlark.Thread, seqs []starlark.Value, strict bool) ([]starlark.Tuple, error) {
	n := -1
	columns := make([][]starlark.Value, len(seqs))
	for i, s := range seqs {
		vs, err := iterate(t, s)
		if err != nil {
			return nil, err
		}
		if strict && n >= 0 && len(vs) != n {
			return nil, fmt.Errorf("zip: the sequences have different lengths")
		}
		columns[i] = vs
		if n < 0 || len(vs) < n {
			n = len(vs)
		}
	}
	rows := make([]starlark.Tuple, max(n, 0))
	for i := range rows {
		for _, c := range columns {
			rows[i] = append(rows[i], c[i])
		}
	}
	return rows, nil
}

func zip(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"zip", []string{"strict"}, make([]starlark.Value, 1)}
	if err := a.bind(nil, kwargs); err != nil {
		return nil, err
	}
	rows, err := transpose(t, args, a.values[0] != nil && bool(a.values[0].Truth()))
	out := make([]starlark.Value, len(rows))
	for i, r := range rows {
		out[i] = r
	}
	return &iterator{rest: out}, err
}

func filterCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("filter takes a function and a sequence")
	}
	vs, err := iterate(t, a[1])
	if err != nil {
		return nil, err
	}
	var out []starlark.Value
	for _, v := range vs {
		keep := v
		if a[0] != starlark.None {
			if keep, err = starlark.Call(t, a[0], starlark.Tuple{v}, nil); err != nil {
				return nil, err
			}
		}
		b, err := truth(t, keep)
		if err != nil {
			return nil, err
		}
		if b.Truth() {
			out = append(out, v)
		}
	}
	return &iterator{rest: out}, nil
}

// keyed returns what elements are compared by.
func keyed(t *starlark.Thread, vs []starlark.Value, key starlark.Value) ([]starlark.Value, error) {
	if key == nil || key == starlark.None {
		return vs, nil
	}
	out := make([]starlark.Value, len(vs))
	for i, v := range vs {
		k, err := starlark.Call(t, key, starlark.Tuple{v}, nil)
		if err != nil {
			return nil, err
		}
		out[i] = k
	}
	return out, nil
}

// precedes reports whether the operator holds, observing tensors.
func precedes(t *starlark.Thread, op string, x, y starlark.Value) (bool, error) {
	v, err := operators[op].call(t, x, y)
	if err != nil {
		return false, err
	}
	b, err := truth(t, v)
	return err == nil && bool(b.Truth()), err
}

// extreme makes min and max.
func extreme(op string) func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		a := arguments{b.Name(), []string{"key", "default"}, make([]starlark.Value, 2)}
		if err := a.bind(nil, kwargs); err != nil {
			return nil, err
		}
		vs := []starlark.Value(args)
		if len(args) == 1 {
			var err error
			if vs, err = iterate(t, args[0]); err != nil {
				return nil, err
			}
		}
		if len(vs) == 0 {
			if a.values[1] != nil {
				return a.values[1], nil
			}
			return nil, fmt.Errorf("%s() of an empty sequence", b.Name())
		}
		keys, err := keyed(t, vs, a.values[0])
		if err != nil {
			return nil, err
		}
		best := 0
		for i := 1; i < len(vs); i++ {
			better, err := precedes(t, op, keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if better {
				best = i
			}
		}
		return vs[best], nil
	}
}

func sorted(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"sorted", []string{"key", "reverse"}, make([]starlark.Value, 2)}
	if err := a.bind(nil, kwargs); err != nil {
		return nil, err
	}
	if len(args) != 1 {
		return nil, fmt.Errorf("sorted takes one sequence, not %d", len(args))
	}
	vs, err := iterate(t, args[0])
	if err != nil {
		return nil, err
	}
	vs, err = sortValues(t, vs, a.values[0], a.values[1])
	return starlark.NewList(vs), err
}

func sortValues(t *starlark.Thread, vs []starlark.Value, key, reverse starlark.Value) ([]starlark.Value, error) {
	keys, err := keyed(t, vs, key)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(vs))
	for i := range at {
		at[i] = i
	}
	descending := reverse != nil && bool(reverse.Truth())
	slices.SortStableFunc(at, func(i, j int) int {
		if err != nil {
			return 0
		}
		var before, after bool
		if before, err = precedes(t, "lt", keys[i], keys[j]); err == nil && !before {
			after, err = precedes(t, "lt", keys[j], keys[i])
		}
		switch {
		case before == after:
			return 0
		case before != descending:
			return -1
		}
		return 1
	})
	out := make([]starlark.Value, len(vs))
	for i, j := range at {
		out[i] = vs[j]
	}
	return out, err
}

func reversed(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("reversed takes one sequence, not %d", len(a))
	}
	vs, err := iterate(t, a[0])
	vs = slices.Clone(vs)
	slices.Reverse(vs)
	return &iterator{rest: vs}, err
}

func enumerate(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"enumerate", []string{"iterable", "start"}, make([]starlark.Value, 2)}
	if err := a.bind(args, kwargs); err != nil {
		return nil, err
	}
	if a.values[0] == nil {
		return nil, fmt.Errorf("enumerate takes a sequence")
	}
	vs, err := iterate(t, a.values[0])
	if err != nil {
		return nil, err
	}
	start := 0
	if a.values[1] != nil {
		if start, err = starlark.AsInt32(a.values[1]); err != nil {
			return nil, err
		}
	}
	out := make([]starlark.Value, len(vs))
	for i, v := range vs {
		out[i] = starlark.Tuple{starlark.MakeInt(start + i), v}
	}
	return &iterator{rest: out}, nil
}

// iterator is what zip, map, reversed and the like give: it is used up once.
type iterator struct {
	rest []starlark.Value
	more func() (starlark.Value, error) // behind rest; nil at the end
}

func (*iterator) String() string        { return "<iterator>" }
func (*iterator) Type() string          { return "iterator" }
func (*iterator) Freeze()               {}
func (*iterator) Truth() starlark.Bool  { return true }
func (*iterator) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: iterator") }

// Iterate is for "a, b = zip(x, y)", which reads as many values as it has targets, and one.
func (i *iterator) Iterate() starlark.Iterator { return &unpacked{i} }

type unpacked struct{ of *iterator }

// Next gives no value where the next cannot be had: there are too few then.
func (u *unpacked) Next(p *starlark.Value) bool {
	v, err := u.of.next()
	if v == nil || err != nil {
		return false
	}
	*p = v
	return true
}

func (*unpacked) Done() {}

// next returns the next value; nil at the end.
func (i *iterator) next() (v starlark.Value, err error) {
	if len(i.rest) > 0 {
		v, i.rest = i.rest[0], i.rest[1:]
		return v, nil
	}
	if i.more != nil {
		if v, err = i.more(); v == nil {
			i.more = nil
		}
	}
	return v, err
}

// all uses up what is left.
func (i *iterator) all() ([]starlark.Value, error) {
	out := i.rest
	i.rest = nil
	for i.more != nil {
		v, err := i.next()
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, v)
		}
		if len(out) > maxElements {
			return nil, fmt.Errorf("more than %d elements; next() takes one of an endless sequence", maxElements)
		}
	}
	return out, nil
}

func iterCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("iter takes one sequence, not %d", len(a))
	}
	if i, ok := a[0].(*iterator); ok {
		return i, nil
	}
	vs, err := iterate(t, a[0])
	return &iterator{rest: vs}, err
}

func nextCall(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("next takes an iterator and a default")
	}
	i, ok := a[0].(*iterator)
	if !ok {
		return nil, fmt.Errorf("%s is not an iterator", article(a[0].Type()))
	}
	v, err := i.next()
	switch {
	case err != nil || v != nil:
		return v, err
	case len(a) == 2:
		return a[1], nil
	}
	return nil, fmt.Errorf("next() of an iterator that is used up")
}
