package script

import (
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
)

// moduleFunction is a method of every module, of the file or of torch.nn.
type moduleFunction struct {
	params []string
	f      func(d *draw, m starlark.Value, a arguments) (starlark.Value, error)
}

func (f moduleFunction) bind(name string, m starlark.Value) starlark.Value {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		d, err := drawOf(t, name)
		if err != nil {
			return nil, err
		}
		return f.call(d, name, m, args, kwargs)
	})
}

func (f moduleFunction) call(d *draw, name string, m starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{name, f.params, make([]starlark.Value, len(f.params))}
	if err := a.bind(args, kwargs); err != nil {
		return nil, err
	}
	return f.f(d, m, a)
}

// moduleFunctions are those that the engine answers by what the module holds.
// Modules of torch.nn have some as calls of the program instead: train, eval
// and conversions.
var moduleFunctions map[string]moduleFunction

// ofPrograms are those that a module of torch.nn has as calls.
var ofPrograms = map[string]bool{
	"train": true, "eval": true, "to": true, "cpu": true, "cuda": true, "double": true, "float": true, "half": true, "register_buffer": true, "add_module": true, "register_parameter": true,
}

func init() {
	value := func(c named) starlark.Value { return c.value }
	list := func(pick func(m starlark.Value) ([]named, error), show func(named) starlark.Value) moduleFunction {
		return moduleFunction{[]string{"prefix", "recurse"}, func(_ *draw, m starlark.Value, _ arguments) (starlark.Value, error) {
			all, err := pick(m)
			return iteratorOf(all, show), err
		}}
	}
	params := func(m starlark.Value) ([]named, error) { p, _, err := entries(m); return p, err }
	buffers := func(m starlark.Value) ([]named, error) { _, b, err := entries(m); return b, err }
	children := func(m starlark.Value) ([]named, error) { _, _, c, err := own(m); return c, err }
	moduleFunctions = map[string]moduleFunction{
		"parameters": {[]string{"recurse"}, list(params, value).f}, "named_parameters": list(params, pairOf),
		"buffers": {[]string{"recurse"}, list(buffers, value).f}, "named_buffers": list(buffers, pairOf),
		"children": list(children, value), "named_children": list(children, pairOf),
		"modules": list(modules, value), "named_modules": list(modules, pairOf),
		"state_dict": {nil, stateDict}, "load_state_dict": {[]string{"state_dict", "strict"}, loadStateDict},
		"zero_grad": {[]string{"set_to_none"}, zeroGrad}, "requires_grad_": {[]string{"requires_grad"}, requiresGrad},
		"train": {[]string{"mode"}, train}, "eval": {nil, func(d *draw, m starlark.Value, _ arguments) (starlark.Value, error) {
			return setMode(d, m, starlark.False, 0)
		}},
		"register_buffer": {[]string{"name", "tensor", "persistent"}, registerBuffer}, "register_parameter": {[]string{"name", "param"}, addPart("name", "param")},
		"register_forward_hook": {[]string{"hook"}, registerHook(behindForward)}, "register_forward_pre_hook": {[]string{"hook"}, registerHook(beforeForward)},
		"register_full_backward_hook": {[]string{"hook", "prepend"}, registerHook(behindBackward)}, "register_full_backward_pre_hook": {[]string{"hook", "prepend"}, registerHook(beforeBackward)},
		"register_backward_hook": {[]string{"hook"}, func(*draw, starlark.Value, arguments) (starlark.Value, error) {
			return nil, lack("register_backward_hook sees gradients of the last call alone: write register_full_backward_hook")
		}},
		"add_module": {[]string{"name", "module"}, addPart("name", "module")}, "register_module": {[]string{"name", "module"}, addPart("name", "module")},
		"apply": {[]string{"fn"}, applyTo}, "get_parameter": {[]string{"target"}, partOf(params)}, "get_buffer": {[]string{"target"}, partOf(buffers)}, "get_submodule": {[]string{"target"}, partOf(modules)},
		"to": {[]string{"device", "dtype"}, convertModule}, "cpu": {nil, sameModule}, "cuda": {[]string{"device"}, sameModule},
		"to_global": {[]string{"placement", "sbp"}, spreadModule}, "to_consistent": {[]string{"placement", "sbp"}, spreadModule},
		"float": {nil, convertTo("float")}, "double": {nil, convertTo("double")}, "half": {nil, convertTo("half")},
	}
}

// within runs f with the calls that it makes in torch.no_grad().
func (d *draw) within(f func() error) error {
	off, err := newScope(d.thread, "torch.no_grad", nil, nil)
	if err != nil {
		return err
	}
	if _, err := enter(d.thread, starlark.Tuple{starlark.String(""), off}); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	_, err = leave(d.thread, starlark.Tuple{starlark.MakeInt(1)})
	return err
}

