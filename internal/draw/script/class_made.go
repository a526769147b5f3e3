package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// totalOrdering is functools.total_ordering: of the comparisons that a class has, it makes
// those that it lacks.
func totalOrdering(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	c, ok := v.(*class)
	if !ok {
		return nil, fmt.Errorf("total_ordering takes a class, not %s", article(v.Type()))
	}
	names := []string{"lt", "le", "gt", "ge"}
	root := slices.IndexFunc(names, func(n string) bool { return c.lookup("__"+n+"__") != nil })
	if root < 0 {
		return nil, fmt.Errorf("must define at least one ordering operation: < > <= >=")
	}
	for i, name := range names {
		if c.lookup("__"+name+"__") != nil {
			continue
		}
		derived := func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 2 {
				return nil, fmt.Errorf("%s takes two values, not %d", name, len(a))
			}
			held, err := operators[names[root]].call(t, a[0], a[1])
			if err != nil {
				return nil, err
			}
			equal, err := operators["eq"].call(t, a[0], a[1])
			if err != nil {
				return nil, err
			}
			same := bool(equal.Truth())
			side := bool(held.Truth()) && !same // of the operator that the class has
			if i/2 != root/2 {
				side = !side && !same
			}
			return starlark.Bool(side || i%2 == 1 && same), nil
		}
		c.define("__"+name+"__", &wrappedMethod{builtin(name, derived), bindsSelf})
	}
	return c, nil
}

// newClass is type(name, bases, attributes).
func newClass(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	name, named := starlark.AsString(a[0])
	bases, several := sequence(a[1])
	attrs, isDict := a[2].(*starlark.Dict)
	if !named || !several || !isDict {
		return nil, fmt.Errorf("type takes a name, a tuple of bases and a dict")
	}
	if _, err := beginClass(t, nil, append(starlark.Tuple{starlark.String(name)}, bases...), nil); err != nil {
		return nil, err
	}
	c := bodiesOf(t).class
	l, loads := t.Local(loadKey).(*loader)
	for _, item := range attrs.Items() {
		k, _ := starlark.AsString(item[0])
		if fn, ok := item[1].(*starlark.Function); ok && isTest(k) {
			m := marks{decorated: decorated{fn: fn}, head: fn}
			if c.methods = append(c.methods, m); loads && c.isTest {
				l.enter(t, m, k, c)
			}
		}
		c.define(k, item[1])
		c.assigns(k)
	}
	return endClass(t, nil)
}
