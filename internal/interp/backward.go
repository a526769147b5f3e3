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
	grads, err := r.differentiate(m["tensors"], m["grad_tensors"], create)
	if err != nil {
		return nil, err
	}
	for v, g := range grads {
		x, ok := v.(*eager.Var)
		if !ok || g == nil || !(x.IsLeaf() && x.RequiresGrad() || r.leaves.retained[x]) {
			continue
		}
		if err := r.addGrad(x, g); err != nil {
			return nil, err
		}
	}
	return &value{}, nil
}

// addGrad adds a gradient to what a leaf has.
func (r *Run) addGrad(x *eager.Var, g op.Value) error {
	if x.Grad != nil {
		now := &value{tensor: x.Grad}
		if err := r.refresh(now); err != nil {
			return err
		}
		err := op.Catch(func() { g = r.session.Builder().Add(now.tensor, g) })
		if err != nil {
			return err
		}
	}
	v, ok := g.(*eager.Var)
	if !ok {
		v = r.session.Leaf(gradOf(g), false)
	}
	x.Grad = v
	return nil
}

// differentiate returns the gradients of outputs, weighted by cotangents.
func (r *Run) differentiate(outputs, weights any, create bool) (autograd.Cotangents, error) {
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
	var values, seeds []op.Value
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
		values, seeds = append(values, v), append(seeds, seed)
	}
	return r.session.Backward(values, seeds, create)
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
	grads, err := r.differentiate(m["outputs"], m["grad_outputs"], flag(m["create_graph"], false))
	if err != nil {
		return nil, err
	}
	out := &value{tuple: []*value{}}
	for _, x := range inputs {
		if x == nil || !x.RequiresGrad() {
			return nil, op.RuntimeError("One of the differentiated Tensors does not require grad")
		}
		switch g := grads[x].(type) {
		case nil:
			if !flag(m["allow_unused"], false) {
				return nil, op.RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.")
			}
			out.tuple = append(out.tuple, &value{})
		case *eager.Var:
			out.tuple = append(out.tuple, &value{tensor: g})
		default:
			out.tuple = append(out.tuple, &value{tensor: r.session.Leaf(gradOf(g), false)})
		}
	}
	return out, nil
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
