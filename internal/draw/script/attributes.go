package script

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/backend"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
)

// classNames are the classes that a value is an instance of.
func classNames(v starlark.Value) ([]string, error) {
	switch v := v.(type) {
	case starlark.Bool:
		return []string{"bool", "int"}, nil
	case starlark.Tuple:
		if _, err := dims(v); err == nil && len(v) > 0 {
			return []string{"torch.Size", "tuple"}, nil
		}
		return []string{"tuple"}, nil
	case starlark.Int, starlark.Float, *starlark.List, *starlark.Dict, *starlark.Set, complexNumber, *slice:
		return []string{v.Type()}, nil
	case starlark.String:
		return []string{"str"}, nil
	case starlark.NoneType:
		return []string{"NoneType"}, nil
	case dtype:
		return []string{"torch.dtype"}, nil
	case *array:
		return []string{"numpy.ndarray"}, nil
	case *generator:
		return []string{"generator"}, nil
	case *attr:
		s, err := v.resolve()
		if err != nil {
			return nil, err
		}
		return classNames(s)
	case *symbol:
		return v.classNames()
	case *raised:
		return exceptionNames(v.class), nil
	case *optimizer:
		return []string{v.Type(), "torch.optim.Optimizer"}, nil
	case placement:
		return []string{"placement"}, nil
	case *object:
		if slices.Contains(v.class.order, dictBase().order[1]) { // as defaultdict, and all of its kind
			return []string{v.class.name, "dict", "object"}, nil
		}
		if v.class.base == nil {
			return []string{"object"}, nil
		}
		names := append(exceptionNames(className(v.class.base)), "object")
		if isModule(v) {
			names = append(names, "torch.nn.Module", "torch.nn.modules.module.Module")
		}
		return names, nil
	}
	return []string{v.Type()}, nil
}

func (s *symbol) classNames() ([]string, error) {
	kind, err := s.known()
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindTensor:
		if isParam(s) {
			return []string{"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.Tensor"}, nil
		}
		return []string{"torch.Tensor"}, nil
	case kindTuple:
		return []string{"tuple"}, nil
	case kindModule:
		return []string{"torch.nn.Module", "torch.nn.modules.module.Module", s.made}, nil
	}
	v, err := s.item()
	if err != nil {
		return nil, err
	}
	host, err := s.d.fromProgram(v)
	if err != nil {
		return nil, err
	}
	return classNames(host)
}

func isInstance(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("isinstance takes a value and a type, not %d arguments", len(a))
	}
	names, err := classNames(a[0])
	if err != nil {
		return nil, err
	}
	types := []starlark.Value{a[1]}
	o, isObject := a[0].(*object)
	isMember := false
	if isObject {
		var kind enumClass
		kind, isMember = o.class.inherited.(enumClass)
		names = append(names, kind.of)
	}
	if ts, ok := a[1].(starlark.Tuple); ok {
		types = ts
	}
	for _, t := range types {
		if c, ok := ourClass(t).(*class); ok && isObject && slices.Contains(o.class.order, c) {
			return starlark.True, nil
		}
		if name := className(t); name != "" && slices.Contains(names, name) {
			return starlark.True, nil
		}
		if base, ok := t.(foreign); ok && isObject && (o.class.base == starlark.Value(base) || isMember && base == "enum.Enum") {
			return starlark.True, nil
		}
	}
	return starlark.False, nil
}

// className is the name of a class as a value.
func className(v starlark.Value) string {
	switch v := asPath(v).(type) {
	case *pyType:
		return v.name
	case path:
		return string(v)
	case *starlark.Builtin:
		return v.Name()
	case placementMaker:
		return v.Name()
	}
	return ""
}

func typeCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) == 3 {
		return newClass(t, a)
	}
	if len(a) != 1 {
		return nil, fmt.Errorf("type takes one argument, not %d", len(a))
	}
	switch v := a[0].(type) {
	case *object:
		return v.class, nil
	case *raised:
		if class := predeclared[cmp.Or(v.class, "Exception")]; class != nil {
			return class, nil
		}
	}
	names, err := classNames(a[0])
	if err != nil {
		return nil, err
	}
	name := names[len(names)-1]
	if names[0] == "bool" || names[0] == "torch.nn.Parameter" {
		name = names[0]
	}
	if t := pyTypes[name]; t != nil {
		return t, nil
	}
	if strings.HasPrefix(name, "torch.") {
		return path(name), nil
	}
	return &pyType{name: name}, nil
}

