package native

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// scoped runs a call within its with statements.
func (r *run) scoped(c *program.Call) (v *value, err error) {
	if len(c.Scopes) == 0 {
		return r.call(c)
	}
	for _, s := range c.Scopes {
		if strings.HasSuffix(s.Target, "autocast") {
			return nil, fmt.Errorf("%w: %s", errUnsupported, s.Target)
		}
	}
	if r.space != nil {
		r.space.Recording(c.Grad())
		defer r.space.Recording(true)
	}
	err = r.session.Recording(c.Grad(), func() error {
		v, err = r.call(c)
		return err
	})
	return v, err
}

// leafCalls are the calls about leaves and their gradients, which are no operators.
var leafCalls = map[string]func(r *run, c *program.Call) (*value, error){
	"torch.nn.Parameter": (*run).parameter, "torch.nn.parameter.Parameter": (*run).parameter,
	"Tensor.requires_grad_": (*run).requireGrad, "Tensor.retain_grad": (*run).retainGrad, "Tensor.backward": (*run).backwardCall,
	"torch.autograd.backward": (*run).backwardCalls, "torch.autograd.grad": (*run).gradCall, "setattr": (*run).setattr,
}

// leafSigs are their signatures.
var leafSigs = map[string]*op.Sig{
	"torch.nn.Parameter":      op.MustParseSig("Parameter(Tensor data, bool requires_grad=True)"),
	"Tensor.requires_grad_":   op.MustParseSig("requires_grad_(Tensor self, bool requires_grad=True)"),
	"Tensor.retain_grad":      op.MustParseSig("retain_grad(Tensor self)"),
	"Tensor.backward":         op.MustParseSig("backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False)"),
	"torch.autograd.backward": op.MustParseSig("backward(Tensor[1] tensors, Tensor[1]? grad_tensors=None, bool? retain_graph=None, bool create_graph=False)"),
	"torch.autograd.grad":     op.MustParseSig("grad(Tensor[1] outputs, Tensor[1] inputs, Tensor[1]? grad_outputs=None, bool? retain_graph=None, bool create_graph=False, bool only_inputs=True, bool allow_unused=False)"),
}

