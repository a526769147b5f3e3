package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/backend"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// ask returns what the reference gives for a call that the case does not have.
func (d *draw) ask(c program.Call) (backend.Value, error) {
	return d.askIn(*d.prog, c)
}

// askIn is ask of a call behind those of a program, which is the case's or more.
func (d *draw) askIn(p program.Program, c program.Call) (backend.Value, error) {
	c.Result = p.Unused("asked")
	if d.env.Observer == nil {
		d.fault = fmt.Errorf("%s: %w", d.test.Name, ErrNoObserver)
		return backend.Value{}, d.fault
	}
	p.Inputs, p.Calls, p.Backward = slices.Clip(p.Inputs), append(slices.Clip(p.Calls), c), nil
	vs, err := d.env.Observer.Observe(&p, program.Ref(c.Result))
	if err != nil {
		d.fault = err
		return backend.Value{}, err
	}
	return vs[0], nil
}

// groups are the values that a program's calls bring together: what a call changes
// is in the group of its result.
type groups map[program.Ref]program.Ref

// of returns what stands for a value's group.
func (g groups) of(ref program.Ref) program.Ref {
	for g[ref] != "" && g[ref] != ref {
		if above := g[ref]; g[above] != "" {
			g[ref] = g[above]
		}
		ref = g[ref]
	}
	return ref
}

// join brings together what a call has and gives.
func (g groups) join(c *program.Call) {
	root := g.of(program.Ref(c.Result))
	for _, r := range refsOf(c) {
		g[g.of(r)] = root
	}
	g[root] = root
}

// calls are those on which a value may depend: its group, and with it all that
// draws, since draws follow one another.
func (d *draw) calls(ref program.Ref) []program.Call {
	groups, kept := map[program.Ref]bool{d.groups.of(ref): true}, make([]bool, len(d.prog.Calls))
	for i := range d.prog.Calls {
		c := &d.prog.Calls[i]
		switch {
		case c.Target == "torch.manual_seed":
			kept[i] = true
		case program.IsModule(c.Target): // its parameters are drawn, and those of its parts
			kept[i] = true
		case !draws(c.Target) || d.calm(c):
		case len(refsOf(c)) == 0:
			kept[i] = true
		default:
			groups[d.groups.of(program.Ref(c.Result))] = true
		}
	}
	needed := map[program.Ref]bool{}
	for i := len(d.prog.Calls) - 1; i >= 0; i-- {
		c := &d.prog.Calls[i]
		if kept[i] = kept[i] || needed[program.Ref(c.Result)]; kept[i] {
			for _, r := range refsOf(c) {
				needed[r] = true
			}
		}
	}
	var calls []program.Call
	for i := range d.prog.Calls {
		if kept[i] || groups[d.groups.of(program.Ref(d.prog.Calls[i].Result))] {
			calls = append(calls, d.prog.Calls[i])
		}
	}
	return slices.Clip(calls)
}

// calm reports whether a call of a module draws nothing.
func (d *draw) calm(c *program.Call) bool {
	if c.Target != "Module.__call__" && c.Target != "Module.forward" {
		return false
	}
	ref, _ := c.Args[0].(program.Ref)
	m := d.symbols[ref]
	if m == nil || m.children != nil {
		return false
	}
	for _, kind := range []string{"Linear", "Conv", "Norm", "Pool", "Embedding", "Loss", "Pad", "Softmax", "Upsample"} {
		if strings.Contains(m.made, "torch.nn.") && strings.Contains(m.made, kind) && !strings.Contains(m.made, "Fractional") {
			return true
		}
	}
	return slices.Contains([]string{"torch.nn.ReLU", "torch.nn.GELU", "torch.nn.Sigmoid", "torch.nn.Tanh"}, m.made)
}

// refsOf are the values that a call has.
func refsOf(c *program.Call) []program.Ref {
	var refs []program.Ref
	note := func(r program.Ref) { refs = append(refs, r) }
	for _, a := range c.Args {
		program.Refs(a, note)
	}
	for _, kw := range c.Kwargs {
		program.Refs(kw.Value, note)
	}
	return refs
}

// facts are what is known of a tensor that a call made of no other, such as
// torch.randn(2, 3), or that such a tensor was brought to ranks.
type facts struct {
	op.Meta
	leaf bool // it requires a gradient
}

// longProgram is how many calls a program has before what the table tells of a
// tensor is not asked of the reference: a loop would ask more and more.
const longProgram = 200

func (d *draw) long() bool { return len(d.prog.Calls) > longProgram }

// factsOf are those of the result of a call; nil where only the reference tells.
func (d *draw) factsOf(c *program.Call) *facts {
	if c.Target == program.ToGlobal || c.Target == "Tensor.requires_grad_" {
		ref, _ := c.Args[0].(program.Ref)
		of := d.facts[ref]
		if of == nil || c.Target == program.ToGlobal {
			return of
		}
		return &facts{of.Meta, len(c.Args) == 1 && len(c.Kwargs) == 0}
	}
	if !strings.HasPrefix(c.Target, "torch.") || program.IsModule(c.Target) {
		return nil
	}
	args, kwargs, err := c.OpArgs(func(program.Ref) (any, error) { return nil, ErrNoObserver })
	if err != nil {
		return nil
	}
	call, err := program.Resolve(ops.Table(), c.Target, args, kwargs)
	if err != nil || d.env.Float.IsFloat() || call.Def.Traits.Has(op.Dynamic) || call.Def.Sigs()[0].Plain {
		return nil
	}
	metas, err := call.Infer()
	if err != nil || len(metas) != 1 {
		return nil
	}
	return &facts{metas[0], call.MakesLeaf()}
}

