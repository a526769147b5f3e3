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
	// through is the x.data by which the last call changed x: PyTorch counts
	// that as a change of nothing else.
	through *value
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
// was computed from x before: PyTorch would differentiate that with x's new
// elements.
func (r *Run) throughData(c *program.Call, call *op.Call, x *eager.Var) (*value, error) {
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
	r.behind.data[data.tensor] = x
	r.behind.through = data
	if call.Def.InPlace.NoResult {
		return &value{}, nil
	}
	return data, nil
}

// setData is x.data = y. What was computed from x before is not to be differentiated after:
// by which elements PyTorch would do it depends on what the operators kept.
func (r *Run) setData(c *program.Call, x, y *eager.Var) error {
	later := r.job.Program.Calls[len(r.out.Values)+1:]
	if from := r.computedFrom(x); from != nil && r.differentiates(later, from) {
		return fmt.Errorf("%w: assigning x.data between what was computed from x and its gradient", errUnsupported)
	}
	r.session.Replace(x, y.Tensor)
	if r.space == nil {
		return nil
	}
	name, _ := c.Args[2].(program.Ref)
	input := slices.ContainsFunc(r.job.Program.Inputs, func(in program.Input) bool { return in.Name == string(name) })
	r.space.Renew(x, y, input || refersTo(later, map[program.Ref]bool{name: true}))
	return nil
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

// read reports whether a call has computed with a variable, itself or as the
// state of a module.
func (r *Run) read(x *eager.Var) bool { return r.computedFrom(x) != nil }

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
