package interp

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/eager"
	"plumb/internal/inplace"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
)

// structure takes elements of tuples and attributes apart; nil leaves the call
// to the table.
func (r *Run) structure(c *program.Call) (*value, error) {
	ref, ok := c.Args[0].(program.Ref)
	if !ok || len(c.Args) != 2 {
		return nil, nil
	}
	v := r.env[ref]
	if err := r.refresh(v); err != nil {
		return nil, err
	}
	if i, ok := c.Args[1].(int64); ok && v.tuple != nil && c.Target == "operator.getitem" {
		if i < 0 {
			i += int64(len(v.tuple))
		}
		if i < 0 || i >= int64(len(v.tuple)) {
			return nil, op.IndexError("tuple index out of range")
		}
		return v.tuple[i], nil
	}
	if c.Target != "getattr" {
		return nil, nil
	}
	name, _ := c.Args[1].(string)
	for i, n := range v.names {
		if n == name {
			return v.tuple[i], nil
		}
	}
	if v.tensor != nil {
		switch name {
		case "shape":
			return intTuple(v.tensor.Shape()), nil
		case "ndim":
			return &value{plain: int64(v.tensor.Dim())}, nil
		case "requires_grad":
			return &value{plain: v.tensor.RequiresGrad()}, nil
		}
	}
	if found, err := r.attribute(v, name); found != nil || err != nil {
		return found, err
	}
	if v.tensor != nil && r.table.Lookup("Tensor."+name) != nil {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: attribute %s", errUnsupported, name)
}

// attribute returns what only leaves, and modules, have; nil for the rest.
func (r *Run) attribute(v *value, name string) (*value, error) {
	switch {
	case v.module != nil && name == "training":
		return &value{plain: v.module.Training}, nil
	case v.module != nil:
		if p, ok := v.module.Value(name).(*eager.Var); ok {
			r.readBuffer(v.module, name)
			return &value{tensor: p}, nil
		}
		if hasState(v.module, name) {
			return &value{}, nil
		}
		if sizes := v.module.Sizes(name); sizes != nil {
			return intTuple(sizes), nil
		}
		if given, ok := v.module.Given(name); ok {
			return &value{plain: given}, nil
		}
	case v.tensor == nil:
	case name == "grad":
		if v.tensor.Grad == nil {
			return &value{}, nil
		}
		if r.space == nil && r.gathers() {
			r.space = inplace.New(r.table, host{r.session}) // which add to it
		}
		return &value{tensor: v.tensor.Grad}, nil
	case name == "is_leaf":
		return &value{plain: v.tensor.IsLeaf()}, nil
	case name == "grad_fn" && v.tensor.IsLeaf():
		return &value{}, nil
	case name == "grad_fn":
		return &value{plain: name}, nil
	case name == "data":
		call, err := program.Resolve(r.table, "Tensor.detach", []any{v.tensor}, nil)
		if err != nil {
			return nil, err
		}
		out, err := r.execute(call)
		if err != nil {
			return nil, err
		}
		data := wrap(call, out)
		if r.behind.data == nil {
			r.behind.data = map[op.Value]*eager.Var{}
		}
		r.behind.data[data.tensor] = v.tensor
		return data, nil
	}
	return nil, nil
}

// hasState reports whether a module that lacks a tensor has None in its place.
func hasState(m *nn.Module, name string) bool {
	switch name {
	case "bias":
		return m.Value("weight") != nil || isNorm(m)
	case "bias_ih", "bias_hh":
		return m.Value("weight"+strings.TrimPrefix(name, "bias")) != nil
	case "weight":
		return isNorm(m)
	case "running_mean", "running_var", "num_batches_tracked":
		return isNorm(m) && !strings.Contains(m.Def.Name(), "LayerNorm") && !strings.Contains(m.Def.Name(), "GroupNorm")
	}
	return false
}

func isNorm(m *nn.Module) bool { return strings.Contains(m.Def.Name(), "Norm") }

// setattr assigns to an attribute of a tensor or a module.
func (r *Run) setattr(c *program.Call) (*value, error) {
	if len(c.Args) != 3 {
		return nil, op.TypeError("setattr expected 3 arguments, got %d", len(c.Args))
	}
	ref, _ := c.Args[0].(program.Ref)
	name, _ := c.Args[1].(string)
	target := r.env[ref]
	if target == nil {
		return nil, op.TypeError("setattr of %v", c.Args[0])
	}
	if err := r.refresh(target); err != nil {
		return nil, err
	}
	rest := program.Call{Args: c.Args[2:]}
	args, _, err := rest.OpArgs(r.lookup)
	if err != nil {
		return nil, err
	}
	v, isVar := args[0].(*eager.Var)
	switch {
	case target.module != nil && args[0] == nil && target.module.Drop(name):
		return &value{}, nil
	case target.module != nil && isVar:
		if err := target.module.Assign(name, v); err != nil {
			return nil, fmt.Errorf("%w: %v", errUnsupported, err)
		}
		return &value{}, nil
	case target.tensor == nil:
	case name == "grad" && args[0] == nil:
		target.tensor.Grad = nil
		return &value{}, nil
	case name == "grad" && isVar:
		if !slices.Equal(v.Shape(), target.tensor.Shape()) {
			return nil, op.RuntimeError("assigned grad has data of a different size")
		}
		target.tensor.Grad = v
		return &value{}, nil
	case name == "grad":
		return nil, op.TypeError("assigned grad expected to be a Tensor or None but got grad of type %T", args[0])
	case name == "requires_grad":
		return &value{}, r.wantGrad(c, target.tensor, flag(args[0], true))
	case name == "data" && isVar:
		return &value{}, r.setData(c, target.tensor, v)
	}
	return nil, fmt.Errorf("%w: assigning to the attribute %s", errUnsupported, name)
}
