package script

import (
	"slices"

	"go.starlark.net/starlark"

	"plumb/program"
)

// copyModule is copy.deepcopy of a module of torch.nn: the same constructor
// again, and then its state.
func (s *symbol) copyModule(memo map[starlark.Value]starlark.Value) (starlark.Value, error) {
	d := s.d
	made := *d.callOf(s.ref)
	refs := map[program.Ref]program.Ref{}
	if s.hosted != nil {
		return copyPart(s.hosted, memo)
	}
	for _, c := range s.children {
		child, err := copyPart(c.value, memo)
		if err != nil {
			return nil, err
		}
		refs[c.value.(*symbol).ref] = child.(*symbol).ref
	}
	again := program.Call{Target: made.Target}
	for _, a := range made.Args {
		again.Args = append(again.Args, program.MapRefs(a, func(r program.Ref) any { return renamed(refs, r) }))
	}
	for _, kw := range made.Kwargs {
		again.Kwargs = append(again.Kwargs, program.Kwarg{Name: kw.Name, Value: program.MapRefs(kw.Value, func(r program.Ref) any { return renamed(refs, r) })})
	}
	out, err := d.record(again)
	if err != nil {
		return nil, err
	}
	out.kind, out.made, out.tupled = kindModule, s.made, s.tupled
	for _, c := range s.children {
		out.children = append(out.children, named{c.name, memo[c.value]})
	}
	if s.mode != nil {
		if _, err := d.method(out, "train", starlark.Tuple{s.mode}, nil); err != nil {
			return nil, err
		}
	}
	return out, out.takeState(s, memo)
}

func renamed(refs map[program.Ref]program.Ref, r program.Ref) program.Ref {
	if to, ok := refs[r]; ok {
		return to
	}
	return r
}

// takeState copies the parameters and buffers of a module that is constructed alike; what it
// shares with another that was copied, the copies share.
func (s *symbol) takeState(from *symbol, memo map[starlark.Value]starlark.Value) error {
	if from.children != nil { // whose modules have it
		return nil
	}
	var lists [2][]named
	for i, m := range []*symbol{s, from} {
		params, buffers, err := m.listed()
		if err != nil {
			return err
		}
		lists[i] = slices.Concat(params, buffers)
	}
	if len(lists[0]) == 0 {
		return nil
	}
	return s.d.within(func() error {
		for i, e := range lists[0] {
			if i >= len(lists[1]) || lists[1][i].name != e.name {
				return lack("copy.deepcopy of a module with other parameters than its constructor makes is not supported in test files")
			}
			key := sameness(lists[1][i].value)
			if copied, ok := memo[key]; ok {
				if err := s.SetField(e.name, copied); err != nil {
					return err
				}
				continue
			}
			memo[key] = e.value
			if _, err := s.d.apply("Tensor.copy_", e.value, lists[1][i].value); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyPart copies a part of an object, each once.
func copyPart(v starlark.Value, memo map[starlark.Value]starlark.Value) (out starlark.Value, err error) {
	switch v := v.(type) {
	case *symbol:
		key := sameness(v)
		if done, ok := memo[key]; ok {
			return done, nil
		}
		if v.kind == kindModule {
			out, err = v.copyModule(memo)
			memo[v] = out
		} else {
			out, err = v.deepCopy()
		}
		memo[key] = out
		return out, err
	case *object:
		if done, ok := memo[v]; ok {
			return done, nil
		}
		return v.copied(memo)
	}
	left := maxElements
	return copyValue(v, maxDepth, &left, memo)
}

// copied is copy.deepcopy of an instance.
func (o *object) copied(memo map[starlark.Value]starlark.Value) (starlark.Value, error) {
	out := &object{class: o.class, fields: map[string]starlark.Value{}, thread: o.thread, names: slices.Clone(o.names)}
	memo[o] = out
	if s, ok := o.state.(*moduleState); ok {
		state := *s
		out.state = &state
		if s.base != nil {
			base, err := copyPart(s.base, memo)
			if err != nil {
				return nil, err
			}
			state.base = base.(*symbol)
		}
	} else if o.state != nil {
		return nil, lack("copy.deepcopy of %s is not supported in test files", article(o.class.name))
	}
	for _, n := range o.names {
		v, err := copyPart(o.fields[n], memo)
		if err != nil {
			return nil, err
		}
		out.fields[n] = v
	}
	return out, nil
}

// callOf returns the call that gave a result; nil for inputs.
func (d *draw) callOf(result program.Ref) *program.Call {
	if s := d.symbols[result]; s != nil && s.at < len(d.prog.Calls) && d.prog.Calls[s.at].Result == string(result) {
		return &d.prog.Calls[s.at]
	}
	i := slices.IndexFunc(d.prog.Calls, func(c program.Call) bool { return c.Result == string(result) })
	if i < 0 {
		return nil
	}
	return &d.prog.Calls[i]
}
