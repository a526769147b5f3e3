package script

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"plumb/program"
)

func init() {
	for name, f := range map[string]func(*starlark.Thread, starlark.Tuple) (starlark.Value, error){
		fnAttempt: attempt, fnExpect: expect, fnCaught: caught, fnError: errorOf, fnAgain: again, fnEnded: ended,
		fnFlow: leaving, fnLeft: left, fnResult: result, fnCell: makeCell, fnLet: let,
		fnGlobal: nothing, fnNonlocal: nothing,
	} {
		predeclared[name] = builtin(name, f)
	}
}

func nothing(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return starlark.None, nil }

// outcome is how the body of a try statement ended: with an error, by leaving
// the code around, or, where both are empty, at its end.
type outcome struct {
	how   string
	value starlark.Value // of a return
	err   error
}

func (*outcome) String() string        { return "outcome" }
func (*outcome) Type() string          { return "outcome" }
func (*outcome) Freeze()               {}
func (*outcome) Truth() starlark.Bool  { return true }
func (*outcome) Hash() (uint32, error) { return 0, nil }

// attempt runs the body of a try statement.
func attempt(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	d, _ := t.Local(drawKey).(*draw)
	d.trying++
	out, err := d.attempt(t, a[0])
	d.trying--
	return out, err
}

// attempt runs a body; an exception of it is part of the outcome.
func (d *draw) attempt(t *starlark.Thread, body starlark.Value) (*outcome, error) {
	blocks := len(d.blocks)
	v, err := starlark.Call(t, body, nil, nil)
	if err == nil {
		if o, ok := v.(*outcome); ok {
			return o, nil
		}
		return &outcome{}, nil
	}
	if !d.canCatch(err) {
		return nil, err
	}
	d.blocks = d.blocks[:blocks]
	return &outcome{err: err}, nil
}

// canCatch reports whether an error is an exception, rather than the end of the draw.
func (d *draw) canCatch(err error) bool {
	var lack *unsupportedInFiles
	var evalErr *starlark.EvalError
	if d.fault != nil || errors.As(err, &lack) || errors.Is(err, errTurn) {
		return false
	}
	return !errors.As(err, &evalErr) || d.thread.ExecutionSteps() < maxSteps
}

// demand runs the last call of the program on the reference, inside a block
// that may go on without it. A call that is refused is none of the program.
func (d *draw) demand(s *symbol) error {
	_, err := d.observe(s.ref)
	class, message, ok := refusalOf(err)
	if !ok {
		return err
	}
	d.fault = nil
	d.prog.Calls = d.prog.Calls[:len(d.prog.Calls)-1]
	delete(d.symbols, s.ref)
	return &refusedError{class, message}
}

// refusalOf is the exception with which the reference has refused a program.
func refusalOf(err error) (class, message string, ok bool) {
	var no refusal
	if !errors.As(err, &no) {
		return "", "", false
	}
	return no.Raised()
}

// expect runs the body of a with statement that expects an exception, or lets it pass.
func expect(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, "assertRaises")
	if err != nil {
		return nil, err
	}
	m, ok := a[1].(*manager)
	if ok && m.passes != nil {
		return d.suppressing(t, a[0], m.passes)
	}
	if !ok || m.raises == nil {
		return nil, lack("with %s is not supported in test files", article(a[1].Type()))
	}
	return d.expect(t, a[0], m)
}

// suppressing runs the body of a with statement that exceptions of some classes end.
func (d *draw) suppressing(t *starlark.Thread, body starlark.Value, classes starlark.Tuple) (starlark.Value, error) {
	d.trying++
	out, err := d.attempt(t, body)
	d.trying--
	if err != nil || out.err == nil {
		return out, err
	}
	if !isException(exceptionOf(out.err), classes) {
		return nil, out.err
	}
	return &outcome{}, nil
}

