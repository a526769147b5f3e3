package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// enumClass is what derives from enum.Enum. The members of one that derives from a type of
// values too, as IntEnum does, are such values wherever something is computed.
type enumClass struct {
	plainClass
	of      string // "int", "str" or "float"; "" for none
	asValue bool   // printed as the value, which IntEnum and StrEnum are
}

// memberValue is the value that a member of such a class is; other values are themselves.
func memberValue(v starlark.Value) starlark.Value {
	if o, ok := v.(*object); ok {
		if kind, ok := o.class.inherited.(enumClass); ok && kind.of != "" {
			return o.fields["value"]
		}
	}
	return v
}

// attr is a method of the value that a member is.
func (kind enumClass) attr(o *object, name string) (starlark.Value, error) {
	if v, ok := memberValue(o).(starlark.HasAttrs); ok && kind.of != "" {
		return v.Attr(name)
	}
	return nil, nil
}

// mixIn has an enumeration derive from a type of values, which Python names before Enum.
func (c *class) mixIn(of string) {
	kind, ok := c.inherited.(enumClass)
	switch {
	case !ok:
		c.lacks = fmt.Sprintf("class %s is not supported: its base <class '%s'> is not in test files", c.name, of)
	case kind.of == "":
		c.inherited = enumClass{of: of}
	}
}

// auto is enum.auto().
const auto = starlark.String("\x00auto")

// enumerate makes members of what the class's body assigns.
func (c *class) enumerate(of string) {
	for _, name := range c.names {
		v, assigned := c.attrs[name]
		if _, method := v.(starlark.Callable); method || !assigned || strings.HasPrefix(name, "_") {
			continue
		}
		if v == auto {
			v = starlark.MakeInt(len(c.members) + 1)
			if of == "str" {
				v = starlark.String(strings.ToLower(name))
			}
		}
		v = &object{class: c, fields: starlark.StringDict{"name": starlark.String(name), "value": v}, names: []string{"name", "value"}, frozen: true}
		c.attrs[name] = v
		c.members = append(c.members, v)
	}
}

// member returns the member of an enumeration that has a value.
func (c *class) member(value starlark.Value) (starlark.Value, error) {
	for _, m := range c.members {
		if m == value {
			return m, nil
		}
		if same, err := starlark.Equal(m.(*object).fields["value"], memberValue(value)); err != nil || same {
			return m, err
		}
	}
	return nil, fmt.Errorf("%s is not a valid %s", repr(value, 0), c.name)
}

// Get is Colour["RED"] of an enumeration.
func (c *class) Get(k starlark.Value) (starlark.Value, bool, error) {
	name, _ := starlark.AsString(k)
	v, ok := c.attrs[name]
	if !ok || !slices.Contains(c.members, v) {
		return nil, false, lack("%s[%s] is not supported in test files", c.name, repr(k, 0))
	}
	return v, true, nil
}
