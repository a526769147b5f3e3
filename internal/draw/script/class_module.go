package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
)

// moduleClass are modules that a file defines, and containers of them: the
// engine calls their forward, and what that calls is the program. of is the
// class of torch.nn that they derive from.
type moduleClass struct{ of path }

// moduleState is the state of a module that is an object.
type moduleState struct {
	training bool
	buffers  map[string]bool // which of the fields are
	passing  map[string]bool // which of these no state_dict has
	base     *symbol         // the module of torch.nn that it extends; nil for none
	hooks    hooks
}

// containerPaths are the containers that may hold modules of a file.
var containerPaths = []path{"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"}

func stateOf(o *object) *moduleState {
	s, ok := o.state.(*moduleState)
	if !ok {
		s = &moduleState{training: true, buffers: map[string]bool{}}
		o.state = s
	}
	return s
}

func (c moduleClass) init(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) error {
	s := stateOf(o)
	switch {
	case c.of == "torch.nn.Module":
		return plainClass{}.init(t, o, args, kwargs)
	case slices.Contains(containerPaths, c.of):
		return o.contain(t, args)
	}
	v, err := starlark.Call(t, c.of, args, kwargs)
	if err == nil {
		s.base, _ = v.(*symbol)
	}
	return err
}

// contain adds the modules that a container's constructor is given.
func (o *object) contain(t *starlark.Thread, args starlark.Tuple) error {
	if len(args) == 0 {
		return nil
	}
	if pairs, ok := args[0].(*starlark.Dict); ok {
		for _, item := range pairs.Items() {
			if err := o.SetField(str(item[0]), item[1]); err != nil {
				return err
			}
		}
		return nil
	}
	parts := []starlark.Value(args)
	if o.class.inherited.(moduleClass).of != "torch.nn.Sequential" {
		var err error
		if parts, err = iterate(t, args[0]); err != nil {
			return err
		}
	}
	for _, p := range parts {
		name := strconv.Itoa(len(o.names))
		if pair, ok := p.(starlark.Tuple); ok && len(pair) == 2 {
			name, p = str(pair[0]), pair[1]
		}
		if err := o.SetField(name, p); err != nil {
			return err
		}
	}
	return nil
}

// hosted makes a container of torch.nn an object where it holds modules of the
// file, or may be given some; nil where it can be part of the program.
func (p path) hosted(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	_, drawing := t.Local(drawKey).(*draw)
	if !slices.Contains(containerPaths, p) || !drawing {
		return nil, nil
	}
	o := containerObject(t, p)
	if err := o.class.inherited.init(t, o, args, nil); err != nil {
		return nil, err
	}
	recorded := len(o.names) > 0 && !slices.ContainsFunc(args, func(v starlark.Value) bool {
		_, dict := v.(*starlark.Dict)
		_, once := v.(*iterator)
		return dict || once
	})
	for _, n := range o.names {
		_, inProgram := o.fields[n].(*symbol)
		_, lazy := o.fields[n].(*generator)
		if n != strconv.Itoa(slices.Index(o.names, n)) {
			inProgram, lazy = false, false
		}
		recorded = recorded && (inProgram || lazy)
	}
	if recorded {
		return nil, nil
	}
	return o, nil
}

// call is the forward of a module.
func (c moduleClass) call(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, _ := t.Local(drawKey).(*draw)
	return stateOf(o).hooks.around(t, o, args, func(args starlark.Tuple) (starlark.Value, error) {
		return d.outlined(o, args, func() (starlark.Value, error) {
			if fn := o.class.lookup("forward"); fn != nil {
				return starlark.Call(t, o.bound(fn), args, kwargs)
			}
			return c.forward(t, o, args, kwargs)
		})
	})
}