// expect runs what must raise. An exception of the test file itself is the end
// of the block alone. Calls of torch must be refused by both sides, and the
// program ends with them: of several such blocks, each ends the program of
// another case, and the others are left out of it.
func (d *draw) expect(t *starlark.Thread, body starlark.Value, m *manager) (starlark.Value, error) {
	first := len(d.prog.Calls)
	d.expecting++
	out, err := d.attempt(t, body)
	d.expecting--
	if _, _, raised := refusalOf(d.fault); raised && len(d.prog.Calls) > first { // which the body has looked at
		d.fault, out, err = nil, &outcome{}, nil
	}
	switch {
	case err != nil:
		return nil, err
	case out.err != nil:
		if v := m.raises.class; v != nil && !isException(exceptionOf(out.err), v) {
			return nil, out.err
		}
	case len(d.prog.Calls) == first:
		return nil, errNothingRaised
	case d.refusals == d.env.Index%d.test.endings():
		return nil, d.refused(first)
	default:
		d.refusals++
		if out.err, err = d.without(first); err != nil {
			return nil, err
		}
	}
	m.raises.caught = exceptionOf(out.err)
	return &outcome{}, nil
}

// errNothingRaised is the failure of a block that expects an exception.
var errNothingRaised = &assertionError{"the test's assertion failed on the reference: nothing was raised"}

// without takes the calls from the one on that the reference refuses out of the
// program, and returns what it said.
func (d *draw) without(first int) (refused, err error) {
	all := d.prog.Calls
	for n := first; n < len(all); n++ {
		d.prog.Calls = all[: n+1 : n+1]
		err := d.demand(d.symbols[program.Ref(all[n].Result)])
		var no *refusedError
		if errors.As(err, &no) {
			return no, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errNothingRaised
}

func outcomeOf(a starlark.Tuple) *outcome { return a[0].(*outcome) }

// caught is the condition of an except clause.
func caught(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	o := outcomeOf(a)
	return starlark.Bool(o.err != nil && (len(a) == 1 || isException(exceptionOf(o.err), a[1]))), nil
}

// errorOf is the exception that an except clause names.
func errorOf(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return exceptionOf(outcomeOf(a).err), nil
}

// again raises what was not caught.
func again(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return starlark.None, outcomeOf(a).err
}

// ended reports whether the body ran to its end.
func ended(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	o := outcomeOf(a)
	return starlark.Bool(o.err == nil && o.how == ""), nil
}

// leaving is the result of a body that leaves the code around.
func leaving(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return &outcome{how: string(a[0].(starlark.String)), value: a[1]}, nil
}

func left(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return starlark.Bool(outcomeOf(a).how == string(a[1].(starlark.String))), nil
}

func result(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return outcomeOf(a).value, nil
}

// cell holds a variable.
type cell struct {
	name   string
	value  starlark.Value
	frozen bool
}

func (c *cell) String() string      { return c.name }
func (*cell) Type() string          { return "cell" }
func (*cell) Truth() starlark.Bool  { return true }
func (*cell) Hash() (uint32, error) { return 0, nil }
func (*cell) AttrNames() []string   { return nil }

// Freeze makes the variable constant.
func (c *cell) Freeze() {
	if c.frozen = true; c.value != nil {
		c.value.Freeze()
	}
}

// Attr returns the variable.
func (c *cell) Attr(string) (starlark.Value, error) {
	if c.value == nil {
		return nil, fmt.Errorf("local variable '%s' referenced before assignment", c.name)
	}
	return c.value, nil
}

// SetField assigns the variable.
func (c *cell) SetField(_ string, v starlark.Value) error {
	if c.frozen {
		return fmt.Errorf("%s can only be assigned inside a test", c.name)
	}
	c.value = v
	return nil
}

func makeCell(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	c := &cell{name: str(a[0])}
	if len(a) == 2 {
		c.value = a[1]
	}
	return c, nil
}

// let is the expression x := e.
func let(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	c, ok := a[0].(*cell)
	if !ok {
		return nil, fmt.Errorf(":= needs a variable")
	}
	return a[1], c.SetField("", a[1])
}
