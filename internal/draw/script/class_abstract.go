package script

import (
	"slices"

	"go.starlark.net/starlark"
)

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
