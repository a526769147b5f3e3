package script

import (
	"fmt"

	"go.starlark.net/starlark"
)

// derivative is a function of torch.autograd.functional. No subject can be
// handed a function of a test file, so it is what PyTorch makes of it: calls
// of the function, of torch.autograd.grad and of a few operators.
type derivative struct {
	params []string
	of     func(j *derivation) (starlark.Value, error)
}

var derivatives map[path]derivative

func init() {
	const under = path("torch.autograd.functional.")
	weighted := []string{"func", "inputs", "v", "create_graph", "strict"}
	derivatives = map[path]derivative{
		under + "jacobian": {[]string{"func", "inputs", "create_graph", "strict", "vectorize", "strategy"}, jacobianOf},
		under + "hessian":  {[]string{"func", "inputs", "create_graph", "strict", "vectorize", "outer_jacobian_strategy"}, hessianOf},
		under + "vjp":      {weighted, vjpOf},
		under + "jvp":      {weighted, jvpOf},
		under + "vhp":      {weighted, vhpOf},
		under + "hvp":      {weighted, hvpOf},
	}
}

// derivation is one call of a derivative.
type derivation struct {
	d      *draw
	given  arguments
	create bool        // of a graph for further derivatives
	inputs tensorTuple // as the function gets them
}

// tensorTuple are tensors, and whether they are one tensor rather than a tuple.
type tensorTuple struct {
	all []*symbol
	one bool
}

func (f derivative) derive(t *starlark.Thread, p path, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, string(p))
	if err != nil {
		return nil, err
	}
	j := &derivation{d: d, given: arguments{string(p), f.params, make([]starlark.Value, len(f.params))}}
	if err := j.given.bind(args, kwargs); err != nil {
		return nil, err
	}
	if j.given.get("func") == nil || j.given.get("inputs") == nil {
		return nil, fmt.Errorf("%s needs a function and inputs", p)
	}
	if v := j.given.get("create_graph"); v != nil {
		j.create = bool(v.Truth())
	}
	inputs, err := d.tensors(j.given.get("inputs"))
	if err != nil {
		return nil, err
	}
	j.inputs.one = inputs.one
	for _, x := range inputs.all {
		if x, err = j.entry(x); err != nil {
			return nil, err
		}
		j.inputs.all = append(j.inputs.all, x)
	}
	return f.of(j)
}

// entry is an input as the function gets it: part of the graph around where
// that goes on, else a leaf.
func (j *derivation) entry(x *symbol) (*symbol, error) {
	if j.create {
		return j.d.apply("Tensor.view_as", x, x)
	}
	y, err := j.d.apply("Tensor.detach", x)
	if err != nil {
		return nil, err
	}
	return j.d.apply("Tensor.requires_grad_", y)
}

// apply records a call that gives a tensor; of a method, the receiver comes first.
func (d *draw) apply(target string, args ...starlark.Value) (*symbol, error) {
	var recv *symbol
	if target[0] == 'T' {
		recv, args = args[0].(*symbol), args[1:]
	}
	v, err := d.call(target, recv, starlark.Tuple(args), nil)
	if err != nil {
		return nil, err
	}
	s := v.(*symbol)
	s.kind = kindTensor
	return s, nil
}

// tensors reads one tensor or several.
func (d *draw) tensors(v starlark.Value) (tensorTuple, error) {
	if a, ok := v.(*attr); ok {
		s, err := a.resolve()
		if err != nil {
			return tensorTuple{}, err
		}
		v = s
	}
	if s, ok := v.(*symbol); ok {
		kind, err := s.known()
		if kind != kindTuple || err != nil {
			return tensorTuple{[]*symbol{s}, true}, err
		}
	}
	vs, err := iterate(d.thread, v)
	if err != nil {
		return tensorTuple{}, err
	}
	var out tensorTuple
	for _, e := range vs {
		t, err := d.tensors(e)
		if err != nil {
			return out, err
		}
		out.all = append(out.all, t.all...)
	}
	return out, nil
}

// value is what a test gets of the tensors.
func (t tensorTuple) value() starlark.Value {
	out := make(starlark.Tuple, len(t.all))
	for i, s := range t.all {
		out[i] = s
	}
	if t.one {
		return out[0]
	}
	return out
}

func (t tensorTuple) list() *starlark.List {
	out := make([]starlark.Value, len(t.all))
	for i, s := range t.all {
		out[i] = s
	}
	return starlark.NewList(out)
}

