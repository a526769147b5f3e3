package interp

import (
	"slices"

	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

func (r *Run) backwardCall(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	m["tensors"], m["grad_tensors"] = m["self"], m["gradient"]
	return r.accumulate(m)
}

func (r *Run) backwardCalls(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	return r.accumulate(m)
}

// accumulate differentiates and adds the gradients to those of the leaves.
func (r *Run) accumulate(m map[string]any) (*value, error) {
	create := flag(m["create_graph"], false)
	inputs, err := variables(m["inputs"])
	if err != nil {
		return nil, err
	}
	grads, err := r.differentiate(m["tensors"], m["grad_tensors"], create, values(inputs)...)
	if err == nil {
		err = r.release(m, "tensors", values(inputs)...)
	}
	if err != nil {
		return nil, err
	}
	for v, g := range grads {
		x, ok := v.(*eager.Var)
		if !ok || g == nil || (inputs == nil && !x.Accumulates()) || inputs != nil && !slices.Contains(inputs, x) {
			continue
		}
		if err := r.addGrad(x, g, create); err != nil {
			return nil, err
		}
	}
	return &value{}, nil
}

// addGrad adds a gradient to what a leaf has: in place, where it is not itself to be
// differentiated, as everything sees that has the leaf's gradient by a name.
func (r *Run) addGrad(x *eager.Var, g op.Value, create bool) error {
	now := &value{tensor: x.Grad}
	if err := r.refresh(now); err != nil {
		return err
	}
	if x.Grad != nil && !create && r.space != nil && x.IsLeaf() { // what is retained is added to anew
		call, err := program.Resolve(r.table, "Tensor.add_", []any{now.tensor, g}, nil)
		if err != nil {
			return err
		}
		return r.quietly(call, now.tensor)
	}
	var err error
	switch {
	case x.Grad != nil:
		err = op.Catch(func() { g = r.session.Builder().Add(now.tensor, g) })
	case !create && (r.space != nil || r.gathers()):
		g, err = r.ownGrad(x, g)
	}
	if err != nil {
		return err
	}
	v, ok := g.(*eager.Var)
	if !ok {
		v = r.session.Leaf(gradOf(g), false)
	}
	x.Grad = v
	return nil
}

// ownGrad is a gradient that the leaf alone has, since others may have g, and that lies in
// memory as the leaf does.
func (r *Run) ownGrad(x *eager.Var, g op.Value) (op.Value, error) {
	target := "Tensor.clone"
	if x.Tensor.IsContiguous() && !gradOf(g).IsContiguous() {
		target = "Tensor.contiguous"
	}
	call, err := program.Resolve(r.table, target, []any{g}, nil)
	if err != nil {
		return nil, err
	}
	var out []op.Value
	err = r.session.Recording(false, func() (err error) {
		out, err = r.session.Execute(call)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// gathers reports whether a later pass may add to gradients.
func (r *Run) gathers() bool {
	return slices.ContainsFunc(r.later(), func(c program.Call) bool { return c.IsBackward() })
}

// release ends a pass backward that is not to be repeated.
func (r *Run) release(m map[string]any, outputs string, inputs ...op.Value) error {
	if flag(m["retain_graph"], flag(m["create_graph"], false)) {
		return nil
	}
	outs, err := variables(m[outputs])
	if err == nil {
		r.session.Release(values(outs), inputs...)
	}
	return err
}

func values(vars []*eager.Var) []op.Value {
	var list []op.Value
	for _, v := range vars {
		list = append(list, v)
	}
	return list
}

// differentiate returns the gradients of outputs, weighted by cotangents.
func (r *Run) differentiate(outputs, weights any, create bool, inputs ...op.Value) (autograd.Cotangents, error) {
	outs, err := variables(outputs)
	if err != nil {
		return nil, err
	}
	cots, err := variables(weights)
	if err != nil {
		return nil, err
	}
	if cots != nil && len(cots) != len(outs) {
		return nil, op.RuntimeError("got %d tensors and %d gradients", len(outs), len(cots))
	}
	var seeds []op.Value
	for i, v := range outs {
		if v == nil || !v.RequiresGrad() {
			return nil, op.RuntimeError("element %d of tensors does not require grad and does not have a grad_fn", i)
		}
		var seed op.Value
		switch {
		case cots != nil && cots[i] != nil:
			if !slices.Equal(cots[i].Shape(), v.Shape()) {
				return nil, op.RuntimeError("Mismatch in shape: grad_output[%d] has a shape of %s and output[%d] has a shape of %s.", i, tensor.ShapeString(cots[i].Shape()), i, tensor.ShapeString(v.Shape()))
			}
			seed = cots[i]
		case v.Len() != 1:
			return nil, op.RuntimeError("grad can be implicitly created only for scalar outputs")
		default:
			seed = cotangent(&program.Fill{}, v.Tensor)
		}
		seeds = append(seeds, seed)
	}
	return r.session.Backward(values(outs), seeds, create, inputs...)
}

func (r *Run) gradCall(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	inputs, err := variables(m["inputs"])
	if err != nil {
		return nil, err
	}
	create := flag(m["create_graph"], false)
	var grads autograd.Cotangents
	if flag(m["is_grads_batched"], false) {
		grads, err = r.batched(m["outputs"], m["grad_outputs"], inputs, create)
	} else {
		grads, err = r.differentiate(m["outputs"], m["grad_outputs"], create, values(inputs)...)
	}
	if err == nil {
		err = r.release(m, "outputs", values(inputs)...)
	}
	if err != nil {
		return nil, err
	}
	out := &value{tuple: []*value{}}
	for _, x := range inputs {
		g, err := r.asked(x, grads, flag(m["allow_unused"], false))
		if err != nil {
			return nil, err
		}
		out.tuple = append(out.tuple, g)
	}
	return out, nil
}

// asked is the gradient of an input of torch.autograd.grad.
func (r *Run) asked(x *eager.Var, grads autograd.Cotangents, allowUnused bool) (*value, error) {
	if x == nil || !x.RequiresGrad() {
		return nil, op.RuntimeError("One of the differentiated Tensors does not require grad")
	}
	switch g := grads[x].(type) {
	case nil:
		if !allowUnused {
			return nil, op.RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.")
		}
		return &value{}, nil
	case *eager.Var:
		return &value{tensor: g}, nil
	default:
		return &value{tensor: r.session.Leaf(gradOf(g), false)}, nil
	}
}

// batched returns the gradients for each of the cotangents that weights hold
// along their first dimension, stacked.
func (r *Run) batched(outputs, weights any, inputs []*eager.Var, create bool) (autograd.Cotangents, error) {
	cots, err := variables(weights)
	if err != nil {
		return nil, err
	}
	if len(cots) == 0 || slices.ContainsFunc(cots, func(c *eager.Var) bool { return c == nil || c.Dim() == 0 || c.Shape()[0] != cots[0].Shape()[0] }) {
		return nil, op.RuntimeError("is_grads_batched=True needs grad_outputs with one first dimension")
	}
	b := r.session.Builder()
	stacks := map[op.Value][]any{}
	for i := range cots[0].Shape()[0] {
		var rows []any
		err := op.Catch(func() {
			for _, c := range cots {
				rows = append(rows, b.Reshape(b.Narrow(c, 0, i, 1), c.Shape()[1:]))
			}
		})
		if err != nil {
			return nil, err
		}
		grads, err := r.differentiate(outputs, rows, create, values(inputs)...)
		if err != nil {
			return nil, err
		}
		for _, x := range inputs {
			if g := grads[x]; g != nil {
				stacks[x] = append(stacks[x], g)
			}
		}
	}
	out := autograd.Cotangents{}
	err = op.Catch(func() {
		for x, rows := range stacks {
			out[x] = b.Stack(rows)
		}
	})
	return out, err
}

// leafGrad is what a leaf has from calls of backward, and from the program's end.
func (r *Run) leafGrad(v op.Value, end autograd.Cotangents) (*tensor.Tensor, error) {
	x, ok := v.(*eager.Var)
	g := end[v]
	if !ok || x.Grad == nil {
		return gradOf(g), nil
	}
	now := &value{tensor: x.Grad}
	if err := r.refresh(now); err != nil || g == nil {
		return now.tensor.Tensor, err
	}
	var sum op.Value
	err := op.Catch(func() { sum = r.session.Builder().Add(now.tensor, g) })
	return gradOf(sum), err
}
