package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
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
	case placement:
		return []string{"placement"}, nil
	case *object:
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
	if ts, ok := a[1].(starlark.Tuple); ok {
		types = ts
	}
	for _, t := range types {
		if c, ok := t.(*class); ok && isObject && slices.Contains(o.class.order, c) {
			return starlark.True, nil
		}
		if slices.Contains(names, className(t)) {
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

func typeCall(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("type takes one argument, not %d", len(a))
	}
	switch v := a[0].(type) {
	case *object:
		return v.class, nil
	case *raised:
		if class := predeclared[v.class]; class != nil {
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

// identityOf is id: equal for one value, different for others.
func identityOf(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("id takes one argument, not %d", len(a))
	}
	if s, ok := a[0].(*symbol); ok {
		name := string(s.ref)
		if of := s.d.derives(s.ref); of != "" { // one tensor, to which backward adds
			name = string(gradientOf(of))
		}
		h, err := hashString(name)
		return starlark.MakeUint(uint(h)), err
	}
	return nil, lack("id of %s is not supported in test files", article(a[0].Type()))
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
	if o, ok := x.(*object); ok {
		if p, ok := o.class.lookup(name).(*property); ok {
			return starlark.Call(t, p.get, starlark.Tuple{o}, nil)
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
		return nil, lack("hasattr of %s is not supported in test files", string(x))
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
	if !ok || !settable {
		return nil, fmt.Errorf("setattr of %s", article(a[0].Type()))
	}
	return starlark.None, x.SetField(name, a[2])
}