// outputs calls the function.
func (j *derivation) outputs() (tensorTuple, error) {
	args := make(starlark.Tuple, len(j.inputs.all))
	for i, x := range j.inputs.all {
		args[i] = x
	}
	v, err := starlark.Call(j.d.thread, j.given.get("func"), args, nil)
	if err != nil {
		return tensorTuple{}, err
	}
	return j.d.tensors(v)
}

// loss calls the function, which must give one element.
func (j *derivation) loss() (tensorTuple, error) {
	out, err := j.outputs()
	if err != nil {
		return out, err
	}
	n, err := out.all[0].sizes("numel", nil)
	if err == nil && (!out.one || n != starlark.MakeInt(1)) {
		err = fmt.Errorf("%s: the function must give a tensor of one element", j.given.fn)
	}
	return out, err
}

// grad is torch.autograd.grad, with zeros for what the outputs do not depend on.
func (j *derivation) grad(outputs, inputs tensorTuple, weights starlark.Value, create bool) (tensorTuple, error) {
	found, err := j.d.gradients(outputs.list(), inputs, weights, create)
	out := tensorTuple{found, inputs.one}
	for i, g := range found {
		if g == nil && err == nil {
			found[i], err = j.d.apply("torch.zeros_like", inputs.all[i])
		}
	}
	return out, err
}

// gradients is torch.autograd.grad, which keeps its graph; nil for what the
// outputs do not depend on.
func (d *draw) gradients(outputs starlark.Value, inputs tensorTuple, weights starlark.Value, create bool) ([]*symbol, error) {
	keep := starlark.Bool(true)
	v, err := d.call("torch.autograd.grad", nil, starlark.Tuple{outputs, inputs.list(), weights}, []starlark.Tuple{
		{starlark.String("retain_graph"), keep}, {starlark.String("create_graph"), starlark.Bool(create)}, {starlark.String("allow_unused"), keep},
	})
	if err != nil {
		return nil, err
	}
	found := v.(*symbol)
	seen, err := d.observe(found.ref)
	if err != nil {
		return nil, err
	}
	found.kind, found.names = kindTuple, make([]string, len(inputs.all))
	out := make([]*symbol, len(inputs.all))
	for i := range out {
		if i < len(seen.Tuple) && seen.Tuple[i].Tensor == nil {
			continue
		}
		e, err := found.element(i)
		if err != nil {
			return nil, err
		}
		out[i] = e.(*symbol)
	}
	return out, nil
}

// result is what the derivative gives: without a graph, constants.
func (j *derivation) result(t tensorTuple) (starlark.Value, error) {
	if j.create {
		return t.value(), nil
	}
	out := tensorTuple{one: t.one}
	for _, s := range t.all {
		s, err := j.d.apply("Tensor.detach", s)
		if err != nil {
			return nil, err
		}
		out.all = append(out.all, s)
	}
	return out.value(), nil
}

func (j *derivation) pair(a, b tensorTuple) (starlark.Value, error) {
	x, err := j.result(a)
	if err != nil {
		return nil, err
	}
	y, err := j.result(b)
	return starlark.Tuple{x, y}, err
}

// weights are the argument v; of outputs with one element, ones.
func (j *derivation) weights(like tensorTuple) (starlark.Value, error) {
	v := j.given.get("v")
	if v != nil && v != starlark.None {
		t, err := j.d.tensors(v)
		return t.list(), err
	}
	x, err := j.d.apply("torch.ones_like", like.all[0])
	return starlark.NewList([]starlark.Value{x}), err
}

// jacobianOf stacks the gradients of each element of each output.
func jacobianOf(j *derivation) (starlark.Value, error) {
	outputs, err := j.outputs()
	if err != nil {
		return nil, err
	}
	rows := make(starlark.Tuple, len(outputs.all))
	for i, out := range outputs.all {
		row, err := j.rows(out)
		if err != nil {
			return nil, err
		}
		if rows[i], err = j.result(row); err != nil {
			return nil, err
		}
	}
	if outputs.one {
		return rows[0], nil
	}
	return rows, nil
}

