package interp

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
)

// behindAutograd is what changes leaves though autograd does not notice.
type behindAutograd struct {
	data map[op.Value]*eager.Var // what x.data gave, and x
}

// counts reports whether PyTorch counts what a call changes in place as a change of another
// name too: x.data, with its views, has a version counter of its own.
func (r *Run) counts(c *program.Call, name program.Ref) bool {
	if r.behind.data == nil || len(c.Args) == 0 {
		return true
	}
	changed, ok := c.Args[0].(program.Ref)
	if to := c.Out(); to != "" {
		changed, ok = to, true
	}
	return !ok || r.counter(changed) == r.counter(name)
}

// counter is the x.data that a value is or comes from; "" for none. It is asked of values that
// share memory, which come from one another by views alone.
func (r *Run) counter(name program.Ref) program.Ref { return r.comesFrom(name, "data") }

// comesFrom is the attribute of a tensor that a value is or comes from; "" for none.
func (r *Run) comesFrom(name program.Ref, attribute string) program.Ref {
	calls := r.job.Program.Calls[:min(len(r.out.Values)+1, len(r.job.Program.Calls))]
	for i := len(calls) - 1; i >= 0; i-- {
		c := &calls[i]
		if program.Ref(c.Result) != name || len(c.Args) == 0 {
			continue
		}
		if c.Target == "getattr" && c.Args[1] == attribute {
			return name
		}
		of, ok := c.Args[0].(program.Ref)
		if !ok {
			return ""
		}
		name = of
	}
	return ""
}

// dataOf returns the x of an in-place call on x.data; nil for other calls.
func (r *Run) dataOf(call *op.Call) *eager.Var {
	if !call.InPlace {
		return nil
	}
	return r.behind.data[call.Args.AllValues()[0]]
}

// throughData applies an in-place call to x.data, which changes x unnoticed by
// autograd. That is x changed while nothing is recorded, provided that nothing
// that was computed from x before is differentiated after: PyTorch would do that
// with x's new elements.
func (r *Run) throughData(c *program.Call, call *op.Call, x *eager.Var) (*value, error) {
	data := r.env[c.Args[0].(program.Ref)]
	if call.Def.View != nil || r.differentiatedLater(x) || slices.Contains(call.Args.AllValues()[1:], op.Value(x)) {
		return nil, fmt.Errorf("%w: changing x.data in place between what was computed from x and its gradient", errUnsupported)
	}
	if c.Grad() && slices.ContainsFunc(call.Args.AllValues()[1:], eager.RequiresGrad) {
		return r.withHistory(c, call, x)
	}
	if err := r.quietly(call, x); err != nil {
		return nil, err
	}
	if err := r.refresh(data); err != nil {
		return nil, err
	}
	r.behind.data[data.tensor] = x
	if call.Def.InPlace.NoResult {
		return &value{}, nil
	}
	return data, nil
}

// quietly applies an in-place call to x in place of its first argument, unrecorded.
func (r *Run) quietly(call *op.Call, x op.Value) error {
	r.space.Recording(false)
	defer r.space.Recording(true)
	return r.session.Recording(false, func() error {
		_, err := r.execute(onto(call, x))
		return err
	})
}

// onto is a call with another first argument.
func onto(call *op.Call, x op.Value) *op.Call {
	own := *call
	own.Args.Vals = slices.Clone(call.Args.Vals)
	own.Args.Vals[0] = x
	return &own
}

// withHistory applies an in-place call to x.data with an argument that requires a gradient:
// x.data has the history of the result then, and x its elements alone.
func (r *Run) withHistory(c *program.Call, call *op.Call, x *eager.Var) (*value, error) {
	data := c.Args[0].(program.Ref)
	again := slices.DeleteFunc(slices.Clone(r.later()), func(c program.Call) bool { // x.data += y ends with it
		if len(c.Args) == 0 {
			return false
		}
		of, ok := c.Args[0].(program.Ref)
		return ok && c.Target == "setattr" && c.Args[1] == "data" && r.named(of, x)
	})
	if refersTo(again, map[program.Ref]bool{data: true, program.Ref(c.Result): true}) {
		return nil, fmt.Errorf("%w: using x.data after a change in place that is differentiated", errUnsupported)
	}
	apply := func(target string, args ...any) (op.Value, error) {
		call, err := program.Resolve(r.table, target, args, nil)
		if err != nil {
			return nil, err
		}
		out, err := r.execute(call)
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}
	own, err := apply("Tensor.clone", r.env[data].tensor)
	if err != nil {
		return nil, err
	}
	if _, err := r.execute(onto(call, own)); err != nil {
		return nil, err
	}
	if own, err = r.space.Current(own); err != nil {
		return nil, err
	}
	r.env[data].tensor = own.(*eager.Var)
	elements, err := program.Resolve(r.table, "Tensor.copy_", []any{x, own}, nil)
	if err != nil {
		return nil, err
	}
	return r.env[data], r.quietly(elements, x)
}