func stateDict(d *draw, m starlark.Value, _ arguments) (starlark.Value, error) {
	all, err := saved(m)
	if err != nil {
		return nil, err
	}
	out := starlark.NewDict(len(all))
	for _, e := range all {
		v, err := d.apply("Tensor.detach", e.value)
		if err != nil {
			return nil, err
		}
		if err := out.SetKey(starlark.String(e.name), v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// incompatibleKeys is what load_state_dict gives.
var incompatibleKeys = &namedType{name: "_IncompatibleKeys", fields: []string{"missing_keys", "unexpected_keys"}}

func loadStateDict(d *draw, m starlark.Value, a arguments) (starlark.Value, error) {
	from, ok := a.get("state_dict").(*starlark.Dict)
	if !ok {
		return nil, fmt.Errorf("load_state_dict takes a dict")
	}
	all, err := saved(m)
	if err != nil {
		return nil, err
	}
	missing, unexpected := starlark.NewList(nil), starlark.NewList(nil)
	known := map[string]bool{}
	var found []named // with what is loaded
	for _, e := range all {
		known[e.name] = true
		v, has, err := from.Get(starlark.String(e.name))
		if err != nil {
			return nil, err
		}
		if has {
			found = append(found, named{e.name, starlark.Tuple{e.value, v}})
		} else if err := missing.Append(starlark.String(e.name)); err != nil {
			return nil, err
		}
	}
	for _, k := range from.Keys() {
		if name, _ := starlark.AsString(k); !known[name] {
			if err := unexpected.Append(k); err != nil {
				return nil, err
			}
		}
	}
	if strict := a.get("strict"); (strict == nil || bool(strict.Truth())) && missing.Len()+unexpected.Len() > 0 {
		return nil, unlikeState(m, missing, unexpected)
	}
	err = d.within(func() error {
		for _, e := range found {
			pair := e.value.(starlark.Tuple)
			if _, err := d.apply("Tensor.copy_", pair[0], pair[1]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return starlark.Call(d.thread, incompatibleKeys, starlark.Tuple{missing, unexpected}, nil)
}

// unlikeState is PyTorch's complaint about the keys of a state.
func unlikeState(m starlark.Value, missing, unexpected *starlark.List) error {
	name := ""
	switch m := m.(type) {
	case *symbol:
		name = lastName(m.made)
	case *object:
		name = m.class.name
	}
	text := "Error(s) in loading state_dict for " + name + ":"
	for _, of := range []struct {
		what string
		keys *starlark.List
	}{{"Unexpected", unexpected}, {"Missing", missing}} {
		if of.keys.Len() == 0 {
			continue
		}
		var quoted []string
		for k := range starlark.Elements(of.keys) {
			quoted = append(quoted, strconv.Quote(str(k)))
		}
		text += fmt.Sprintf("\n\t%s key(s) in state_dict: %s. ", of.what, strings.Join(quoted, ", "))
	}
	return fmt.Errorf("%s", text)
}

// clearGrads is what zero_grad does from PyTorch 2 on: no gradient is left.
func clearGrads(params []named) error {
	for _, p := range params {
		if err := p.value.(*symbol).SetField("grad", starlark.None); err != nil {
			return err
		}
	}
	return nil
}

func zeroGrad(_ *draw, m starlark.Value, _ arguments) (starlark.Value, error) {
	params, _, err := entries(m)
	if err != nil {
		return nil, err
	}
	return starlark.None, clearGrads(params)
}

func requiresGrad(d *draw, m starlark.Value, a arguments) (starlark.Value, error) {
	params, _, err := entries(m)
	for _, p := range params {
		args := starlark.Tuple{}
		if v := a.get("requires_grad"); v != nil {
			args = starlark.Tuple{v}
		}
		if _, err := d.call("Tensor.requires_grad_", p.value.(*symbol), args, nil); err != nil {
			return nil, err
		}
	}
	return m, err
}

func train(d *draw, m starlark.Value, a arguments) (starlark.Value, error) {
	var mode starlark.Value = starlark.True
	if v := a.get("mode"); v != nil {
		drawn, err := d.settled(v, gen.Bool)
		if err != nil {
			return nil, err
		}
		mode = starlark.Bool(drawn.Truth())
	}
	return m, inMode(d, m, mode, 0)
}

// setMode is m.train(mode), of a class of the file that has one of its own too.
func setMode(d *draw, m, mode starlark.Value, depth int) (starlark.Value, error) {
	if o, ok := m.(*object); ok {
		if fn := o.class.lookup("train"); fn != nil {
			return starlark.Call(d.thread, o.bound(fn), starlark.Tuple{mode}, nil)
		}
	}
	return m, inMode(d, m, mode, depth)
}

// inMode gives a module a mode, and has those below it take it.
func inMode(d *draw, m, mode starlark.Value, depth int) error {
	if depth > maxRecursion { // it is part of itself
		return fmt.Errorf("maximum recursion depth exceeded")
	}
	switch v := m.(type) {
	case *object:
		stateOf(v).training = bool(mode.Truth())
		if b := stateOf(v).base; b != nil {
			if _, err := d.method(b, "train", starlark.Tuple{mode}, nil); err != nil {
				return err
			}
		}
	case *symbol:
		if v.hosted == nil {
			_, err := d.method(v, "train", starlark.Tuple{mode}, nil)
			return err
		}
	}
	_, _, below, err := own(m)
	if err != nil {
		return err
	}
	for _, part := range below {
		if _, err := setMode(d, part.value, mode, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func registerBuffer(_ *draw, m starlark.Value, a arguments) (starlark.Value, error) {
	name, ok := starlark.AsString(a.get("name"))
	o, own := m.(*object)
	if !ok || !own || a.get("tensor") == nil {
		return nil, fmt.Errorf("register_buffer takes a name and a tensor")
	}
	stateOf(o).buffers[name] = true
	if persistent := a.get("persistent"); persistent != nil && !bool(persistent.Truth()) {
		stateOf(o).pass(name)
	}
	return starlark.None, o.SetField(name, a.get("tensor"))
}

func addPart(name, value string) func(*draw, starlark.Value, arguments) (starlark.Value, error) {
	return func(_ *draw, m starlark.Value, a arguments) (starlark.Value, error) {
		n, ok := starlark.AsString(a.get(name))
		o, own := m.(*object)
		if !ok || !own || a.get(value) == nil {
			return nil, fmt.Errorf("%s takes a name and a value", a.fn)
		}
		return starlark.None, o.SetField(n, a.get(value))
	}
}

// applyTo calls a function with every module, children first.
func applyTo(d *draw, m starlark.Value, a arguments) (starlark.Value, error) {
	_, _, children, err := own(m)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		if _, err := applyTo(d, c.value, a); err != nil {
			return nil, err
		}
	}
	_, err = starlark.Call(d.thread, a.get("fn"), starlark.Tuple{m}, nil)
	return m, err
}

func partOf(pick func(starlark.Value) ([]named, error)) func(*draw, starlark.Value, arguments) (starlark.Value, error) {
	return func(_ *draw, m starlark.Value, a arguments) (starlark.Value, error) {
		all, err := pick(m)
		if err != nil {
			return nil, err
		}
		name, _ := starlark.AsString(a.get("target"))
		for _, e := range all {
			if e.name == name {
				return e.value, nil
			}
		}
		return nil, fmt.Errorf("the module has no %s", name)
	}
}

func sameModule(_ *draw, m starlark.Value, _ arguments) (starlark.Value, error) { return m, nil }

// convertModule is m.to(…): a dtype converts, a device is that of the run.
func convertModule(d *draw, m starlark.Value, a arguments) (starlark.Value, error) {
	for _, v := range a.values {
		if t, ok := v.(dtype); ok {
			return convertTo("to", t)(d, m, a)
		}
	}
	return m, nil
}

// convertTo replaces the parameters and buffers that the file's modules hold,
// and calls the method of the others.
func convertTo(name string, args ...starlark.Value) func(*draw, starlark.Value, arguments) (starlark.Value, error) {
	return func(d *draw, m starlark.Value, _ arguments) (starlark.Value, error) {
		all, err := modules(m)
		if err != nil {
			return nil, err
		}
		for _, part := range all {
			switch v := part.value.(type) {
			case *symbol:
				_, err = d.method(v, name, starlark.Tuple(args), nil)
			case *object:
				err = v.convert(d, name, args)
			}
			if err != nil {
				return nil, err
			}
		}
		return m, nil
	}
}

func (o *object) convert(d *draw, name string, args []starlark.Value) error {
	s := stateOf(o)
	if s.base != nil {
		if _, err := d.method(s.base, name, starlark.Tuple(args), nil); err != nil {
			return err
		}
	}
	for _, n := range o.names {
		v, ok := o.fields[n].(*symbol)
		if !ok || !s.buffers[n] && !isParam(v) {
			continue
		}
		x, err := d.apply("Tensor.detach", v)
		if err == nil {
			x, err = d.apply("Tensor."+name, append([]starlark.Value{x}, args...)...)
		}
		if err == nil && !s.buffers[n] {
			x, err = d.apply("torch.nn.Parameter", x)
		}
		if err != nil {
			return err
		}
		o.fields[n] = x
	}
	return nil
}
