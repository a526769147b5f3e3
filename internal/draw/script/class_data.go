package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// dataclass is the decorator @dataclass, with arguments or without.
type dataclass struct{}

func (dataclass) String() string        { return "dataclass" }
func (dataclass) Type() string          { return "function" }
func (dataclass) Freeze()               {}
func (dataclass) Truth() starlark.Bool  { return true }
func (dataclass) Hash() (uint32, error) { return hashString("dataclass") }
func (dataclass) Name() string          { return "dataclass" }

// CallInternal is @dataclass(frozen=True), or dataclass(C).
func (d dataclass) CallInternal(_ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return d, nil
	}
	c, ok := args[0].(*class)
	if !ok {
		return nil, fmt.Errorf("dataclass takes a class, not %s", article(args[0].Type()))
	}
	c.data = true
	return c, nil
}

// dataField is what dataclasses.field gives.
type dataField struct {
	value   starlark.Value // nil for none
	factory starlark.Value
}

func (*dataField) String() string        { return "field" }
func (*dataField) Type() string          { return "Field" }
func (*dataField) Freeze()               {}
func (*dataField) Truth() starlark.Bool  { return true }
func (*dataField) Hash() (uint32, error) { return hashString("field") }

func fieldCall(_ *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	f := &dataField{}
	for _, kw := range kwargs {
		switch kw[0] {
		case starlark.String("default"):
			f.value = kw[1]
		case starlark.String("default_factory"):
			f.factory = kw[1]
		}
	}
	return f, nil
}

// dataclassNames are those of the module dataclasses.
func dataclassNames() starlark.StringDict {
	return starlark.StringDict{
		"dataclass": dataclass{}, "field": starlark.NewBuiltin("field", fieldCall),
		"asdict": builtin("asdict", asDict), "replace": starlark.NewBuiltin("replace", replaced),
	}
}

// annotated notes a name that a class's body annotates and gives no value.
func annotated(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if c := bodiesOf(t).class; c != nil {
		c.assigns(string(a[0].(starlark.String)))
	}
	return starlark.None, nil
}

func (c *class) assigns(name string) {
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
}

// fields returns the names that the bodies of a class and its bases assign or
// annotate, those of bases first, but for functions.
func (c *class) fields() []string {
	var all []string
	for _, k := range slices.Backward(c.order) {
		for _, n := range k.names {
			switch k.attrs[n].(type) {
			case *starlark.Function, *wrappedMethod, *property:
				continue
			}
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// defaults returns the values of fields that have one; of others nil.
func (c *class) defaults(t *starlark.Thread, fields []string) (starlark.Tuple, error) {
	values := make(starlark.Tuple, len(fields))
	for i, name := range fields {
		v := c.lookup(name)
		if f, ok := v.(*dataField); ok {
			if v = f.value; f.factory != nil {
				var err error
				if v, err = starlark.Call(t, f.factory, nil, nil); err != nil {
					return nil, err
				}
			}
		}
		values[i] = v
	}
	return values, nil
}

// fill is the constructor of a dataclass.
func (o *object) fill(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) error {
	fields := o.class.fields()
	values, err := o.class.defaults(t, fields)
	if err != nil {
		return err
	}
	a := arguments{o.class.name, fields, values}
	if err := a.rebind(args, kwargs); err != nil {
		return err
	}
	for i, name := range fields {
		if err := o.SetField(name, a.values[i]); err != nil {
			return err
		}
	}
	_, _, err = special(t, o, "__post_init__")
	return err
}

func asDict(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	o, ok := a[0].(*object)
	if !ok || !o.class.data {
		return nil, fmt.Errorf("asdict takes an instance of a dataclass, not %s", article(a[0].Type()))
	}
	d := starlark.NewDict(len(o.names))
	for _, name := range o.class.fields() {
		if err := d.SetKey(starlark.String(name), o.fields[name]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// replaced is dataclasses.replace.
func replaced(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, err := asDict(t, args)
	if err != nil {
		return nil, err
	}
	all := d.(*starlark.Dict)
	for _, kw := range kwargs {
		if err := all.SetKey(kw[0], kw[1]); err != nil {
			return nil, err
		}
	}
	return args[0].(*object).class.CallInternal(t, nil, all.Items())
}

// tupleClass is what derives from typing.NamedTuple.
type tupleClass struct{ plainClass }

// foreignBases are bases from Python's library.
var foreignBases = map[foreign]inherited{
	"typing.NamedTuple": tupleClass{}, "enum.Enum": enumClass{}, "enum.IntEnum": enumClass{of: "int", asValue: true}, "enum.StrEnum": enumClass{of: "str", asValue: true}, "abc.ABC": plainClass{}, "typing.Generic": plainClass{}, "typing.Protocol": plainClass{},
}

// finished returns what a class stands for when its body has run.
func (c *class) finished(t *starlark.Thread) (starlark.Value, error) {
	switch kind := c.inherited.(type) {
	case tupleClass:
		if fields := c.fields(); len(fields) > 0 {
			values, err := c.defaults(t, fields)
			return &namedType{name: c.name, fields: fields, defaults: values, class: c}, err
		}
	case enumClass:
		c.enumerate(kind.of)
	}
	return c, nil
}

// plain is the text of an object whose class says none.
func (o *object) plain(depth int) string {
	switch {
	case o.class.data:
		var parts []string
		for _, name := range o.class.fields() {
			parts = append(parts, name+"="+repr(o.fields[name], depth+1))
		}
		return o.class.name + "(" + strings.Join(parts, ", ") + ")"
	case o.class.members != nil:
		if kind, _ := o.class.inherited.(enumClass); kind.asValue {
			return str(o.fields["value"])
		}
		return o.class.name + "." + str(o.fields["name"])
	}
	return "<" + o.class.name + " object>"
}
