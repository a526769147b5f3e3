package script

import (
	"fmt"

	"go.starlark.net/starlark"
)

// exitStack is contextlib.ExitStack: what it enters ends with its with statement.
type exitStack struct{ block *block }

func (*exitStack) String() string        { return "ExitStack" }
func (*exitStack) Type() string          { return "ExitStack" }
func (*exitStack) Freeze()               {}
func (*exitStack) Truth() starlark.Bool  { return true }
func (*exitStack) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable") }
func (*exitStack) AttrNames() []string   { return []string{"callback", "enter_context"} }

// Attr returns a method.
func (s *exitStack) Attr(name string) (starlark.Value, error) {
	switch name {
	case "enter_context":
		return builtin(name, s.enter), nil
	case "callback":
		return starlark.NewBuiltin(name, s.callback), nil
	}
	return nil, lack("ExitStack.%s is not supported in test files", name)
}

func (s *exitStack) enter(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 || s.block == nil {
		return nil, lack("ExitStack.enter_context takes a context, within the with statement of the stack")
	}
	if c, ok := contextOf(a[0]).(*manager); ok && (c.raises != nil || c.passes != nil) {
		return nil, lack("ExitStack.enter_context is not supported of what expects an exception")
	}
	if _, err := enter(t, starlark.Tuple{starlark.String(""), a[0]}); err != nil {
		return nil, err
	}
	d, err := drawOf(t, "with")
	if err != nil {
		return nil, err
	}
	entered := d.blocks[len(d.blocks)-1]
	d.blocks = d.blocks[:len(d.blocks)-1]
	s.block.contexts = append(s.block.contexts, entered.contexts...)
	return entered.entered[0], nil
}

func (s *exitStack) callback(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || s.block == nil {
		return nil, lack("ExitStack.callback takes a function, within the with statement of the stack")
	}
	s.block.contexts = append(s.block.contexts, &manager{exit: func(t *starlark.Thread) (starlark.Value, error) {
		return starlark.Call(t, args[0], args[1:], kwargs)
	}})
	return args[0], nil
}
