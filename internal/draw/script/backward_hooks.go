package script

import (
	"cmp"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/program"
)

// backwardHook is called by every backward pass that reaches its tensors. No
// subject can be handed one: the pass is asked for the gradients up to the
// tensors, the hook is called with them, and where it replaces one the
// difference flows on from the tensor beside the pass.
type backwardHook struct {
	tensors []*symbol // that require a gradient
	at      *symbol   // the one before which the others have their gradients
	kept    bool      // in later passes: at is a leaf
	// run is called with a gradient for each tensor, nil for one that is not
	// reached, and returns what replaces them, nil for nothing.
	run func(grads []*symbol) ([]*symbol, error)
}

// registerHook is Tensor.register_hook.
func (s *symbol) registerHook(fn starlark.Value) (starlark.Value, error) {
	d := s.d
	if d.options.AutoBackward != NoBackward {
		return s.hookForward(fn)
	}
	wants, err := s.property("requires_grad")
	if err != nil {
		return nil, err
	}
	if wants != starlark.True {
		return nil, fmt.Errorf("cannot register a hook on a tensor that doesn't require gradient")
	}
	leaf, err := d.isLeaf(s)
	if err != nil {
		return nil, err
	}
	return d.watch(&backwardHook{[]*symbol{s}, s, leaf, func(grads []*symbol) ([]*symbol, error) {
		return d.replacement(fn, starlark.Tuple{grads[0]})
	}}), nil
}

// hookForward registers a hook of a tensor whose gradient the engine asks for
// when the test is over: what is computed from the tensor from now on is
// computed from its like, whose gradient the hook sees.
func (s *symbol) hookForward(fn starlark.Value) (starlark.Value, error) {
	if isParam(s) {
		return nil, lack("register_hook of a parameter is not supported where auto_backward is on")
	}
	apply, err := torchPrelude()["GradientHook"].(*class).Attr("apply")
	if err != nil {
		return nil, err
	}
	v, err := starlark.Call(s.d.thread, apply, starlark.Tuple{s, fn}, nil)
	if like, ok := v.(*symbol); ok && err == nil {
		before := s.ref
		s.ref, s.hooked = like.ref, cmp.Or(s.hooked, before)
		return handle(func() { s.ref = before }), nil
	}
	return nil, err
}

// watch adds a hook of the backward passes and returns its handle.
func (d *draw) watch(h *backwardHook) starlark.Value {
	d.backward = append(d.backward, h)
	return handle(func() { d.unwatch(h) })
}

func (d *draw) unwatch(h *backwardHook) {
	d.backward = slices.DeleteFunc(d.backward, func(other *backwardHook) bool { return other == h })
}

func (d *draw) isLeaf(s *symbol) (bool, error) {
	if isParam(s) || s.input != nil {
		return true, nil
	}
	v, err := d.ask(program.Call{Target: "getattr", Args: []any{s.ref, "is_leaf"}})
	return v.Plain == true, err
}

// replacement calls a hook; nil where it only looks.
func (d *draw) replacement(fn starlark.Value, args starlark.Tuple) ([]*symbol, error) {
	v, err := starlark.Call(d.thread, fn, args, nil)
	if err != nil || v == starlark.None {
		return nil, err
	}
	several, ok := v.(starlark.Tuple)
	if !ok {
		several = starlark.Tuple{v}
	}
	out := make([]*symbol, len(several))
	for i, e := range several {
		if e == starlark.None {
			continue
		}
		one, err := d.tensors(e)
		if err != nil {
			return nil, err
		}
		if len(one.all) != 1 {
			return nil, fmt.Errorf("the hook returned %s, expected a tensor", article(e.Type()))
		}
		out[i] = one.all[0]
	}
	return out, nil
}

// watchedCall is a call of a module with hooks of its backward pass: what goes
// in and comes out, nil where it is no tensor that requires a gradient.
type watchedCall struct {
	d         *draw
	module    starlark.Value
	ins, outs []*symbol
}

