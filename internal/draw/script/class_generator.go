package script

import (
	"fmt"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
)

// generatorClass are generators that a file defines, as AutoTest's are: what
// they draw is the result of _calc_value (of _generate in older files).
type generatorClass struct{ plainClass }

func (generatorClass) init(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) error {
	a := arguments{"generator", []string{"children"}, make([]starlark.Value, 1)}
	if err := a.bind(args, kwargs); err != nil {
		return err
	}
	var kids []any
	if a.values[0] != nil {
		vs, err := iterate(t, a.values[0])
		if err != nil {
			return err
		}
		for _, v := range vs {
			kid, err := operand(v)
			if err != nil {
				return err
			}
			kids = append(kids, kid)
		}
	}
	size := 1
	if v, ok, err := special(t, o, "_calc_size"); ok {
		if err != nil {
			return err
		}
		if size, err = starlark.AsInt32(v); err != nil || size < 1 || size > maxElements {
			return fmt.Errorf("%s._calc_size must give a positive int", o.class.name)
		}
	}
	o.state = &generator{gen.Custom(o.class.name, size, o.drawn, kids...), o}
	return nil
}

// drawn is what the methods of the class draw.
func (o *object) drawn(c *gen.Case) (any, error) {
	for _, name := range []string{"_calc_value", "_generate"} {
		v, ok, err := special(c.Caller.(*starlark.Thread), o, name)
		if ok && err == nil {
			return operand(v)
		}
		if ok {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the generator %s has no method _calc_value", o.class.name)
}

// attr are the attributes of every generator.
func (generatorClass) attr(o *object, name string) (starlark.Value, error) {
	g, ok := o.state.(*generator)
	if !ok {
		return nil, nil
	}
	switch name {
	case "to", "value", "eval", "size":
		return g.Attr(name)
	}
	return nil, nil
}

// pack makes a generator of a value that is none.
func pack(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("pack takes one value")
	}
	if g, ok := a[0].(*generator); ok {
		return g, nil
	}
	return makeConstant(nil, arguments{"constant", []string{"x"}, a})
}