// rows are the Jacobians of one output along each input.
func (j *derivation) rows(out *symbol) (tensorTuple, error) {
	shape, err := out.shape()
	if err != nil {
		return tensorTuple{}, err
	}
	flat, err := j.d.apply("Tensor.reshape", out, starlark.MakeInt(-1))
	if err != nil {
		return tensorTuple{}, err
	}
	n, err := flat.sizes("numel", nil)
	if err != nil {
		return tensorTuple{}, err
	}
	size, err := starlark.AsInt32(n)
	if err != nil || size == 0 || size > maxCalls {
		return tensorTuple{}, lack("%s of an output with %s elements is not supported in test files", j.given.fn, n)
	}
	columns := make([][]starlark.Value, len(j.inputs.all))
	for k := range size {
		e, err := j.d.apply("operator.getitem", flat, starlark.MakeInt(k))
		if err != nil {
			return tensorTuple{}, err
		}
		grads, err := j.grad(tensorTuple{all: []*symbol{e}}, j.inputs, starlark.None, j.create)
		if err != nil {
			return tensorTuple{}, err
		}
		for i, g := range grads.all {
			columns[i] = append(columns[i], g)
		}
	}
	result := tensorTuple{one: j.inputs.one}
	for i, x := range j.inputs.all {
		along, err := x.shape()
		if err != nil {
			return result, err
		}
		s, err := j.d.apply("torch.stack", starlark.NewList(columns[i]), starlark.MakeInt(0))
		if err == nil {
			s, err = j.d.apply("Tensor.view", s, intTuple(append(shape[:len(shape):len(shape)], along...)))
		}
		if err != nil {
			return result, err
		}
		result.all = append(result.all, s)
	}
	return result, nil
}

// hessianOf is the Jacobian of the Jacobian.
func hessianOf(j *derivation) (starlark.Value, error) {
	inner := starlark.NewBuiltin("jacobian", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		in := &derivation{d: j.d, given: j.given, create: true, inputs: j.inputs}
		out, err := in.loss()
		if err != nil {
			return nil, err
		}
		grads, err := in.grad(out, in.inputs, starlark.None, true)
		return grads.value(), err
	})
	outer := *j
	outer.given.values = append([]starlark.Value{inner}, j.given.values[1:]...)
	return jacobianOf(&outer)
}

func vjpOf(j *derivation) (starlark.Value, error) {
	outputs, err := j.outputs()
	if err != nil {
		return nil, err
	}
	v, err := j.weights(outputs)
	if err != nil {
		return nil, err
	}
	grads, err := j.grad(outputs, j.inputs, v, j.create)
	if err != nil {
		return nil, err
	}
	return j.pair(outputs, grads)
}

// zeros are weights to differentiate along.
func (j *derivation) zeros(like tensorTuple) (tensorTuple, error) {
	out := tensorTuple{one: like.one}
	for _, x := range like.all {
		z, err := j.d.apply("torch.zeros_like", x)
		if err == nil {
			z, err = j.d.apply("Tensor.requires_grad_", z)
		}
		if err != nil {
			return out, err
		}
		out.all = append(out.all, z)
	}
	return out, nil
}

// forward differentiates outputs along the inputs: the gradient of the
// backward pass with respect to its weights.
func (j *derivation) forward(outputs tensorTuple) (tensorTuple, error) {
	along, err := j.zeros(outputs)
	if err != nil {
		return along, err
	}
	back, err := j.grad(outputs, j.inputs, along.list(), true)
	if err != nil {
		return back, err
	}
	v, err := j.weights(j.inputs)
	if err != nil {
		return back, err
	}
	return j.grad(back, along, v, j.create)
}

func jvpOf(j *derivation) (starlark.Value, error) {
	outputs, err := j.outputs()
	if err != nil {
		return nil, err
	}
	products, err := j.forward(outputs)
	if err != nil {
		return nil, err
	}
	return j.pair(outputs, products)
}

func vhpOf(j *derivation) (starlark.Value, error) {
	out, err := j.loss()
	if err != nil {
		return nil, err
	}
	first, err := j.grad(out, j.inputs, starlark.None, true)
	if err != nil {
		return nil, err
	}
	v, err := j.weights(j.inputs)
	if err != nil {
		return nil, err
	}
	second, err := j.grad(first, j.inputs, v, j.create)
	if err != nil {
		return nil, err
	}
	return j.pair(out, second)
}

func hvpOf(j *derivation) (starlark.Value, error) {
	out, err := j.loss()
	if err != nil {
		return nil, err
	}
	first, err := j.grad(out, j.inputs, starlark.None, true)
	if err != nil {
		return nil, err
	}
	products, err := j.forward(first)
	if err != nil {
		return nil, err
	}
	return j.pair(out, products)
}
