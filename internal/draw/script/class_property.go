package script

import (
	"fmt"

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
