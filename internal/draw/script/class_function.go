package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// functionClass are functions with a gradient of their own: classes that
// derive from torch.autograd.Function. No subject can be handed one. What is
// recorded is forward on constants, y, and behind it a term that is zero and
// has backward's gradient: backward is linear in the gradient g that it is
// given, J'g, so that the derivative of <backward(g), x - x'> with respect to
// g is J(x - x'), x' being x as a constant.
type functionClass struct{ plainClass }

func (f functionClass) attr(o *object, name string) (starlark.Value, error) {
	return f.ofClass(o.class, name)
}

// ofClass returns what such a class has beside its own methods.
func (functionClass) ofClass(c *class, name string) (starlark.Value, error) {
	if name != "apply" {
		return nil, lack("class %s has no attribute %s", c.name, name)
	}
	return starlark.NewBuiltin(c.name+".apply", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		d, err := drawOf(t, c.name+".apply")
		if err != nil {
			return nil, err
		}
		return (&application{d: d, class: c, args: args}).run()
	}), nil
}

// application is one call of apply.
type application struct {
	d     *draw
	class *class
	args  starlark.Tuple
	ctx   *object
}

// contextClass is the class of ctx.
var contextClass = func() *class {
	c := &class{name: "Function", attrs: map[string]starlark.Value{}, inherited: contextMethods{}}
	c.order = []*class{c}
	return c
}()

// contextMethods are the methods of ctx.
type contextMethods struct{ plainClass }

func (contextMethods) attr(o *object, name string) (starlark.Value, error) {
	switch name {
	case "save_for_backward":
		return builtin(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return starlark.None, o.SetField("saved_tensors", a)
		}), nil
	case "saved_tensors":
		return starlark.Tuple{}, nil
	case "mark_non_differentiable", "mark_dirty", "set_materialize_grads":
		return ignoredCall(name), nil
	}
	return nil, nil
}

func (a *application) method(name string, args starlark.Tuple) (starlark.Value, error) {
	v, err := a.class.Attr(name)
	if err != nil {
		return nil, err
	}
	return starlark.Call(a.d.thread, v, append(starlark.Tuple{a.ctx}, args...), nil)
}

func (a *application) run() (starlark.Value, error) {
	a.ctx = &object{class: contextClass, fields: map[string]starlark.Value{}, thread: a.d.thread}
	inputs, err := a.differentiable()
	if err != nil {
		return nil, err
	}
	wanted := make(starlark.Tuple, len(a.args))
	for i := range a.args {
		wanted[i] = starlark.Bool(inputs[i] != nil)
	}
	if err := a.ctx.SetField("needs_input_grad", wanted); err != nil {
		return nil, err
	}
	var result starlark.Value
	err = a.d.within(func() error {
		result, err = a.method("forward", a.args)
		return err
	})
	if err != nil || len(inputs) == 0 {
		return result, err
	}
	outputs, err := a.d.tensors(result)
	if err != nil {
		return nil, err
	}
	term, err := a.term(outputs, inputs)
	if err != nil {
		return nil, err
	}
	for i, y := range outputs.all {
		if term.all[i] == nil {
			continue
		}
		if slices.ContainsFunc(a.args, func(v starlark.Value) bool { x, ok := v.(*symbol); return ok && x.ref == y.ref }) { // it has the gradient of backward alone
			if y, err = a.d.apply("Tensor.detach", y); err != nil {
				return nil, err
			}
		}
		if outputs.all[i], err = a.d.apply("operator.add", y, term.all[i]); err != nil {
			return nil, err
		}
	}
	return outputs.value(), nil
}

// differentiable are the arguments that require a gradient, by position.
func (a *application) differentiable() (map[int]*symbol, error) {
	out := map[int]*symbol{}
	for i, v := range a.args {
		s, err := a.d.wanting(v)
		if err != nil {
			return nil, err
		}
		if s != nil {
			a.args[i], out[i] = s, s
		}
	}
	return out, nil
}

// wanting is v where it is a tensor that requires a gradient; nil for others.
func (d *draw) wanting(v starlark.Value) (*symbol, error) {
	if at, ok := v.(*attr); ok {
		s, err := at.resolve()
		if err != nil {
			return nil, err
		}
		v = s
	}
	s, ok := v.(*symbol)
	if !ok {
		return nil, nil
	}
	if kind, err := s.known(); kind != kindTensor || err != nil {
		return nil, err
	}
	if wants, err := s.property("requires_grad"); wants != starlark.True || err != nil {
		return nil, err
	}
	return s, nil
}

// term is the zero behind each output that has the gradient of backward.
func (a *application) term(outputs tensorTuple, inputs map[int]*symbol) (tensorTuple, error) {
	defer a.d.withoutHooks()()
	j := &derivation{d: a.d, create: true, given: arguments{a.class.name + ".apply", nil, nil}}
	along, err := j.zeros(outputs)
	if err != nil {
		return along, err
	}
	args := make(starlark.Tuple, len(along.all))
	for i, g := range along.all {
		args[i] = g
	}
	a.d.inBackward++
	v, err := a.method("backward", args)
	a.d.inBackward--
	if err != nil {
		return along, err
	}
	grads, ok := v.(starlark.Tuple)
	if !ok {
		grads = starlark.Tuple{v}
	}
	var sum *symbol
	for i := range a.args {
		x := inputs[i]
		if x == nil {
			continue
		}
		if i >= len(grads) {
			return along, fmt.Errorf("%s.backward returned %d gradients, expected %d", a.class.name, len(grads), len(a.args))
		}
		if grads[i] == starlark.None {
			continue
		}
		part, err := a.product(grads[i], x)
		if err == nil && sum != nil {
			part, err = a.d.apply("operator.add", sum, part)
		}
		if err != nil {
			return along, err
		}
		sum = part
	}
	if sum == nil {
		return tensorTuple{make([]*symbol, len(outputs.all)), outputs.one}, nil
	}
	return j.grad(tensorTuple{all: []*symbol{sum}}, along, starlark.None, true)
}

// product is <g, x - x'>.
func (a *application) product(g starlark.Value, x *symbol) (*symbol, error) {
	constant, err := a.d.apply("Tensor.detach", x)
	if err != nil {
		return nil, err
	}
	change, err := a.d.apply("operator.sub", x, constant)
	if err != nil {
		return nil, err
	}
	p, err := a.d.apply("operator.mul", g, change)
	if err != nil {
		return nil, err
	}
	return a.d.apply("Tensor.sum", p)
}
