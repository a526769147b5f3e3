package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// property is what @property gives: a function that computes an attribute, and, of one
// with a setter, another that takes it.
type property struct{ get, set starlark.Callable }

func (*property) String() string        { return "property" }
func (*property) Type() string          { return "property" }
func (*property) Freeze()               {}
func (*property) Truth() starlark.Bool  { return true }
func (*property) Hash() (uint32, error) { return 0, nil }
func (*property) AttrNames() []string   { return []string{"setter"} }

// Attr returns the decorator of the setter.
func (p *property) Attr(name string) (starlark.Value, error) {
	if name != "setter" {
		return nil, nil
	}
	return ofOne(name, func(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
		set, ok := v.(starlark.Callable)
		if !ok {
			return nil, fmt.Errorf("setter takes a function")
		}
		return &property{p.get, set}, nil
	}), nil
}

func makeProperty(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) == 1 {
		if fn, ok := a[0].(starlark.Callable); ok {
			return &property{get: fn}, nil
		}
	}
	return nil, fmt.Errorf("property takes one function")
}

// binding says what a function of a class gets as its first argument.
type binding uint8

const (
	bindsNothing binding = iota // @staticmethod
	bindsClass                  // @classmethod
	bindsSelf
)

// wrappedMethod is a function that a decorator of the engine gives.
type wrappedMethod struct {
	starlark.Callable
	binding binding
}

func (m *wrappedMethod) bind(self starlark.Value, c *class) starlark.Value {
	switch m.binding {
	case bindsClass:
		return bindTo(m.Callable, c)
	case bindsSelf:
		return bindTo(m.Callable, self)
	}
	return m.Callable
}

func wrapMethod(name string, b binding) *starlark.Builtin {
	return builtin(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) == 1 {
			if fn, ok := a[0].(starlark.Callable); ok {
				return &wrappedMethod{fn, b}, nil
			}
		}
		return nil, fmt.Errorf("%s takes one function", name)
	})
}

// abstractMethod is what @abstractmethod gives, until a class has it.
type abstractMethod struct{ starlark.Value }

// CallInternal calls the function.
func (m abstractMethod) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Call(t, m.Value, args, kwargs)
}

func (abstractMethod) Name() string { return "abstractmethod" }

// concrete is an attribute of a class without the mark of @abstractmethod, and whether it
// had one.
func concrete(v starlark.Value) (starlark.Value, bool) {
	switch v := v.(type) {
	case abstractMethod:
		return v.Value, true
	case *property:
		if m, ok := v.get.(abstractMethod); ok {
			get, _ := m.Value.(starlark.Callable)
			return &property{get, v.set}, true
		}
	case *wrappedMethod:
		if m, ok := v.Callable.(abstractMethod); ok {
			fn, _ := m.Value.(starlark.Callable)
			return &wrappedMethod{fn, v.binding}, true
		}
	}
	return v, false
}

// define gives a class an attribute.
func (c *class) define(name string, v starlark.Value) {
	v, isAbstract := concrete(v)
	if c.attrs[name] = v; isAbstract {
		c.abstract = append(c.abstract, name)
	}
}

// missing are the abstract methods that neither a class nor its bases define.
func (c *class) missing() []string {
	var names []string
	for _, k := range c.order {
		for _, name := range k.abstract {
			first := slices.IndexFunc(c.order, func(of *class) bool { return of.attrs[name] != nil })
			if c.strict && c.order[first] == k {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

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
	for _, item := range attrs.Items() {
		k, _ := starlark.AsString(item[0])
		if fn, ok := item[1].(*starlark.Function); ok && isTest(k) {
			c.methods = append(c.methods, marks{decorated: decorated{fn: fn}, head: fn})
		}
		c.define(k, item[1])
		c.assigns(k)
	}
	return endClass(t, nil)
}
