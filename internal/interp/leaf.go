package interp

import (
	"strings"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// leaves are the variables whose gradients are outcomes.
type leaves struct {
	inputs []*eager.Var
	made   []made
}

// made is a leaf that a call made.
type made struct {
	name string
	leaf *eager.Var
}

// leafCalls are the calls about leaves, their gradients and draws, which are no operators.
var leafCalls = map[string]func(r *Run, c *program.Call) (*value, error){
	"torch.nn.Parameter": (*Run).parameter, "torch.nn.parameter.Parameter": (*Run).parameter,
	"Tensor.requires_grad_": (*Run).requireGrad, "Tensor.retain_grad": (*Run).retainGrad, "Tensor.backward": (*Run).backwardCall,
	"torch.autograd.backward": (*Run).backwardCalls, "torch.autograd.grad": (*Run).gradCall, "setattr": (*Run).setattr,
	"torch.manual_seed": (*Run).manualSeed,
}

// leafSigs are their signatures.
var leafSigs = map[string]*op.Sig{
	"torch.nn.Parameter":      op.MustParseSig("Parameter(Tensor data, bool requires_grad=True)"),
	"Tensor.requires_grad_":   op.MustParseSig("requires_grad_(Tensor self, bool requires_grad=True)"),
	"Tensor.retain_grad":      op.MustParseSig("retain_grad(Tensor self)"),
	"Tensor.backward":         op.MustParseSig("backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False, Tensor[1]? inputs=None)"),
	"torch.autograd.backward": op.MustParseSig("backward(Tensor[1] tensors, Tensor[1]? grad_tensors=None, bool? retain_graph=None, bool create_graph=False, Tensor[1]? inputs=None)"),
	"torch.manual_seed":       op.MustParseSig("manual_seed(int seed)"),
	"torch.autograd.grad":     op.MustParseSig("grad(Tensor[1] outputs, Tensor[1] inputs, Tensor[1]? grad_outputs=None, bool? retain_graph=None, bool create_graph=False, bool only_inputs=True, bool allow_unused=False, bool is_grads_batched=False)"),
}

// manualSeed begins the draws of a seed.
func (r *Run) manualSeed(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	seed, ok := m["seed"].(int64)
	if !ok {
		return nil, op.TypeError("manual_seed takes an int")
	}
	r.session.Reseed(uint64(seed))
	return &value{}, nil
}

// bound is the arguments of a call by parameter; nil where it has the default.
func (r *Run) bound(c *program.Call) (map[string]any, error) {
	args, kwargs, err := c.OpArgs(r.lookup)
	if err != nil {
		return nil, err
	}
	sig := leafSigs[strings.Replace(c.Target, ".parameter.", ".", 1)]
	if len(args) > len(sig.Params) {
		return nil, op.TypeError("%s() takes %d positional arguments but %d were given", sig.Name, len(sig.Params), len(args))
	}
	m := map[string]any{}
	for i, a := range args {
		m[sig.Params[i].Name] = a
	}
	for _, kw := range kwargs {
		if sig.Index(op.AnyArg(kw.Name)) < 0 {
			return nil, op.TypeError("%s() got an unexpected keyword argument '%s'", sig.Name, kw.Name)
		}
		m[kw.Name] = kw.Value
	}
	return m, nil
}

// variables reads one tensor or several; nil stands for None among them.
func variables(v any) ([]*eager.Var, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case *eager.Var:
		return []*eager.Var{v}, nil
	case []any:
		out := make([]*eager.Var, len(v))
		for i, e := range v {
			x, ok := e.(*eager.Var)
			if e != nil && !ok {
				return nil, op.TypeError("expected Tensor as element %d, but got %s", i, op.TypeName(e))
			}
			out[i] = x
		}
		return out, nil
	}
	return nil, op.TypeError("expected a Tensor or a sequence of them, not %s", op.TypeName(v))
}

func flag(v any, otherwise bool) bool {
	if b, ok := v.(bool); ok {
		return b
	}
	return otherwise
}

// parameter makes a leaf of a tensor's elements.
func (r *Run) parameter(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	x, ok := m["data"].(*eager.Var)
	if !ok {
		return nil, op.TypeError("expected a Tensor, not %s", op.TypeName(m["data"]))
	}
	wanted := flag(m["requires_grad"], true)
	if wanted && !x.DType().IsDifferentiable() {
		return nil, op.RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
	}
	p := r.leaf(c.Result, x.Tensor, wanted)
	if r.space != nil && wanted {
		if err := r.underlie(x, p); err != nil {
			return nil, err
		}
	}
	return &value{tensor: p}, nil
}

// underlie makes a leaf the memory of x, whose elements it has.
func (r *Run) underlie(x, leaf *eager.Var) error {
	view, err := program.Resolve(r.table, "Tensor.detach", []any{leaf}, nil)
	if err == nil {
		r.space.Underlie(x, leaf, view)
	}
	return err
}

// leaf makes a variable whose gradient is an outcome.
func (r *Run) leaf(name string, t *tensor.Tensor, requiresGrad bool) *eager.Var {
	v := r.session.Leaf(t, requiresGrad)
	if r.space != nil {
		r.space.Leaf(v)
	}
	r.leaves.made = append(r.leaves.made, made{name, v})
	return v
}

func (r *Run) requireGrad(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	x, ok := m["self"].(*eager.Var)
	if !ok {
		return nil, op.TypeError("expected a Tensor, not %s", op.TypeName(m["self"]))
	}
	return &value{tensor: x}, r.wantGrad(c, x, flag(m["requires_grad"], true))
}

// wantGrad switches requires_grad of a leaf.
func (r *Run) wantGrad(c *program.Call, x *eager.Var, on bool) error {
	switch {
	case !x.IsLeaf() && !on:
		return op.RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
	case !x.IsLeaf():
		return nil
	case on && !x.DType().IsDifferentiable():
		return op.RuntimeError("only Tensors of floating point and complex dtype can require gradients")
	}
	x.SetRequiresGrad(on)
	if r.space != nil {
		r.space.Leaf(x)
	}
	name := c.Result
	for ref, v := range r.env {
		if v.tensor == x && c.Target == "setattr" && c.Args[0] == any(ref) {
			name = string(ref)
		}
	}
	if first := r.nameOf(x); first != "" {
		name = first
	}
	r.leaves.made = append(r.leaves.made, made{name, x})
	return nil
}

// nameOf returns the first name of the program that stands for a variable.
func (r *Run) nameOf(x *eager.Var) string {
	p := r.job.Program
	for i := range p.Inputs {
		if v := r.env[program.Ref(p.Inputs[i].Name)]; v != nil && v.tensor == x {
			return p.Inputs[i].Name
		}
	}
	for i := range p.Calls {
		if v := r.env[program.Ref(p.Calls[i].Result)]; v != nil && v.tensor == x {
			return p.Calls[i].Result
		}
	}
	return ""
}

func (r *Run) retainGrad(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	x, ok := m["self"].(*eager.Var)
	if !ok || !x.RequiresGrad() {
		return nil, op.RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
	}
	x.RetainGrad()
	return &value{}, nil
}