// forward is that of the class of torch.nn.
func (c moduleClass) forward(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if s := stateOf(o); s.base != nil {
		return starlark.Call(t, s.base, args, kwargs)
	}
	if c.of != "torch.nn.Sequential" || len(args) != 1 {
		return nil, fmt.Errorf("module %s is missing the required \"forward\" function", o.class.name)
	}
	v := args[0]
	for _, part := range o.children() {
		var err error
		if v, err = starlark.Call(t, part.value, starlark.Tuple{v}, nil); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// named is a part of a module.
type named struct {
	name  string
	value starlark.Value
}

// children are the fields that are modules.
func (o *object) children() []named {
	var out []named
	for _, n := range o.names {
		if isModule(o.fields[n]) {
			out = append(out, named{n, o.fields[n]})
		}
	}
	return out
}

// isModule reports whether a value is a module: of the file or of torch.nn.
func isModule(v starlark.Value) bool {
	switch v := v.(type) {
	case *symbol:
		return v.kind == kindModule
	case *object:
		_, ok := v.class.inherited.(moduleClass)
		return ok
	}
	return false
}

func isParam(v starlark.Value) bool {
	s, ok := v.(*symbol)
	return ok && s != nil && strings.HasSuffix(s.made, ".Parameter")
}

// own returns a module's own parameters and buffers, and its children.
func own(m starlark.Value) (params, buffers, children []named, err error) {
	if s, ok := m.(*symbol); ok {
		if s.hosted != nil {
			return nil, nil, s.hosted.children(), nil
		}
		if s.children != nil {
			return nil, nil, s.children, nil
		}
		params, buffers, err = s.listed()
		return params, buffers, nil, err
	}
	o := m.(*object)
	s := stateOf(o)
	if s.base != nil {
		if params, buffers, children, err = own(s.base); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, n := range o.names {
		v := o.fields[n]
		switch {
		case s.buffers[n]:
			if v != starlark.None {
				buffers = append(buffers, named{n, v})
			}
		case isParam(v):
			params = append(params, named{n, v})
		}
	}
	return params, buffers, append(children, o.children()...), nil
}

// modules lists a module and all below it, each once, by dotted name.
func modules(m starlark.Value) ([]named, error) { return modulesAt(m, false) }

// modulesAt lists a module and all below it, by dotted name: at each place where a shared one
// is, or at the first alone.
func modulesAt(m starlark.Value, each bool) ([]named, error) {
	var out []named
	seen := map[starlark.Value]bool{}
	var walk func(prefix string, m starlark.Value) error
	walk = func(prefix string, m starlark.Value) error {
		if seen[m] && !each {
			return nil
		}
		seen[m] = true
		out = append(out, named{prefix, m})
		_, _, children, err := own(m)
		if err != nil {
			return err
		}
		for _, c := range children {
			if err := walk(dotted(prefix, c.name), c.value); err != nil {
				return err
			}
		}
		return nil
	}
	return out, walk("", m)
}

func dotted(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// entries lists the parameters and the buffers of a module and all below it,
// each once.
func entries(m starlark.Value) (params, buffers []named, err error) {
	err = eachOwn(m, false, func(_ starlark.Value, p, b []named) {
		params, buffers = append(params, p...), append(buffers, b...)
	})
	return params, buffers, err
}

// saved lists what a state_dict has, in its order: what is shared has each of its names.
func saved(m starlark.Value) (all []named, err error) {
	return all, eachOwn(m, true, func(of starlark.Value, p, b []named) {
		if o, ok := of.(*object); ok {
			b = slices.DeleteFunc(b, func(e named) bool { return stateOf(o).passing[e.name[strings.LastIndexByte(e.name, '.')+1:]] })
		}
		all = append(append(all, p...), b...)
	})
}

// eachOwn hands on the parameters and the buffers of a module and of all below it, under
// their dotted names; what is shared under each, or under the first alone.
func eachOwn(m starlark.Value, each bool, f func(of starlark.Value, params, buffers []named)) error {
	all, err := modulesAt(m, each)
	if err != nil {
		return err
	}
	seen := map[starlark.Value]bool{}
	under := func(prefix string, found []named) (out []named) {
		for _, e := range found {
			if key := sameness(e.value); each || !seen[key] {
				seen[key] = true
				out = append(out, named{dotted(prefix, e.name), e.value})
			}
		}
		return out
	}
	for _, part := range all {
		p, b, _, err := own(part.value)
		if err != nil {
			return err
		}
		f(part.value, under(part.name, p), under(part.name, b))
	}
	return nil
}

// pass has a buffer be none of a state_dict.
func (s *moduleState) pass(buffer string) {
	if s.passing == nil {
		s.passing = map[string]bool{}
	}
	s.passing[buffer] = true
}

// listed are the parameters and buffers of a module of the program, whose
// names the reference tells.
func (s *symbol) listed() (params, buffers []named, err error) {
	if s.entries == nil {
		s.entries = &[2][]named{}
		for i, kind := range []string{"parameter", "buffer"} {
			if s.entries[i], err = s.ask(kind); err != nil {
				return nil, nil, err
			}
		}
	}
	return s.entries[0], s.entries[1], nil
}

func (s *symbol) ask(kind string) ([]named, error) {
	v, err := s.d.ask(moduleCall("named_"+kind+"s", s))
	if err != nil {
		return nil, err
	}
	var out []named
	for _, e := range v.Tuple {
		if len(e.Tuple) != 2 {
			continue
		}
		name, _ := e.Tuple[0].Plain.(string)
		var part *symbol
		if strings.Contains(name, ".") {
			var got starlark.Value
			if got, err = s.d.call("Module.get_"+kind, s, starlark.Tuple{starlark.String(name)}, nil); err == nil {
				part = got.(*symbol)
			}
		} else {
			part, err = s.d.getattr(s, name)
		}
		if err != nil {
			return nil, err
		}
		part.kind = kindTensor
		if kind == "parameter" {
			part.made = "torch.nn.Parameter"
		}
		out = append(out, named{name, part})
	}
	return out, nil
}

// attr are the attributes of every module.
func (c moduleClass) attr(o *object, name string) (starlark.Value, error) {
	s := stateOf(o)
	if m, ok := moduleFunctions[name]; ok {
		return m.bind(name, o), nil
	}
	switch name {
	case "training":
		return starlark.Bool(s.training), nil
	case "__call__":
		return bindCall(name, o, c.call), nil
	case "forward":
		return bindCall(name, o, c.forward), nil
	case "config":
		return blockConfig{}, nil
	}
	if s.base != nil {
		return s.base.Attr(name)
	}
	if f, ok := containerFunctions[name]; ok && c.of != "torch.nn.Module" {
		return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return f(t, o, a) }), nil
	}
	return nil, nil
}

func bindCall(name string, o *object, call func(*starlark.Thread, *object, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)) starlark.Value {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return call(t, o, args, kwargs)
	})
}

