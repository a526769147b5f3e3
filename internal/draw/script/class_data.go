package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// dataclass is the decorator @dataclass, with arguments or without.
type dataclass struct{ frozen, ordered, unequal, keywordOnly, silent bool }

func (dataclass) String() string        { return "dataclass" }
func (dataclass) Type() string          { return "function" }
func (dataclass) Freeze()               {}
func (dataclass) Truth() starlark.Bool  { return true }
func (dataclass) Hash() (uint32, error) { return hashString("dataclass") }
func (dataclass) Name() string          { return "dataclass" }

// CallInternal is @dataclass(frozen=True), or dataclass(C).
func (d dataclass) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	for _, kw := range kwargs {
		switch on := bool(kw[1].Truth()); kw[0] {
		case starlark.String("frozen"):
			d.frozen = on
		case starlark.String("order"):
			d.ordered = on
		case starlark.String("eq"):
			d.unequal = !on
		case starlark.String("kw_only"):
			d.keywordOnly = on
		case starlark.String("repr"):
			d.silent = !on
		}
	}
	if len(args) == 0 {
		return d, nil
	}
	c, ok := args[0].(*class)
	if !ok {
		return nil, fmt.Errorf("dataclass takes a class, not %s", article(args[0].Type()))
	}
	c.data = &d
	c.ownFields()
	return c, nil
}

// dataField is a field of a dataclass, and what dataclasses.field gives of one.
type dataField struct {
	name, annotation string
	value            starlark.Value // nil for none
	factory          starlark.Value // nil for none
	given            bool           // it is an argument of the constructor
	shown, compared  bool
	keywordOnly      bool
}

func newField(name, annotation string, value starlark.Value) *dataField {
	return &dataField{name: name, annotation: annotation, value: value, given: true, shown: true, compared: true}
}

func (*dataField) String() string        { return "field" }
func (*dataField) Type() string          { return "Field" }
func (*dataField) Freeze()               {}
func (*dataField) Truth() starlark.Bool  { return true }
func (*dataField) Hash() (uint32, error) { return hashString("field") }
func (*dataField) AttrNames() []string {
	return []string{"default", "default_factory", "init", "name", "type"}
}

// Attr returns what a test asks of one of fields(C).
func (f *dataField) Attr(name string) (starlark.Value, error) {
	switch name {
	case "name":
		return starlark.String(f.name), nil
	case "type":
		return starlark.String(f.annotation), nil
	case "init":
		return starlark.Bool(f.given), nil
	case "default":
		return orMissing(f.value), nil
	case "default_factory":
		return orMissing(f.factory), nil
	}
	return nil, nil
}

// noDefault is dataclasses.MISSING.
var noDefault = foreign("dataclasses.MISSING")

func orMissing(v starlark.Value) starlark.Value {
	if v == nil {
		return noDefault
	}
	return v
}

// isArgument reports whether a field is none but an argument, for __post_init__.
func (f *dataField) isArgument() bool { return annotates(f.annotation, "InitVar") }

// annotates reports whether an annotation is that of a special form, such as ClassVar[int].
func annotates(annotation, form string) bool {
	head, _, _ := strings.Cut(strings.Trim(annotation, `"' `), "[")
	return head == form || strings.HasSuffix(head, "."+form)
}

func fieldCall(_ *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	f := newField("", "", nil)
	for _, kw := range kwargs {
		switch kw[0] {
		case starlark.String("default"):
			f.value = kw[1]
		case starlark.String("default_factory"):
			f.factory = kw[1]
		case starlark.String("init"):
			f.given = bool(kw[1].Truth())
		case starlark.String("repr"):
			f.shown = bool(kw[1].Truth())
		case starlark.String("compare"):
			f.compared = bool(kw[1].Truth())
		case starlark.String("kw_only"):
			f.keywordOnly = bool(kw[1].Truth())
		}
	}
	return f, nil
}

// dataclassNames are those of the module dataclasses.
func dataclassNames() starlark.StringDict {
	return starlark.StringDict{
		"dataclass": dataclass{}, "field": starlark.NewBuiltin("field", fieldCall),
		"asdict": ofOne("asdict", asDict), "astuple": ofOne("astuple", asDataTuple), "replace": starlark.NewBuiltin("replace", replaced),
		"fields": ofOne("fields", fieldsOf), "is_dataclass": ofOne("is_dataclass", isDataclass),
		"MISSING": noDefault, "FrozenInstanceError": exceptionTypes["FrozenInstanceError"],
	}
}

// annotation is a name that a class's body annotates.
type annotation struct{ name, text string }

