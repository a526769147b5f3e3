package script

import (
	"fmt"
	"slices"
	"strconv"

	"go.starlark.net/starlark"
)

// containerFunctions are the methods of containers.
var containerFunctions map[string]func(t *starlark.Thread, o *object, a starlark.Tuple) (starlark.Value, error)

func init() {
	containerFunctions = map[string]func(t *starlark.Thread, o *object, a starlark.Tuple) (starlark.Value, error){
		"append": func(_ *starlark.Thread, o *object, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 1 || !isModule(a[0]) {
				return nil, fmt.Errorf("append takes a module")
			}
			return o, o.SetField(strconv.Itoa(len(o.names)), a[0])
		},
		"extend": func(t *starlark.Thread, o *object, a starlark.Tuple) (starlark.Value, error) {
			return o, o.contain(t, a)
		},
		"insert": func(_ *starlark.Thread, o *object, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 2 || !isModule(a[1]) {
				return nil, fmt.Errorf("insert takes an index and a module")
			}
			i, err := starlark.AsInt32(a[0])
			if err != nil {
				return nil, err
			}
			all := o.children()
			if i < 0 {
				i += len(all)
			}
			i = min(max(i, 0), len(all))
			return o, o.renumber(slices.Insert(all, i, named{value: a[1]}))
		},
		"pop": func(_ *starlark.Thread, o *object, a starlark.Tuple) (starlark.Value, error) {
			var at starlark.Value = starlark.MakeInt(-1)
			if len(a) > 0 {
				at = a[0]
			}
			i, err := o.place(at)
			if err != nil {
				return nil, err
			}
			gone := o.children()[i].value
			return gone, o.removePart(i)
		},
		"update": func(t *starlark.Thread, o *object, a starlark.Tuple) (starlark.Value, error) {
			return starlark.None, o.contain(t, a)
		},
		"keys": func(_ *starlark.Thread, o *object, _ starlark.Tuple) (starlark.Value, error) {
			return listOf(o.children(), func(c named) starlark.Value { return starlark.String(c.name) }), nil
		},
		"values": func(_ *starlark.Thread, o *object, _ starlark.Tuple) (starlark.Value, error) {
			return listOf(o.children(), func(c named) starlark.Value { return c.value }), nil
		},
		"items": func(_ *starlark.Thread, o *object, _ starlark.Tuple) (starlark.Value, error) {
			return listOf(o.children(), pairOf), nil
		},
	}
}

// edits are the methods that change what a container holds.
var edits = []string{"append", "extend", "insert", "pop", "add_module"}

func isContainer(o *object) bool {
	c, ok := o.class.inherited.(moduleClass)
	return ok && slices.Contains(containerPaths, c.of)
}

// place is the position of the part that m[k] means.
func (o *object) place(k starlark.Value) (int, error) {
	all := o.children()
	i, err := starlark.AsInt32(k)
	if name, ok := starlark.AsString(k); ok {
		i, err = slices.IndexFunc(all, func(c named) bool { return c.name == name }), nil
	} else if err == nil && i < 0 {
		i += len(all)
	}
	if err != nil || i < 0 || i >= len(all) {
		return 0, fmt.Errorf("%s has no module %s", o.class.name, repr(k, 0))
	}
	return i, nil
}

// setPart is m[k] = v of a container.
func (o *object) setPart(k, v starlark.Value) error {
	if name, ok := starlark.AsString(k); ok {
		return o.SetField(name, v)
	}
	i, err := o.place(k)
	if err != nil {
		return err
	}
	return o.SetField(o.children()[i].name, v)
}

// removePart is del m[k] of a container: those behind it in a list have new numbers.
func (o *object) removePart(i int) error {
	all := o.children()
	if o.class.inherited.(moduleClass).of == "torch.nn.ModuleDict" {
		return o.drop(all[i].name)
	}
	return o.renumber(slices.Delete(all, i, i+1))
}

// renumber has a container hold modules under their positions.
func (o *object) renumber(parts []named) error {
	for _, c := range o.children() {
		if err := o.drop(c.name); err != nil {
			return err
		}
	}
	for i, c := range parts {
		if err := o.SetField(strconv.Itoa(i), c.value); err != nil {
			return err
		}
	}
	return nil
}

// edited is the object that a container of the program becomes once the test changes
// what it holds.
func (s *symbol) edited() (*object, error) {
	if s.hosted == nil {
		o := containerObject(s.d.thread, path(s.made))
		for _, c := range s.children {
			if err := o.SetField(c.name, c.value); err != nil {
				return nil, err
			}
		}
		s.hosted = o
	}
	return s.hosted, nil
}

// containerOf is the object of a container; nil of anything else.
func containerOf(v starlark.Value) (*object, error) {
	switch x := v.(type) {
	case *symbol:
		if x.children != nil {
			return x.edited()
		}
	case *object:
		if isContainer(x) {
			return x, nil
		}
	}
	return nil, nil
}

func containerObject(t *starlark.Thread, p path) *object {
	o := &object{class: &class{name: string(p[len("torch.nn."):]), base: p, inherited: moduleClass{p}}, fields: map[string]starlark.Value{}, thread: t}
	o.class.order = []*class{o.class}
	return o
}