// watchInputs gives a module with hooks of the backward pass inputs of its
// own, whose gradients come from this call alone; nil for other modules.
func (h *hooks) watchInputs(t *starlark.Thread, module starlark.Value, args starlark.Tuple) (starlark.Tuple, *watchedCall, error) {
	if len(h.at(behindBackward))+len(h.at(beforeBackward)) == 0 {
		return args, nil, nil
	}
	d, err := drawOf(t, "a hook of the backward pass")
	if err != nil {
		return nil, nil, err
	}
	if d.options.AutoBackward != NoBackward {
		return nil, nil, lack("a hook of a module's backward pass is not supported where auto_backward is on")
	}
	w := &watchedCall{d: d, module: module}
	args, w.ins, err = d.viewsOf(args)
	return args, w, err
}

// watchOutputs has the hooks of the module's backward pass run in those that
// reach what the call gave.
func (h *hooks) watchOutputs(w *watchedCall, result starlark.Value) (starlark.Value, error) {
	outputs, several := result.(starlark.Tuple)
	if s, ok := result.(*symbol); ok {
		kind, err := s.known()
		if err != nil {
			return nil, err
		}
		if kind == kindTuple {
			if outputs, err = s.elements(); err != nil {
				return nil, err
			}
			several = true
		}
	}
	if !several {
		outputs = starlark.Tuple{result}
	}
	var err error
	if outputs, w.outs, err = w.d.viewsOf(outputs); err != nil {
		return nil, err
	}
	for _, k := range h.list {
		w.watch(k)
	}
	if several {
		return outputs, nil
	}
	return outputs[0], nil
}

// watch has a hook run in backward passes.
func (w *watchedCall) watch(k *hook) {
	ins, outs := present(w.ins), present(w.outs)
	switch {
	case len(outs) == 0:
	case k.when == beforeBackward:
		w.d.watch(&backwardHook{outs, outs[0], false, func(grads []*symbol) ([]*symbol, error) {
			return w.d.replacement(k.fn, starlark.Tuple{w.module, inPlaces(w.outs, grads)})
		}})
	case k.when == behindBackward:
		at := outs[0]
		if len(ins) > 0 {
			at = ins[0]
		}
		n := len(outs)
		w.d.watch(&backwardHook{slices.Concat(outs, ins), at, false, func(grads []*symbol) ([]*symbol, error) {
			replaced, err := w.d.replacement(k.fn, starlark.Tuple{w.module, inPlaces(w.ins, grads[n:]), inPlaces(w.outs, grads[:n])})
			if err != nil || replaced == nil {
				return nil, err
			}
			if len(replaced) != len(w.ins) {
				return nil, fmt.Errorf("the hook of a backward pass returned an invalid number of grad_input, got %d, but expected %d", len(replaced), len(w.ins))
			}
			out := make([]*symbol, n)
			for i, s := range w.ins {
				if s != nil {
					out = append(out, replaced[i])
				}
			}
			return out, nil
		}})
	}
}

