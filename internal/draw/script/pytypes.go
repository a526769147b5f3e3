package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
	"plumb/tensor"
)

// pyTypes are Python's types and those of typing and torch.nn.common_types.
var pyTypes = func() map[string]*pyType {
	m := map[string]*pyType{
		"int":     {name: "int", typ: gen.Int, dtype: tensor.I64, convert: toInt},
		"float":   {name: "float", typ: gen.Float, dtype: tensor.F64, convert: toFloat},
		"bool":    {name: "bool", typ: gen.Bool, dtype: tensor.Bool, convert: toBool},
		"complex": {name: "complex", typ: gen.Complex, dtype: tensor.C128, convert: toComplex},
		"object":  {name: "object"}, "NoneType": {name: "NoneType", typ: gen.None},
		"str": {name: "str", convert: toStr}, "list": {name: "list", convert: toList, of: listType}, "tuple": {name: "tuple", convert: toTuple, of: tupleType}, "set": {name: "set", convert: toSet}, "frozenset": {name: "frozenset", convert: toSet},
		"dict": {name: "dict", call: toDict, of: anyType}, "Any": {name: "Any"}, "Callable": {name: "Callable", of: anyType}, "Sequence": {name: "Sequence", of: anyType}, "Dict": {name: "Dict", of: anyType},
		"Union": {name: "Union", of: func(ts []gen.Type) (gen.Type, error) { return gen.Union(ts...), nil }},
		"Tuple": {name: "Tuple", of: tupleType},
		"Optional": {name: "Optional", of: func(ts []gen.Type) (gen.Type, error) {
			return gen.Union(append(ts, gen.None)...), nil
		}},
		"List": {name: "List", of: listType},
	}
	named := func(name string, t gen.Type) { m[name] = &pyType{name: name, typ: t} }
	for n := 1; n <= 6; n++ {
		named(fmt.Sprintf("_size_%d_t", n), gen.Size(n))
		named(fmt.Sprintf("_size_%d_opt_t", n), gen.OptionalSize(n))
		named(fmt.Sprintf("_size_%d_opt_t_not_none", n), gen.Size(n))
	}
	named("_size_any_t", gen.AnySize())
	named("_size_any_opt_t", gen.AnyOptionalSize())
	named("_size_any_opt_t_not_none", gen.AnySize())
	return m
}()

// plainOf returns the plain value that a conversion works on, observing tensors.
func plainOf(fn string, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("%s takes one argument, not %d", fn, len(args))
	}
	switch v := memberValue(args[0]).(type) {
	case *symbol:
		x, err := v.item()
		if err != nil {
			return nil, err
		}
		return v.d.fromProgram(x)
	case *attr:
		s, err := v.resolve()
		if err != nil {
			return nil, err
		}
		return plainOf(fn, starlark.Tuple{s})
	case *array:
		return v.item(nil)
	case *generator:
		return nil, fmt.Errorf("%s of a generator; use .to(%s), or .value() first", fn, fn)
	case foreign:
		return nil, v.unavailable()
	}
	return memberValue(args[0]), nil
}

func tupleType(ts []gen.Type) (gen.Type, error) { return gen.Tuple(ts...), nil }

func listType(ts []gen.Type) (gen.Type, error) {
	if len(ts) != 1 {
		return gen.Type{}, fmt.Errorf("typing.List takes one type")
	}
	return gen.List(ts[0]), nil
}

func anyType([]gen.Type) (gen.Type, error) { return gen.Type{}, nil }

func toStr(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.String(""), nil
	}
	if s, err := symbolOf(args, 1); err != nil {
		return nil, err
	} else if s != nil && s.kind == kindTensor {
		return s.printed()
	}
	return one("str", args, str)
}

func toRepr(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if s, _ := symbolOf(args, 1); s != nil && s.kind == kindTensor {
		return toStr(t, args)
	}
	return one("repr", args, func(v starlark.Value) string { return repr(v, 0) })
}

func toList(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.NewList(nil), nil
	}
	return concat(t, args[:1])
}

func toTuple(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return starlark.Tuple{}, nil
	}
	vs, err := iterate(t, args[0])
	return starlark.Tuple(vs), err
}

func toSet(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	out := starlark.NewSet(4)
	if len(args) == 0 {
		return out, nil
	}
	vs, err := iterate(t, args[0])
	if err != nil {
		return nil, err
	}
	for _, v := range vs {
		if err := out.Insert(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pairsOf returns the items of an object that has keys, the elements of another value.
func pairsOf(t *starlark.Thread, v starlark.Value) ([]starlark.Value, error) {
	keys, isMapping, err := special(t, v, "keys")
	if err != nil {
		return nil, err
	}
	if !isMapping {
		return iterate(t, v)
	}
	pairs, err := iterate(t, keys)
	for i, k := range pairs {
		held, _, err := v.(*object).Get(k)
		if err != nil {
			return nil, err
		}
		pairs[i] = starlark.Tuple{k, held}
	}
	return pairs, err
}

func toDict(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	for i, v := range args {
		if _, ok := v.(*starlark.Dict); !ok {
			vs, err := pairsOf(t, v)
			if err != nil {
				return nil, err
			}
			args = slices.Clone(args)
			args[i] = starlark.NewList(vs)
		}
	}
	return starlark.Call(t, starlark.Universe["dict"], args, kwargs)
}

func toInt(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 2 {
		return starlark.Call(t, starlark.Universe["int"], args, nil)
	}
	if len(args) == 0 {
		return starlark.MakeInt(0), nil
	}
	v, err := plainOf("int", args)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(starlark.String); ok {
		v = starlark.String(strings.ReplaceAll(strings.TrimSpace(string(s)), "_", ""))
	}
	return starlark.Call(t, starlark.Universe["int"], starlark.Tuple{number(v)}, nil)
}

func toFloat(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	v, err := plainOf("float", args)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(starlark.String); ok {
		v = starlark.String(strings.ReplaceAll(strings.TrimSpace(string(s)), "_", ""))
	}
	return starlark.Call(t, starlark.Universe["float"], starlark.Tuple{number(v)}, nil)
}

func toBool(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("bool takes one argument, not %d", len(args))
	}
	v, err := truth(t, args[0])
	if err != nil {
		return nil, err
	}
	return v.Truth(), nil
}

func toComplex(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	parts := []complex128{0, 0}
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("complex takes one or two arguments, not %d", len(args))
	}
	for i := range args {
		v, err := plainOf("complex", args[i:i+1])
		if err != nil {
			return nil, err
		}
		c, ok := asComplex(v)
		if !ok {
			return nil, fmt.Errorf("complex takes numbers, not %s", v.Type())
		}
		parts[i] = c
	}
	return complexNumber(parts[0] + complex(-imag(parts[1]), real(parts[1]))), nil
}