// named reports whether a name stands for x, now or, as that of a module's attribute, later.
func (r *Run) named(name program.Ref, x *eager.Var) bool {
	if v := r.env[name]; v != nil {
		return v.tensor == x
	}
	return slices.ContainsFunc(r.later(), func(c program.Call) bool {
		if program.Ref(c.Result) != name || c.Target != "getattr" {
			return false
		}
		of, _ := c.Args[0].(program.Ref)
		attr, _ := c.Args[1].(string)
		m := r.env[of]
		return m != nil && m.module != nil && m.module.Value(attr) == op.Value(x)
	})
}

// setData is x.data = y. What was computed from x before is not to be differentiated after:
// by which elements PyTorch would do it depends on what the operators kept.
func (r *Run) setData(c *program.Call, x, y *eager.Var) error {
	if r.differentiatedLater(x) {
		return fmt.Errorf("%w: assigning x.data between what was computed from x and its gradient", errUnsupported)
	}
	r.session.Replace(x, y.Tensor)
	if r.space == nil {
		return nil
	}
	name, _ := c.Args[2].(program.Ref)
	input := slices.ContainsFunc(r.job.Program.Inputs, func(in program.Input) bool { return in.Name == string(name) })
	r.space.Renew(x, y, input || refersTo(r.later(), map[program.Ref]bool{name: true}))
	return nil
}

// later are the calls after this one.
func (r *Run) later() []program.Call { return r.job.Program.Calls[len(r.out.Values)+1:] }

// differentiatedLater reports whether something that was computed from x is differentiated
// after this call.
func (r *Run) differentiatedLater(x *eager.Var) bool {
	from := r.computedFrom(x)
	return from != nil && r.differentiates(r.later(), from)
}

// differentiates reports whether one of the calls, or the program in the end, asks for the
// gradient of one of the names, or of what the calls compute from them.
func (r *Run) differentiates(calls []program.Call, names map[program.Ref]bool) bool {
	for i := range calls {
		c := &calls[i]
		switch reads := refersTo(calls[i:i+1], names); {
		case reads && (c.IsBackward() || strings.HasPrefix(c.Target, "torch.autograd.")):
			return true
		case reads:
			names[program.Ref(c.Result)] = true
		}
	}
	return slices.ContainsFunc(r.job.Program.Backward, func(b program.Backward) bool { return names[b.Value] })
}

// refersTo reports whether one of the calls has one of the names.
func refersTo(calls []program.Call, names map[program.Ref]bool) bool {
	found := false
	note := func(ref program.Ref) { found = found || names[ref] }
	for i := range calls {
		for _, a := range calls[i].Args {
			program.Refs(a, note)
		}
		for _, kw := range calls[i].Kwargs {
			program.Refs(kw.Value, note)
		}
	}
	return found
}

// computedFrom are the results of calls that have computed with a variable, itself or as the
// state of a module, and of those that computed with these; nil for none.
func (r *Run) computedFrom(x *eager.Var) map[program.Ref]bool {
	var from map[program.Ref]bool
	for _, c := range r.job.Program.Calls[:len(r.out.Values)] {
		args := c.Args
		if op.InPlace(c.Target) || c.Target == "setattr" || c.Target == program.ModuleToGlobal || r.looks(&c) {
			args = args[1:]
		}
		reads := false
		note := func(ref program.Ref) { reads = reads || from[ref] || r.env[ref].holds(x) }
		for _, a := range args {
			program.Refs(a, note)
		}
		for _, kw := range c.Kwargs {
			program.Refs(kw.Value, note)
		}
		if reads {
			if from == nil {
				from = map[program.Ref]bool{}
			}
			from[program.Ref(c.Result)] = true
		}
	}
	return from
}

// ofModules are the methods of modules that compute nothing.
var ofModules = []string{"Module.to", "Module.float", "Module.double", "Module.half", "Module.bfloat16", "Module.cpu", "Module.train", "Module.eval", "Module.requires_grad_", "Module.zero_grad"}

// looks reports whether a call gives an attribute that is no view of its tensor, or a module
// itself.
func (r *Run) looks(c *program.Call) bool {
	if len(c.Args) == 0 {
		return false
	}
	if slices.Contains(ofModules, c.Target) {
		return true
	}
	ref, ok := c.Args[0].(program.Ref)
	return c.Target == "getattr" && ok && (r.env[ref].module != nil || slices.Contains([]any{"data", "grad", "grad_fn", "is_leaf", "requires_grad", "shape", "ndim"}, c.Args[1]))
}