// viewsOf are the values with a view of each tensor that requires a gradient,
// and these views; nil in the places of others.
func (d *draw) viewsOf(values starlark.Tuple) (starlark.Tuple, []*symbol, error) {
	out, views := slices.Clone(values), make([]*symbol, len(values))
	for i, v := range values {
		at, err := d.wanting(v)
		if err == nil && at != nil {
			views[i], err = d.apply("Tensor.view_as", at, at)
			out[i] = views[i]
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return out, views, nil
}

// present are those of the tensors that are there.
func present(tensors []*symbol) []*symbol {
	return slices.DeleteFunc(slices.Clone(tensors), func(s *symbol) bool { return s == nil })
}

// inPlaces is the tuple that a hook sees: the gradients of the tensors that
// have one, None for others.
func inPlaces(tensors, grads []*symbol) starlark.Tuple {
	out := make(starlark.Tuple, len(tensors))
	for i, s := range tensors {
		out[i] = starlark.None
		if s == nil {
			continue
		}
		if grads[0] != nil {
			out[i] = grads[0]
		}
		grads = grads[1:]
	}
	return out
}

// pass is one backward pass: outputs, and the gradients that they begin with.
type pass struct {
	d       *draw
	outputs []starlark.Value
	weights []starlark.Value
	create  bool
	extra   int // of the outputs, from which differences flow
	// leaves says that they gain gradients; given are those that hooks replace.
	leaves bool
	given  []*givenGradient
}

// givenGradient is what hooks have made of the gradient that a leaf gains.
type givenGradient struct {
	leaf   *symbol
	before *symbol // its gradient before the pass; nil for none
	gains  *symbol
}

// hookedCall are the parameters of what begins a backward pass, and which of them has the
// gradients that the outputs, which come first, begin with.
type hookedCall struct {
	params []string
	starts string
}

var hookedCalls = map[string]hookedCall{
	"Tensor.backward":         {[]string{"self", "gradient", "retain_graph", "create_graph", "inputs"}, "gradient"},
	"torch.autograd.backward": {[]string{"tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"}, "grad_tensors"},
	"torch.autograd.grad":     {[]string{"outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs", "allow_unused", "is_grads_batched", "materialize_grads"}, "grad_outputs"},
}

// callHooked is a call that begins a backward pass, with the hooks that it
// reaches; nil for other calls, and where there is no hook.
func (d *draw) callHooked(target string, recv *symbol, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	of, begins := hookedCalls[target]
	if !begins || !d.hooked() {
		return nil, nil
	}
	a := arguments{target, of.params, make([]starlark.Value, len(of.params))}
	all := args
	if recv != nil {
		all = append(starlark.Tuple{recv}, args...)
	}
	if err := a.bind(all, kwargs); err != nil {
		return nil, err
	}
	p := &pass{d: d, leaves: target != "torch.autograd.grad"}
	if a.values[0] == nil {
		return nil, fmt.Errorf("%s needs the argument '%s'", target, of.params[0])
	}
	outputs, err := d.tensors(a.values[0])
	if err != nil {
		return nil, err
	}
	for _, s := range outputs.all {
		p.outputs = append(p.outputs, s)
	}
	p.weights = startsOf(a.get(of.starts), len(p.outputs))
	if v := a.get("create_graph"); v != nil {
		p.create = bool(v.Truth())
	}
	defer d.withoutHooks()()
	reached, err := p.run()
	if err != nil {
		return nil, err
	}
	if keep := a.get("retain_graph"); (keep == nil || !bool(keep.Truth())) && !p.create {
		d.backward = slices.DeleteFunc(d.backward, func(h *backwardHook) bool { return !h.kept && slices.Contains(reached, h) })
	}
	if target == "torch.autograd.grad" && p.extra > 0 {
		a.values[0], a.values[slices.Index(of.params, of.starts)] = starlark.NewList(p.outputs), starlark.NewList(p.weights)
		return d.call(target, nil, nil, a.named())
	}
	for i := len(p.outputs) - p.extra; i < len(p.outputs); i++ {
		more := []starlark.Tuple{{starlark.String("retain_graph"), starlark.True}, {starlark.String("create_graph"), starlark.Bool(p.create)}}
		if in := a.get("inputs"); in != nil {
			more = append(more, starlark.Tuple{starlark.String("inputs"), in})
		}
		if _, err := d.call("Tensor.backward", p.outputs[i].(*symbol), starlark.Tuple{p.weights[i]}, more); err != nil {
			return nil, err
		}
	}
	v, err := d.call(target, recv, args, kwargs)
	for _, g := range p.given {
		if err == nil {
			err = d.within(g.set)
		}
	}
	return v, err
}

// hooked reports whether passes that begin now call hooks.
func (d *draw) hooked() bool { return len(d.backward) > 0 && !d.passing }

// withoutHooks has the passes that begin until it is undone call no hooks.
func (d *draw) withoutHooks() (undo func()) {
	before := d.passing
	d.passing = true
	return func() { d.passing = before }
}

// named are the arguments that were given, by their names.
func (a arguments) named() []starlark.Tuple {
	var out []starlark.Tuple
	for i, v := range a.values {
		if v != nil {
			out = append(out, starlark.Tuple{starlark.String(a.params[i]), v})
		}
	}
	return out
}

// startsOf reads the gradients that n outputs begin with.
func startsOf(v starlark.Value, n int) []starlark.Value {
	out := make([]starlark.Value, n)
	for i := range out {
		out[i] = starlark.None
	}
	if v == nil {
		return out
	}
	if list, ok := sequence(v); ok {
		copy(out, list)
		return out
	}
	out[0] = v
	return out
}

// run calls the hooks, those of later tensors first, and returns which the
// pass reaches.
func (p *pass) run() ([]*backwardHook, error) {
	order := slices.Clone(p.d.backward)
	places := map[*backwardHook]int{}
	for _, h := range order {
		places[h] = p.d.order(h)
	}
	slices.SortStableFunc(order, func(a, b *backwardHook) int { return cmp.Compare(places[b], places[a]) })
	var reached []*backwardHook
	for _, h := range order {
		grads, err := p.gradients(h)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(grads, func(g *symbol) bool { return g != nil }) {
			continue
		}
		reached = append(reached, h)
		call := func() error { return p.call(h, grads) }
		if p.create {
			err = call()
		} else {
			err = p.d.within(call)
		}
		if err != nil {
			return nil, err
		}
	}
	return reached, nil
}

// call runs a hook, and has the differences that it makes flow on.
func (p *pass) call(h *backwardHook, grads []*symbol) error {
	d := p.d
	before := len(d.prog.Calls)
	replaced, err := h.run(grads)
	if err != nil {
		return err
	}
	if d.prog.ChangesAfter(before - 1) { // the gradient, it may be
		if replaced == nil {
			replaced = slices.Clone(grads)
		}
		if grads, err = p.gradients(h); err != nil {
			return err
		}
	}
	for i, r := range replaced {
		switch {
		case r == nil || i >= len(grads):
			continue
		case h.kept && p.leaves && !p.create:
			if err := p.give(h.tensors[i], r); err != nil {
				return err
			}
			continue
		case grads[i] != nil:
			if r, err = d.apply("operator.sub", r, grads[i]); err != nil {
				return err
			}
		}
		p.outputs, p.weights, p.extra = append(p.outputs, h.tensors[i]), append(p.weights, r), p.extra+1
	}
	return nil
}

// give has a leaf gain the gradient g by the pass, to the bit.
func (p *pass) give(leaf, g *symbol) error {
	if given := p.givenTo(leaf); given != nil {
		given.gains = g
		return nil
	}
	given := &givenGradient{leaf: leaf, gains: g}
	before, err := p.d.getattr(leaf, "grad")
	if err != nil {
		return err
	}
	seen, err := p.d.observe(before.ref)
	if err == nil && seen.Tensor != nil { // which the pass adds to in place
		given.before, err = p.d.apply("Tensor.clone", before)
	}
	if err != nil {
		return err
	}
	p.given = append(p.given, given)
	return nil
}

// givenTo is what is given to a leaf already; nil for nothing.
func (p *pass) givenTo(leaf *symbol) *givenGradient {
	for _, g := range p.given {
		if p.d.leafName(g.leaf) == p.d.leafName(leaf) {
			return g
		}
	}
	return nil
}

// leafName is one name for a leaf: a parameter is a new symbol wherever it is looked up.
func (d *draw) leafName(s *symbol) string {
	if c := d.callOf(s.ref); c != nil && c.Target == "getattr" {
		return fmt.Sprint(c.Args...)
	}
	return string(s.ref)
}

// set replaces what the pass has given the leaf.
func (g *givenGradient) set() error {
	d := g.leaf.d
	total := g.gains
	if g.before != nil {
		var err error
		if total, err = d.apply("operator.add", g.before, total); err != nil {
			return err
		}
	}
	after, err := d.getattr(g.leaf, "grad")
	if err != nil {
		return err
	}
	after.kind = kindTensor
	_, err = d.apply("Tensor.copy_", after, total)
	return err
}

// gradients are those of a hook's tensors, as the hooks before have left them.
func (p *pass) gradients(h *backwardHook) ([]*symbol, error) {
	if g := p.givenTo(h.tensors[0]); g != nil {
		return []*symbol{g.gains}, nil
	}
	return p.d.gradients(starlark.NewList(slices.Clone(p.outputs)), tensorTuple{all: h.tensors}, starlark.NewList(slices.Clone(p.weights)), p.create)
}

// order is the place of a hook among the calls of the program, two for each: a
// result has its gradient behind all that was made after it, a leaf once all
// that uses it has.
func (d *draw) order(h *backwardHook) int {
	s := h.at
	if !h.kept {
		return 2 * s.at
	}
	users := []program.Ref{s.ref}
	if c := d.callOf(s.ref); c != nil && c.Target == "getattr" {
		users = append(users, c.Args[0].(program.Ref))
	}
	for i, c := range d.prog.Calls {
		if c.Target == "getattr" || c.Target == "Module.train" || c.Target == "Tensor.requires_grad_" {
			continue
		}
		if slices.ContainsFunc(c.Args, func(a any) bool { r, ok := a.(program.Ref); return ok && slices.Contains(users, r) }) {
			return 2*i - 1
		}
	}
	return -1
}