// annotated notes one.
func annotated(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if c := bodiesOf(t).class; c != nil {
		name, text := string(a[0].(starlark.String)), string(a[1].(starlark.String))
		if !slices.ContainsFunc(c.annotations, func(n annotation) bool { return n.name == name }) {
			c.annotations = append(c.annotations, annotation{name, text})
		}
	}
	return starlark.None, nil
}

func (c *class) assigns(name string) {
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
}

// ownFields makes the fields of a dataclass, or of a typing.NamedTuple, of its own body.
func (c *class) ownFields() {
	c.own = nil
	keywordOnly := c.data != nil && c.data.keywordOnly
	for _, n := range c.annotations {
		if annotates(n.text, "ClassVar") {
			continue
		}
		if annotates(n.text, "KW_ONLY") {
			keywordOnly = true
			continue
		}
		v := c.attrs[n.name]
		f, ok := v.(*dataField)
		if !ok {
			f = newField(n.name, n.text, v)
		} else if f.value == nil {
			delete(c.attrs, n.name)
		} else {
			c.attrs[n.name] = f.value
		}
		f.name, f.annotation, f.keywordOnly = n.name, n.text, f.keywordOnly || keywordOnly
		c.own = append(c.own, f)
	}
}

// dataOf is how the nearest dataclass among a class and its bases was made; nil for none.
func (c *class) dataOf() *dataclass {
	for _, k := range c.order {
		if k.data != nil {
			return k.data
		}
	}
	return nil
}

// fields are those of a class and its bases, of bases first. One that is defined again
// stays in its place.
func (c *class) fields() []*dataField {
	var all []*dataField
	for _, k := range slices.Backward(c.order) {
		for _, f := range k.own {
			if i := slices.IndexFunc(all, func(of *dataField) bool { return of.name == f.name }); i >= 0 {
				all[i] = f
			} else {
				all = append(all, f)
			}
		}
	}
	return all
}

// arguments are the fields that the constructor is given, those by keyword alone last.
func (c *class) arguments() (all []*dataField, positional int) {
	for _, byKeyword := range []bool{false, true} {
		for _, f := range c.fields() {
			if f.given && f.keywordOnly == byKeyword {
				all = append(all, f)
			}
		}
		if !byKeyword {
			positional = len(all)
		}
	}
	return all, positional
}

func namesOf(fields []*dataField) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// initial is the value of a field that the constructor is not given; nil for none.
func (f *dataField) initial(t *starlark.Thread) (starlark.Value, error) {
	if f.factory != nil {
		return starlark.Call(t, f.factory, nil, nil)
	}
	return f.value, nil
}

// fill is the constructor of a dataclass.
func (o *object) fill(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) error {
	given, positional := o.class.arguments()
	if len(args) > positional {
		return fmt.Errorf("%s takes at most %d positional arguments, not %d", o.class.name, positional, len(args))
	}
	values := make([]starlark.Value, len(given))
	for i, f := range given {
		if f.factory != nil || f.value != nil {
			values[i] = f // which stands for its default
		}
	}
	a := arguments{o.class.name, namesOf(given), values}
	if err := a.rebind(args, kwargs); err != nil {
		return err
	}
	var post starlark.Tuple
	for _, f := range o.class.fields() {
		v := starlark.Value(f)
		if i := slices.Index(given, f); i >= 0 {
			v = a.values[i]
		}
		var err error
		if v == starlark.Value(f) {
			v, err = f.initial(t)
		}
		switch {
		case err != nil:
			return err
		case f.isArgument():
			post = append(post, v)
		case v != nil:
			if err := o.assign(f.name, v); err != nil {
				return err
			}
		}
	}
	_, _, err := special(t, o, "__post_init__", post...)
	return err
}

// asData is an instance of a dataclass.
func asData(fn string, v starlark.Value) (*object, error) {
	if o, ok := v.(*object); ok && o.class.dataOf() != nil {
		return o, nil
	}
	return nil, fmt.Errorf("%s takes an instance of a dataclass, not %s", fn, article(v.Type()))
}

// dataclassOf is a dataclass, or that of an instance; nil for none.
func dataclassOf(v starlark.Value) *class {
	if o, ok := v.(*object); ok {
		v = o.class
	}
	if c, ok := v.(*class); ok && c.dataOf() != nil {
		return c
	}
	return nil
}

func isDataclass(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	return starlark.Bool(dataclassOf(v) != nil), nil
}

// fieldsOf is dataclasses.fields.
func fieldsOf(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	c := dataclassOf(v)
	if c == nil {
		return nil, fmt.Errorf("fields takes a dataclass, or an instance of one, not %s", article(v.Type()))
	}
	var all starlark.Tuple
	for _, f := range c.fields() {
		if !f.isArgument() {
			all = append(all, f)
		}
	}
	return all, nil
}

