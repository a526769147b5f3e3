package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/program"
)

func init() {
	for name, f := range map[string]func(*starlark.Thread, starlark.Tuple) (starlark.Value, error){fnWith: enter, fnEntered: entered, fnLeave: leave} {
		predeclared[name] = builtin(name, f)
	}
}

// manager is what a with statement can enter.
type manager struct {
	scope  *program.Scope // nil for what concerns the test alone
	raises *expectation   // the block must be refused by the reference; nil for others
	passes starlark.Tuple // the exceptions with which the block may end; nil for others
	// enter and exit are what the context does itself; nil for nothing.
	enter, exit func(t *starlark.Thread) (starlark.Value, error)
	warned      *starlark.List // the warnings that it records; nil where it records none
}

// expectation is what an assertRaises waits for.
type expectation struct {
	class  starlark.Value // nil for every exception
	caught starlark.Value
}

// AttrNames returns none.
func (*manager) AttrNames() []string { return nil }

// Attr returns the exception that was raised, by unittest's name and pytest's.
func (c *manager) Attr(name string) (starlark.Value, error) {
	if c.raises != nil && (name == "exception" || name == "value") {
		return c.raises.caught, nil
	}
	return nil, nil
}

func (c *manager) String() string {
	if c.scope != nil {
		return c.scope.Target
	}
	return "context"
}
func (*manager) Type() string          { return "context" }
func (*manager) Freeze()               {}
func (*manager) Truth() starlark.Bool  { return true }
func (*manager) Hash() (uint32, error) { return 0, nil }

// block is a with statement that is being executed.
type block struct {
	contexts []*manager
	entered  []starlark.Value
	first    int // call of the program inside the block
}

func newScope(t *starlark.Thread, target string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, _ := t.Local(drawKey).(*draw) // nil where it decorates a function of the module
	c := &pending{d: d, target: target}
	if err := c.arguments(nil, args, kwargs); err != nil {
		return nil, err
	}
	if c.lazy {
		if err := c.drawAll(); err != nil {
			return nil, err
		}
	}
	return &manager{scope: &program.Scope{Target: target, Args: c.args, Kwargs: c.kwargs}}, nil
}

// decorating returns a function that runs within the context, as its decorator.
func (c *manager) decorating(fn starlark.Callable) starlark.Value {
	within := starlark.NewBuiltin(fn.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if _, err := enter(t, starlark.Tuple{starlark.String(""), c}); err != nil {
			return nil, err
		}
		v, err := starlark.Call(t, fn, args, kwargs)
		if err != nil {
			return nil, err
		}
		return leave(t, starlark.Tuple{starlark.MakeInt(1), v})
	})
	return &wrappedMethod{within, bindsSelf}
}

// enter begins a with statement; its arguments are names and contexts in turn.
func enter(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, "with")
	if err != nil {
		return nil, err
	}
	b := &block{first: len(d.prog.Calls)}
	for i := 1; i < len(a); i += 2 {
		switch c := contextOf(a[i]).(type) {
		case *manager:
			if c.scope != nil { // each statement is a block of its own
				s := *c.scope
				c = &manager{scope: &s}
			}
			var as starlark.Value = starlark.None
			if c.enter != nil {
				if as, err = c.enter(t); err != nil {
					return nil, err
				}
			}
			b.contexts, b.entered = append(b.contexts, c), append(b.entered, as)
		case *exitStack:
			c.block = b
			b.contexts, b.entered = append(b.contexts, &manager{}), append(b.entered, c)
		case foreign:
			return nil, c.unavailable()
		default:
			return nil, lack("with %s is not supported in test files", article(a[i].Type()))
		}
	}
	d.blocks = append(d.blocks, b)
	return starlark.True, nil
}

// contextOf makes a context of an object with __enter__ and __exit__.
func contextOf(v starlark.Value) starlark.Value {
	o, ok := v.(*object)
	if !ok || o.class.lookup("__enter__") == nil || o.class.lookup("__exit__") == nil {
		return v
	}
	return &manager{
		enter: func(t *starlark.Thread) (starlark.Value, error) {
			v, _, err := special(t, o, "__enter__")
			return v, err
		},
		exit: func(t *starlark.Thread) (starlark.Value, error) {
			v, _, err := special(t, o, "__exit__", starlark.None, starlark.None, starlark.None)
			return v, err
		},
	}
}

// contextManager is contextlib.contextmanager: what a function yields once is
// what the with statement enters.
func contextManager(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	fn, ok := v.(starlark.Callable)
	if !ok {
		return nil, fmt.Errorf("contextmanager takes a function")
	}
	return starlark.NewBuiltin(fn.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		v, err := starlark.Call(t, fn, args, kwargs)
		i, ok := v.(*iterator)
		if err == nil && !ok {
			err = fmt.Errorf("%s does not yield", fn.Name())
		}
		if err != nil {
			return nil, err
		}
		next := func(*starlark.Thread) (starlark.Value, error) { return i.next() }
		return &manager{enter: next, exit: next}, nil
	}), nil
}

func entered(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, "with")
	if err != nil {
		return nil, err
	}
	i, _ := starlark.AsInt32(a[0])
	return d.blocks[len(d.blocks)-1].entered[i], nil
}

// leave ends with statements: how many, and the value that a return gives.
func leave(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, "with")
	if err != nil {
		return nil, err
	}
	n, _ := starlark.AsInt32(a[0])
	for range n {
		b := d.blocks[len(d.blocks)-1]
		d.blocks = d.blocks[:len(d.blocks)-1]
		for _, c := range slices.Backward(b.contexts) {
			if c.exit != nil {
				if _, err := c.exit(t); err != nil {
					return nil, err
				}
			}
			if c.raises != nil {
				return nil, d.refused(b.first)
			}
		}
	}
	if len(a) == 2 {
		return a[1], nil
	}
	return starlark.None, nil
}

// current returns the scopes around a call.
func (d *draw) current() []*program.Scope {
	var out []*program.Scope
	for _, b := range d.blocks {
		for _, c := range b.contexts {
			if c.scope != nil {
				out = append(out, c.scope)
			}
		}
	}
	return out
}

// refused ends the draw with a program that both sides must refuse.
func (d *draw) refused(first int) error {
	d.prog.Raises = true
	last := d.prog.Calls[len(d.prog.Calls)-1].Result
	delete(d.seen, program.Ref(last))
	if _, err := d.observe(program.Ref(last)); err != nil {
		return err
	}
	d.prog.Raises = false
	return errNothingRaised
}

// assertRaises is a context, or a call with the function that must raise.
func assertRaises(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, "assertRaises")
	if err != nil {
		return nil, err
	}
	m := &manager{raises: &expectation{}}
	if len(args) > 0 {
		m.raises.class = args[0]
	}
	if len(args) < 2 {
		return m, nil
	}
	fn, ok := args[1].(starlark.Callable)
	if !ok {
		return m, nil
	}
	call := starlark.NewBuiltin(fn.Name(), func(t *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return starlark.Call(t, fn, args[2:], kwargs)
	})
	_, err = d.expect(t, call, m)
	return starlark.None, err
}

// suppress is contextlib.suppress.
func suppress(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return &manager{passes: append(starlark.Tuple{}, a...)}, nil
}

// subTest is a context without effect.
func subTest(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return &manager{}, nil
}