// inputsOf are the inputs that calls have, and the one that is asked for.
func (d *draw) inputsOf(calls []program.Call, ref program.Ref) []program.Input {
	used := map[program.Ref]bool{ref: true}
	for i := range calls {
		for _, r := range refsOf(&calls[i]) {
			used[r] = true
		}
	}
	var inputs []program.Input
	for i := range d.prog.Inputs {
		if used[program.Ref(d.prog.Inputs[i].Name)] {
			inputs = append(inputs, d.prog.Inputs[i])
		}
	}
	return inputs
}

// foresee has the program tell of all parameters what is asked of one, its
// gradient or its value by now: they will be asked for next. It returns the
// names by which they are seen, and those of the results to observe.
func (d *draw) foresee(p *program.Program, ref program.Ref) (names, asked []program.Ref) {
	gradients := isParam(d.symbols[d.derives(ref)])
	if !gradients && !isParam(d.symbols[ref]) {
		return nil, nil
	}
	for _, made := range p.Calls {
		s := d.symbols[program.Ref(made.Result)]
		if !isParam(s) {
			continue
		}
		c := program.Call{Result: p.Unused("asked_" + made.Result), Target: "operator.getitem", Args: []any{s.ref, program.Ellipsis{}}}
		name := s.ref
		if gradients {
			c.Target, c.Args[1], name = "getattr", "grad", gradientOf(s.ref)
		}
		p.Calls = append(p.Calls, c)
		names, asked = append(names, name), append(asked, program.Ref(c.Result))
	}
	return names, asked
}

// derives is the tensor whose gradient a result is; "" for other results.
func (d *draw) derives(ref program.Ref) program.Ref {
	if c := d.callOf(ref); c != nil && c.Target == "getattr" && c.Args[1] == "grad" {
		return c.Args[0].(program.Ref)
	}
	return ""
}

// gradientOf names the gradient of a tensor as it is seen by now.
func gradientOf(ref program.Ref) program.Ref { return ref + ".grad" }

// text is what the reference prints for a module, and the name of anything else.
func (s *symbol) text() string {
	if s.kind == kindModule {
		fault := s.d.fault
		v, err := s.d.ask(moduleCall("__repr__", s))
		s.d.fault = fault
		if text, ok := v.Plain.(string); ok && err == nil {
			return text
		}
	}
	return s.String()
}

// moduleMethods are the methods of every torch.nn.Module.
var moduleMethods = strings.Fields(`
	add_module apply bfloat16 buffers children cpu cuda double eval extra_repr float forward half load_state_dict
	modules named_buffers named_children named_modules named_parameters parameters register_buffer
	register_forward_hook register_parameter requires_grad_ state_dict to train type zero_grad`)

// moduleCall is a call of a module's method.
func moduleCall(method string, m *symbol) program.Call {
	return program.Call{Target: "Module." + method, Args: []any{m.ref}}
}

// none is the default of a question for an attribute.
const none = "no such attribute"

// has is hasattr: by the methods that are known, else by what the reference has.
func (s *symbol) has(name string) (bool, error) {
	kind, err := s.known()
	if err != nil {
		return false, err
	}
	switch {
	case kind != kindTensor && kind != kindModule:
		return false, lack("hasattr of a value that is no tensor and no module is not supported in test files")
	case strings.HasPrefix(name, "_"):
		return false, lack("hasattr of %s is not supported in test files", name)
	case kind == kindModule && slices.Contains(moduleMethods, name):
		return true, nil
	case kind == kindTensor:
		if sigs, err := lookup(s.d.env.Signatures, "Tensor."+name); sigs != nil || err != nil {
			return err == nil, err
		}
	}
	v, err := s.d.ask(program.Call{Target: "getattr", Args: []any{s.ref, name, none}})
	return v.Plain != none, err
}

// deepCopy is copy.deepcopy of a tensor, which PyTorch allows of leaves.
func (s *symbol) deepCopy() (starlark.Value, error) {
	kind, err := s.known()
	if err != nil {
		return nil, err
	}
	if kind != kindTensor {
		return nil, lack("copy.deepcopy of a %s is not supported in test files", s.Type())
	}
	now, err := s.d.observe(s.ref)
	if err != nil {
		return nil, err
	}
	if tensor.Extent(now.Tensor.Shape(), now.Tensor.Strides()) != now.Tensor.Len() {
		return nil, lack("copy.deepcopy of a tensor with gaps in its memory is not supported in test files")
	}
	leaf := backend.Value{Plain: true}
	if s.input == nil {
		if leaf, err = s.d.ask(program.Call{Target: "getattr", Args: []any{s.ref, "is_leaf"}}); err != nil {
			return nil, err
		}
	}
	if leaf.Plain != true {
		return nil, fmt.Errorf("only tensors that are leaves of the graph can be copied by copy.deepcopy; %s is none", s.ref)
	}
	var out starlark.Value = s
	targets := []string{"Tensor.detach", "Tensor.clone"}
	if now.RequiresGrad && !isParam(s) {
		targets = append(targets, "Tensor.requires_grad_")
	}
	for _, target := range targets {
		if out, err = s.d.call(target, out.(*symbol), nil, nil); err != nil {
			return nil, err
		}
		out.(*symbol).kind = kindTensor
	}
	if isParam(s) {
		return s.d.apply(s.made, out, starlark.Bool(now.RequiresGrad))
	}
	return out, nil
}