// kept are the fields that an instance has.
func (o *object) kept() []*dataField {
	return slices.DeleteFunc(o.class.fields(), func(f *dataField) bool { return o.fields[f.name] == nil })
}

func asDict(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	if _, err := asData("asdict", v); err != nil {
		return nil, err
	}
	return plainData(v, false, 0)
}

func asDataTuple(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	if _, err := asData("astuple", v); err != nil {
		return nil, err
	}
	return plainData(v, true, 0)
}

// plainData is a value with each instance of a dataclass in it as a dict or a tuple.
func plainData(v starlark.Value, tuples bool, depth int) (starlark.Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested too deep")
	}
	each := func(vs []starlark.Value) ([]starlark.Value, error) {
		out := make([]starlark.Value, len(vs))
		for i, e := range vs {
			var err error
			if out[i], err = plainData(e, tuples, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch v := v.(type) {
	case *object:
		if v.class.dataOf() == nil {
			return v, nil
		}
		kept := v.kept()
		values := make([]starlark.Value, len(kept))
		for i, f := range kept {
			values[i] = v.fields[f.name]
		}
		values, err := each(values)
		if err != nil || tuples {
			return starlark.Tuple(values), err
		}
		d := starlark.NewDict(len(kept))
		for i, f := range kept {
			if err := d.SetKey(starlark.String(f.name), values[i]); err != nil {
				return nil, err
			}
		}
		return d, nil
	case *starlark.List:
		out, err := each(slices.Collect(starlark.Elements(v)))
		return starlark.NewList(out), err
	case starlark.Tuple:
		out, err := each(v)
		return starlark.Tuple(out), err
	case *starlark.Dict:
		d := starlark.NewDict(v.Len())
		for _, item := range v.Items() {
			e, err := plainData(item[1], tuples, depth+1)
			if err != nil {
				return nil, err
			}
			if err := d.SetKey(item[0], e); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return v, nil
}

// replaced is dataclasses.replace.
func replaced(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("replace takes one argument and keywords, not %d", len(args))
	}
	o, err := asData("replace", args[0])
	if err != nil {
		return nil, err
	}
	all := slices.Clone(kwargs)
	for _, f := range o.kept() {
		name := starlark.String(f.name)
		if f.given && !slices.ContainsFunc(kwargs, func(kw starlark.Tuple) bool { return kw[0] == starlark.Value(name) }) {
			all = append(all, starlark.Tuple{name, o.fields[f.name]})
		}
	}
	return o.class.CallInternal(t, nil, all)
}

// comparedFields are the values by which instances of one dataclass are compared.
func (o *object) comparedFields() starlark.Tuple {
	var vs starlark.Tuple
	for _, f := range o.kept() {
		if f.compared {
			vs = append(vs, o.fields[f.name])
		}
	}
	return vs
}

// twoData are the values by which two instances of one dataclass are compared; ok is
// false where they are not, for want of order for one.
func twoData(x, y starlark.Value, order bool) (a, b starlark.Tuple, ok bool) {
	p, isObject := x.(*object)
	q, isAnother := y.(*object)
	if !isObject || !isAnother || p.class != q.class {
		return nil, nil, false
	}
	if d := p.class.dataOf(); d == nil || order && !d.ordered || d.unequal {
		return nil, nil, false
	}
	return p.comparedFields(), q.comparedFields(), true
}

// tupleClass is what derives from typing.NamedTuple.
type tupleClass struct{ plainClass }

// foreignBases are bases from Python's library.
var foreignBases = map[foreign]inherited{
	"typing.NamedTuple": tupleClass{}, "enum.Enum": enumClass{}, "enum.IntEnum": enumClass{of: "int", asValue: true}, "enum.StrEnum": enumClass{of: "str", asValue: true}, "abc.ABC": plainClass{}, "typing.Generic": plainClass{}, "typing.Protocol": plainClass{},
}

// finished returns what a class stands for when its body has run.
func (c *class) finished() (starlark.Value, error) {
	switch kind := c.inherited.(type) {
	case tupleClass:
		c.ownFields()
		if fields := c.fields(); len(fields) > 0 {
			values := make(starlark.Tuple, len(fields))
			for i, f := range fields {
				values[i] = f.value
			}
			return &namedType{name: c.name, fields: namesOf(fields), defaults: values, class: c}, nil
		}
	case enumClass:
		c.enumerate(kind.of)
	}
	if c.data != nil {
		c.ownFields()
	}
	return c, nil
}

// plain is the text of an object whose class says none.
func (o *object) plain(depth int) string {
	switch {
	case o.class.dataOf() != nil && !o.class.dataOf().silent:
		var parts []string
		for _, f := range o.kept() {
			if f.shown {
				parts = append(parts, f.name+"="+repr(o.fields[f.name], depth+1))
			}
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