// item is m[k] of a container.
func (c moduleClass) item(o *object, k starlark.Value) (starlark.Value, error) {
	if s, ok := starlark.AsString(k); ok {
		if v := o.fields[s]; v != nil {
			return v, nil
		}
		return nil, fmt.Errorf("%s has no module %s", o.class.name, repr(k, 0))
	}
	all := o.children()
	values := make(starlark.Tuple, len(all))
	for i, c := range all {
		values[i] = c.value
	}
	if s, ok := k.(*slice); ok {
		part, err := getslice(values, s.start, s.stop, s.step)
		if err != nil {
			return nil, err
		}
		args := part.(starlark.Tuple)
		if c.of != "torch.nn.Sequential" {
			args = starlark.Tuple{args}
		}
		return c.of.hostedAnyway(o.thread, args)
	}
	i, err := starlark.AsInt32(k)
	if err == nil && i < 0 {
		i += len(values)
	}
	if err != nil || i < 0 || i >= len(values) {
		return nil, fmt.Errorf("index %s is out of range", k)
	}
	return values[i], nil
}

// hostedAnyway is a container that is an object whatever it holds.
func (p path) hostedAnyway(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	v, err := p.hosted(t, args)
	if v == nil && err == nil {
		return starlark.Call(t, p, args, nil)
	}
	return v, err
}

func pairOf(c named) starlark.Value { return starlark.Tuple{starlark.String(c.name), c.value} }

func listOf(all []named, f func(named) starlark.Value) *starlark.List {
	out := make([]starlark.Value, len(all))
	for i, c := range all {
		out[i] = f(c)
	}
	return starlark.NewList(out)
}

func iteratorOf(all []named, f func(named) starlark.Value) starlark.Value {
	vs, _ := sequence(listOf(all, f))
	return &iterator{rest: vs}
}