// bound is the arguments of a call by parameter; nil where it has the default.
func (r *run) bound(c *program.Call) (map[string]any, error) {
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
		if sig.Index(kw.Name) < 0 {
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
func (r *run) parameter(c *program.Call) (*value, error) {
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
	return &value{tensor: r.leaf(c.Result, x.Tensor, wanted)}, nil
}

// leaf makes a variable whose gradient is an outcome.
func (r *run) leaf(name string, t *tensor.Tensor, requiresGrad bool) *eager.Var {
	v := r.session.Leaf(t, requiresGrad)
	if r.space != nil {
		r.space.Leaf(v)
	}
	r.made = append(r.made, made{name, v})
	return v
}

// made is a leaf that a call made.
type made struct {
	name string
	leaf *eager.Var
}

func (r *run) requireGrad(c *program.Call) (*value, error) {
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
func (r *run) wantGrad(c *program.Call, x *eager.Var, on bool) error {
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
	r.made = append(r.made, made{name, x})
	return nil
}

// nameOf returns the first name of the program that stands for a variable.
func (r *run) nameOf(x *eager.Var) string {
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

func (r *run) retainGrad(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	x, ok := m["self"].(*eager.Var)
	if !ok || !x.RequiresGrad() {
		return nil, op.RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
	}
	if r.retained == nil {
		r.retained = map[*eager.Var]bool{}
	}
	r.retained[x] = true
	return &value{}, nil
}

func (r *run) backwardCall(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	m["tensors"], m["grad_tensors"] = m["self"], m["gradient"]
	return r.accumulate(m)
}

func (r *run) backwardCalls(c *program.Call) (*value, error) {
	m, err := r.bound(c)
	if err != nil {
		return nil, err
	}
	return r.accumulate(m)
}

// accumulate differentiates and adds the gradients to those of the leaves.
func (r *run) accumulate(m map[string]any) (*value, error) {
	create := flag(m["create_graph"], false)
	grads, err := r.differentiate(m["tensors"], m["grad_tensors"], create)
	if err != nil {
		return nil, err
	}
	for v, g := range grads {
		x, ok := v.(*eager.Var)
		if !ok || g == nil || !(x.IsLeaf() && x.RequiresGrad() || r.retained[x]) {
			continue
		}
		if err := r.addGrad(x, g); err != nil {
			return nil, err
		}
	}
	return &value{}, nil
}

// addGrad adds a gradient to what a leaf has.
func (r *run) addGrad(x *eager.Var, g op.Value) error {
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
func (r *run) differentiate(outputs, weights any, create bool) (autograd.Cotangents, error) {
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
			if !equalShape(cots[i].Shape(), v.Shape()) {
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

func equalShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (r *run) gradCall(c *program.Call) (*value, error) {
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

// dataOf returns the x of an in-place call on x.data; nil for other calls.
func (r *run) dataOf(call *op.Call) *eager.Var {
	if !call.InPlace {
		return nil
	}
	return r.data[call.Args.AllValues()[0]]
}

// throughData applies an in-place call to x.data, which changes x unnoticed by
// autograd. That is x changed while nothing is recorded, provided that nothing
// was computed from x before: PyTorch would differentiate that with x's new
// elements.
func (r *run) throughData(c *program.Call, call *op.Call, x *eager.Var) (*value, error) {
	data := r.env[c.Args[0].(program.Ref)]
	if call.Def.View != nil || r.read(x) || slices.Contains(call.Args.AllValues()[1:], op.Value(x)) {
		return nil, fmt.Errorf("%w: changing x.data in place after x was used", errUnsupported)
	}
	own := *call
	own.Args.Vals = slices.Clone(call.Args.Vals)
	own.Args.Vals[0] = x
	r.space.Recording(false)
	defer r.space.Recording(true)
	err := r.session.Recording(false, func() error {
		_, err := r.execute(&own)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.refresh(data); err != nil {
		return nil, err
	}
	r.data[data.tensor] = x
	if r.watch != nil {
		r.watch.through = data
	}
	if call.Def.ID() == "setitem" {
		return &value{}, nil
	}
	return data, nil
}

// read reports whether a call has computed with a variable, itself or as the
// state of a module.
func (r *run) read(x *eager.Var) bool {
	read := false
	for _, c := range r.job.Program.Calls[:len(r.out.Values)] {
		args := c.Args
		if op.InPlace(c.Target) || c.Target == "setattr" || r.looks(&c) {
			args = args[1:]
		}
		note := func(ref program.Ref) { read = read || r.env[ref].holds(x) }
		for _, a := range args {
			program.Refs(a, note)
		}
		for _, kw := range c.Kwargs {
			program.Refs(kw.Value, note)
		}
	}
	return read
}

// looks reports whether a call gives an attribute that is no view of its tensor.
func (r *run) looks(c *program.Call) bool {
	ref, ok := c.Args[0].(program.Ref)
	return c.Target == "getattr" && ok && (r.env[ref].module != nil || slices.Contains([]any{"data", "grad", "is_leaf", "requires_grad", "shape", "ndim"}, c.Args[1]))
}

func (v *value) holds(x *eager.Var) bool {
	if v.module == nil {
		return slices.Contains(v.tensors(), x)
	}
	return slices.ContainsFunc(v.module.State(), func(s nn.Slot) bool { return v.module.Value(s.Name) == op.Value(x) })
}

// setattr assigns to an attribute of a tensor or a module.
func (r *run) setattr(c *program.Call) (*value, error) {
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
		if err := target.module.Load(name, v); err != nil {
			return nil, fmt.Errorf("%w: %v", errUnsupported, err)
		}
		return &value{}, nil
	case target.tensor == nil:
	case name == "grad" && args[0] == nil:
		target.tensor.Grad = nil
		return &value{}, nil
	case name == "grad" && isVar:
		if !equalShape(v.Shape(), target.tensor.Shape()) {
			return nil, op.RuntimeError("assigned grad has data of a different size")
		}
		target.tensor.Grad = v
		return &value{}, nil
	case name == "requires_grad":
		return &value{}, r.wantGrad(c, target.tensor, flag(args[0], true))
	case name == "data" && isVar && r.space == nil:
		r.session.replace(target.tensor, v.Tensor)
		return &value{}, nil
	}
	return nil, fmt.Errorf("%w: assigning to the attribute %s", errUnsupported, name)
}

// attribute returns what only leaves, and modules, have; nil for the rest.
func (r *run) attribute(v *value, name string) (*value, error) {
	switch {
	case v.module != nil && name == "training":
		return &value{plain: v.module.Training}, nil
	case v.module != nil:
		if p, ok := v.module.Value(name).(*eager.Var); ok {
			return &value{tensor: p}, nil
		}
		if hasState(v.module, name) {
			return &value{}, nil
		}
	case v.tensor == nil:
	case name == "grad":
		if v.tensor.Grad == nil {
			return &value{}, nil
		}
		return &value{tensor: v.tensor.Grad}, nil
	case name == "is_leaf":
		return &value{plain: v.tensor.IsLeaf()}, nil
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
		if r.data == nil {
			r.data = map[op.Value]*eager.Var{}
		}
		r.data[data.tensor] = v.tensor
		return data, nil
	}
	return nil, nil
}

func hasState(m *nn.Module, name string) bool {
	return name == "bias" && m.Value(name) == nil && m.Value("weight") != nil
}

// leafGrad is what a leaf has from calls of backward, and from the program's end.
func (r *run) leafGrad(v op.Value, end autograd.Cotangents) (*tensor.Tensor, error) {
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