// settings returns the value of a module's attribute that is no tensor, such as
// m.in_features, as the reference tells it; any other value as it is.
func settings(v starlark.Value) starlark.Value {
	a, ok := v.(*attr)
	if !ok || a.s.kind != kindModule || a.s.hosted != nil {
		return v
	}
	m := a.s
	told, ok := m.settings[a.name]
	if !ok || a.name == "training" {
		fault := m.d.fault
		held, err := m.d.ask(program.Call{Target: "getattr", Args: []any{m.ref, a.name}})
		if err != nil {
			m.d.fault = fault // the program tells
			return v
		}
		if m.settings == nil {
			m.settings = map[string]starlark.Value{}
		}
		told = m.d.setting(held)
		m.settings[a.name] = told
	}
	if told == nil {
		return v
	}
	return told
}

// setting is a plain value, or a tuple of them; nil for anything else.
func (d *draw) setting(v backend.Value) starlark.Value {
	switch {
	case v.Tensor != nil || v.Module:
		return nil
	case v.IsTuple:
		out := make(starlark.Tuple, len(v.Tuple))
		for i, e := range v.Tuple {
			if out[i] = d.setting(e); out[i] == nil {
				return nil
			}
		}
		return out
	}
	plain, err := d.fromProgram(v.Plain)
	if err != nil {
		return nil
	}
	return plain
}

// identityOf is id: equal for one value, different for others.
func identityOf(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("id takes one argument, not %d", len(a))
	}
	if name := identity(a[0]); name != "" {
		h, err := hashString(name)
		return starlark.MakeUint(uint(h)), err
	}
	return nil, lack("id of %s is not supported in test files", article(a[0].Type()))
}

// identity names the object that a value of the program is, "" for other values: what a
// call in place gives is its first argument, and a parameter of a module the same each time
// that it is asked for.
func identity(v starlark.Value) string {
	switch v := v.(type) {
	case *attr:
		if v.s.kind == kindModule {
			return v.s.d.attributeOf(v.s.ref, v.name, nil)
		}
		if v.name == "grad" {
			return v.s.d.identity(v.s.ref) + ".grad"
		}
	case *symbol:
		return v.d.identity(v.ref)
	}
	return ""
}

func (d *draw) identity(ref program.Ref) string {
	if of := d.derives(ref); of != "" { // one tensor, to which backward adds
		return d.identity(of) + ".grad"
	}
	c := d.callOf(ref)
	if c == nil || len(c.Args) == 0 {
		return string(ref)
	}
	if to := c.Out(); to != "" {
		return d.identity(to)
	}
	first, ok := c.Args[0].(program.Ref)
	switch {
	case ok && op.InPlace(c.Target):
		return d.identity(first)
	case ok && c.Target == "getattr" && d.kindOf(first) == kindModule:
		return d.attributeOf(first, c.Args[1], c)
	}
	return string(ref)
}

// attributeOf names an attribute of a module as it is before a call, nil for now: what was
// assigned to it last.
func (d *draw) attributeOf(m program.Ref, name any, before *program.Call) string {
	assigned := 0
	var last any
	for i := range d.prog.Calls {
		c := &d.prog.Calls[i]
		if c == before {
			break
		}
		if c.Target == "setattr" && c.Args[0] == any(m) && c.Args[1] == name {
			assigned, last = assigned+1, c.Args[2]
		}
	}
	if v, ok := last.(program.Ref); ok {
		return d.identity(v)
	}
	return fmt.Sprintf("%s.%v.%d", d.identity(m), name, assigned)
}

// handedOn reports whether one tensor is what a call gave of the other, itself, as x.conj() of
// real numbers: the reference tells.
func handedOn(x, y starlark.Value) bool {
	a, ok := x.(*symbol)
	b, both := y.(*symbol)
	if !ok || !both || a.kind == kindModule || b.kind == kindModule || a.d.env.Observer == nil {
		return false
	}
	for _, pair := range [][2]*symbol{{a, b}, {b, a}} {
		c := a.d.callOf(pair[0].ref)
		if c == nil || len(c.Args) == 0 || c.Args[0] != any(pair[1].ref) {
			continue
		}
		fault := a.d.fault
		v, err := a.d.ask(program.Call{Target: "operator.is_", Args: []any{a.ref, b.ref}})
		if a.d.fault = fault; err == nil && v.Plain == true {
			return true
		}
	}
	return false
}

// sameness is a key for a value: equal for what Python's "is" tells to be one object.
func sameness(v starlark.Value) starlark.Value {
	if name := identity(v); name != "" {
		return starlark.String(name)
	}
	return v
}

// varsOf is vars(o).
func varsOf(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) == 1 {
		if o, ok := a[0].(*object); ok {
			return o.Attr("__dict__")
		}
	}
	return nil, lack("vars of other values than objects of the file's classes is not supported in test files")
}

func isCallable(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("callable takes one argument, not %d", len(a))
	}
	if s, ok := a[0].(*symbol); ok {
		return starlark.Bool(s.kind == kindModule), nil
	}
	_, ok := a[0].(starlark.Callable)
	return starlark.Bool(ok), nil
}

// attribute returns x.name; nil when there is none.
func attribute(t *starlark.Thread, x starlark.Value, name string) (starlark.Value, error) {
	if v, err := plainAttr(x, name); v != nil || err != nil {
		return v, err
	}
	switch self := x.(type) {
	case *object:
		if p, ok := self.class.lookup(name).(*property); ok {
			return starlark.Call(t, p.get, starlark.Tuple{self}, nil)
		}
	case testCase:
		if self.class == nil {
			break
		}
		if p, ok := self.class.lookup(name).(*property); ok {
			return starlark.Call(t, p.get, starlark.Tuple{self}, nil)
		}
	}
	if name == "__init__" {
		if init := initOf(x); init != nil {
			return init, nil
		}
	}
	if name == "__version__" && x == path("torch") {
		return torchVersion(t), nil
	}
	h, ok := x.(starlark.HasAttrs)
	if !ok {
		return nil, nil
	}
	v, err := h.Attr(name)
	if _, none := err.(starlark.NoSuchAttrError); none {
		return nil, nil
	}
	return v, err
}

// look reads an attribute that stands for itself.
func look(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if x, ok := a[0].(*attr); ok {
		_, err := x.resolve()
		return starlark.None, err
	}
	return starlark.None, nil
}

func attrCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	name := string(a[1].(starlark.String))
	v, err := attribute(t, a[0], name)
	if v == nil && err == nil {
		err = fmt.Errorf("%s has no attribute %s", article(a[0].Type()), name)
	}
	if _, ok := v.(environment); ok {
		v = environmentOf(t)
	}
	return v, err
}

func getAttr(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 2 || len(a) > 3 {
		return nil, fmt.Errorf("getattr takes a value, a name and a default")
	}
	name, ok := starlark.AsString(a[1])
	if !ok {
		return nil, fmt.Errorf("getattr: the name must be a string, not %s", a[1].Type())
	}
	v, err := attribute(t, a[0], name)
	if v == nil && len(a) == 3 {
		return a[2], nil
	}
	if v == nil && err == nil {
		err = fmt.Errorf("%s has no attribute %s", article(a[0].Type()), name)
	}
	return v, err
}

// has reports whether a module of torch has a name, as far as operators, modules and the
// reference's signatures tell.
func (p path) has(t *starlark.Thread, name string) bool {
	full := string(p) + "." + name
	if p == "torch" && torchConstants[name] != nil || len(ops.Table().Lookup(full)) > 0 || program.IsModule(full) || program.IsScope(full) {
		return true
	}
	if _, ours := torchCalls[path(full)]; ours {
		return true
	}
	d, drawing := t.Local(drawKey).(*draw)
	if !drawing {
		return false
	}
	sigs, err := lookup(d.env.Signatures, full)
	return err == nil && sigs != nil
}

func hasAttr(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("hasattr takes a value and a name")
	}
	name, ok := starlark.AsString(a[1])
	if !ok {
		return nil, fmt.Errorf("hasattr: the name must be a string, not %s", a[1].Type())
	}
	switch x := asPath(a[0]).(type) {
	case *symbol:
		has, err := x.has(name)
		return starlark.Bool(has), err
	case path:
		return starlark.Bool(x.has(t, name)), nil
	}
	v, err := attribute(t, a[0], name)
	return starlark.Bool(v != nil && err == nil), nil
}

func setAttr(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 3 {
		return nil, fmt.Errorf("setattr takes a value, a name and what to set")
	}
	name, ok := starlark.AsString(a[1])
	x, settable := a[0].(starlark.HasSetField)
	switch of := asPath(a[0]).(type) {
	case *library, foreign, path:
		return nil, lack("setattr of %s is not supported in test files", str(of))
	}
	if !ok || !settable {
		return nil, fmt.Errorf("setattr of %s", article(a[0].Type()))
	}
	return starlark.None, x.SetField(name, a[2])
}
