package script

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

// method makes a method of positional arguments.
func method(name string, f func(starlark.Tuple) (starlark.Value, error)) starlark.Value {
	return builtin(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return f(a) })
}

// samples are values of the types whose methods have names of their own: str.lower.
var samples = map[string]starlark.Value{
	"str": starlark.String(""), "list": starlark.NewList(nil), "dict": starlark.NewDict(0), "tuple": starlark.Tuple{}, "int": starlark.MakeInt(0), "float": starlark.Float(0),
}

// method is one of a type, which takes the value first; nil where the type has none.
func (t *pyType) method(name string) (starlark.Value, error) {
	sample := samples[t.name]
	if sample == nil {
		return nil, nil
	}
	if v, err := attribute(nil, sample, name); v == nil || err != nil {
		return nil, err
	} else if _, ok := v.(starlark.Callable); !ok {
		return nil, nil
	}
	return starlark.NewBuiltin(t.name+"."+name, func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(args) == 0 {
			return nil, fmt.Errorf("%s takes the value first", b.Name())
		}
		fn, err := getAttr(thread, starlark.Tuple{args[0], starlark.String(name)})
		if err != nil {
			return nil, err
		}
		return starlark.Call(thread, fn, args[1:], kwargs)
	}), nil
}

// ufuncMethod is np.add.reduce and the like; nil for other attributes of functions.
func ufuncMethod(fn *starlark.Builtin, name string) starlark.Value {
	if !strings.HasPrefix(fn.Name(), "numpy.") || name != "accumulate" && name != "reduce" && name != "outer" {
		return nil
	}
	method := numpyPrelude()["ufunc_"+name]
	return starlark.NewBuiltin(fn.Name()+"."+name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return starlark.Call(t, method, append(starlark.Tuple{fn}, args...), kwargs)
	})
}

// plainAttr returns an attribute of a plain value that Starlark lacks.
func plainAttr(x starlark.Value, name string) (starlark.Value, error) {
	switch _, own := x.(*object); {
	case own:
		return nil, nil
	case name == "__class__":
		return typeCall(nil, starlark.Tuple{x})
	case name == "__name__":
		return nameOf(x), nil
	case name == "pytorch" || name == "oneflow":
		return bothSides(x), nil
	case name == "__str__" || name == "__repr__":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return toStr(nil, starlark.Tuple{x}) }), nil
	case name == "__len__":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return length(nil, starlark.Tuple{x}) }), nil
	case name == "__getitem__" || name == "__setitem__" || name == "__delitem__":
		return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return starlark.Call(t, stdlibPrelude()[strings.Trim(name, "_")], append(starlark.Tuple{x}, a...), nil)
		}), nil
	}
	if isNumber(x) {
		if v, err := scalarAttr(x, name); v != nil || err != nil {
			return v, err
		}
	}
	switch x := x.(type) {
	case *pyType:
		return x.method(name)
	case *starlark.Builtin:
		return ufuncMethod(x, name), nil
	case numpyType:
		if name == "name" {
			return starlark.String(x.Name()), nil
		}
	case starlark.String:
		if name == "type" { // of a device
			kind, _, _ := strings.Cut(string(x), ":")
			return starlark.String(kind), nil
		}
		return stringAttr(string(x), name), nil
	case *starlark.List:
		return listAttr(x, name), nil
	case starlark.Tuple:
		return sequenceAttr(x, name), nil
	case *starlark.Dict:
		if name == "copy" {
			return method(name, func(starlark.Tuple) (starlark.Value, error) { return merge(nil, starlark.Tuple{x}) }), nil
		}
	case starlark.Int, starlark.Bool:
		return intAttr(number(x).(starlark.Int), name), nil
	case starlark.Float:
		return floatAttr(float64(x), name), nil
	case complexNumber:
		return complexAttr(complex128(x), name), nil
	}
	return nil, nil
}

// scalarAttr are the attributes of numpy's scalars.
func scalarAttr(x starlark.Value, name string) (starlark.Value, error) {
	switch name {
	case "item", "tolist":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return x, nil }), nil
	case "all", "any", "astype", "dtype", "flatten", "max", "mean", "min", "ndim", "ravel", "reshape", "shape", "size", "squeeze", "sum":
		a, err := toArray(nil, x, tensor.Invalid)
		if err != nil {
			return nil, err
		}
		return a.Attr(name)
	}
	return nil, nil
}

// bothSides returns a plain value, which is the same on both sides; nil for others.
func bothSides(x starlark.Value) starlark.Value {
	switch x.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float, complexNumber, starlark.String, starlark.Tuple, *starlark.List, *starlark.Dict:
		return x
	}
	return nil
}

func nameOf(x starlark.Value) starlark.Value {
	name := className(x)
	if f, ok := x.(*starlark.Function); ok {
		name = f.Name()
	}
	if name == "" {
		return nil
	}
	return starlark.String(name[strings.LastIndexByte(name, '.')+1:])
}

func stringAttr(s, name string) starlark.Value {
	switch name {
	case "format":
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			out, err := formatted(s, args, kwargs)
			return starlark.String(out), err
		})
	case "join":
		return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return join(t, s, a) })
	case "replace":
		return method(name, func(a starlark.Tuple) (starlark.Value, error) { return replace(s, a) })
	case "zfill":
		return padding(name, s, func(_ rune) formatSpec { return formatSpec{fill: '0', align: '='} })
	case "ljust":
		return padding(name, s, func(c rune) formatSpec { return formatSpec{fill: c, align: '<'} })
	case "rjust":
		return padding(name, s, func(c rune) formatSpec { return formatSpec{fill: c, align: '>'} })
	case "center":
		return padding(name, s, func(c rune) formatSpec { return formatSpec{fill: c, align: '^'} })
	case "casefold", "swapcase":
		return method(name, func(starlark.Tuple) (starlark.Value, error) {
			if name == "casefold" {
				return starlark.String(strings.ToLower(s)), nil
			}
			return starlark.String(strings.Map(swapCase, s)), nil
		})
	case "isnumeric", "isdecimal":
		return method(name, func(starlark.Tuple) (starlark.Value, error) {
			return starlark.Bool(s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0), nil
		})
	case "isidentifier":
		return method(name, func(starlark.Tuple) (starlark.Value, error) {
			return starlark.Bool(s != "" && isNameStart(s[0]) && strings.IndexFunc(s, func(r rune) bool { return r < utf8.RuneSelf && !isNamePart(byte(r)) }) < 0), nil
		})
	}
	return nil
}

func join(t *starlark.Thread, sep string, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("join takes one sequence, not %d", len(a))
	}
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, v := range vs {
		s, ok := starlark.AsString(v)
		if !ok {
			return nil, fmt.Errorf("sequence item %d: expected str, %s found", i, v.Type())
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
		if b.Len() > maxString {
			return nil, errLong
		}
	}
	return starlark.String(b.String()), nil
}

var errLong = fmt.Errorf("a string of more than %d bytes", maxString)

func replace(s string, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 2 || len(a) > 3 {
		return nil, fmt.Errorf("replace takes an old and a new string and a count")
	}
	from, okFrom := starlark.AsString(a[0])
	to, okTo := starlark.AsString(a[1])
	n := -1
	if len(a) == 3 {
		var err error
		if n, err = starlark.AsInt32(a[2]); err != nil {
			return nil, err
		}
	}
	if !okFrom || !okTo {
		return nil, fmt.Errorf("replace takes strings")
	}
	if times := strings.Count(s, from); len(to) > 0 && times > maxString/len(to) {
		return nil, errLong
	}
	return starlark.String(strings.Replace(s, from, to, n)), nil
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

func padding(name, s string, spec func(fill rune) formatSpec) starlark.Value {
	return method(name, func(a starlark.Tuple) (starlark.Value, error) {
		if len(a) < 1 || len(a) > 2 {
			return nil, fmt.Errorf("%s takes a width and a fill character", name)
		}
		width, err := starlark.AsInt32(a[0])
		if err != nil || width > maxWidth {
			return nil, fmt.Errorf("%s: a width of at most %d", name, maxWidth)
		}
		fill := ' '
		if len(a) == 2 {
			c, _ := starlark.AsString(a[1])
			if utf8.RuneCountInString(c) != 1 {
				return nil, fmt.Errorf("%s: the fill character must be exactly one character long", name)
			}
			fill, _ = utf8.DecodeRuneInString(c)
		}
		f := spec(fill)
		f.width, f.precision = width, -1
		sign := ""
		body := s
		if name == "zfill" && s != "" && (s[0] == '+' || s[0] == '-') {
			sign, body = s[:1], s[1:]
		}
		if name == "center" && width > utf8.RuneCountInString(s) { // Python puts the odd one to the left when the width is odd
			n := width - utf8.RuneCountInString(s)
			left := n/2 + (n & width & 1)
			return starlark.String(strings.Repeat(string(fill), left) + s + strings.Repeat(string(fill), n-left)), nil
		}
		return starlark.String(f.pad(sign, body, '<')), nil
	})
}

func listAttr(l *starlark.List, name string) starlark.Value {
	switch name {
	case "sort":
		return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			a := arguments{"sort", []string{"key", "reverse"}, make([]starlark.Value, 2)}
			if err := a.bind(nil, kwargs); err != nil || len(args) > 0 {
				return nil, fmt.Errorf("sort takes key and reverse by keyword")
			}
			vs, _ := sequence(l)
			vs, err := sortValues(t, vs, a.values[0], a.values[1])
			if err != nil {
				return nil, err
			}
			return starlark.None, replaceAll(l, vs)
		})
	case "extend":
		return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 1 {
				return nil, fmt.Errorf("extend takes one sequence, not %d", len(a))
			}
			vs, err := iterate(t, a[0])
			if err != nil {
				return nil, err
			}
			if l.Len()+len(vs) > maxElements {
				return nil, fmt.Errorf("a list of more than %d elements", maxElements)
			}
			if err := spend(t, starlark.Tuple(vs)); err != nil {
				return nil, err
			}
			for _, v := range slices.Clone(vs) {
				if err := l.Append(v); err != nil {
					return nil, err
				}
			}
			return starlark.None, nil
		})
	case "reverse":
		return method(name, func(starlark.Tuple) (starlark.Value, error) {
			vs, _ := sequence(l)
			slices.Reverse(vs)
			return starlark.None, replaceAll(l, vs)
		})
	case "copy":
		return method(name, func(starlark.Tuple) (starlark.Value, error) {
			vs, _ := sequence(l)
			return starlark.NewList(vs), nil
		})
	case "count":
		return sequenceAttr(l, name)
	}
	return nil
}

// sequenceAttr are count and index, which Starlark's tuples lack, and the number of
// elements of a size, which is a tuple here.
func sequenceAttr(x starlark.Value, name string) starlark.Value {
	if size, ok := x.(starlark.Tuple); ok && name == "numel" {
		return method(name, func(starlark.Tuple) (starlark.Value, error) {
			n := starlark.MakeInt(1)
			for _, v := range size {
				dim, ok := v.(starlark.Int)
				if !ok {
					return nil, fmt.Errorf("numel is of a size, not of %s", repr(size, 0))
				}
				n = n.Mul(dim)
			}
			return n, nil
		})
	}
	if name != "count" && name != "index" {
		return nil
	}
	return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) != 1 {
			return nil, fmt.Errorf("%s takes one value, not %d", name, len(a))
		}
		vs, _ := sequence(x)
		n := 0
		for i, v := range vs {
			eq, err := precedes(t, "eq", v, a[0])
			if err != nil {
				return nil, err
			}
			if eq && name == "index" {
				return starlark.MakeInt(i), nil
			}
			if eq {
				n++
			}
		}
		if name == "index" {
			return nil, fmt.Errorf("%s is not in the %s", repr(a[0], 0), x.Type())
		}
		return starlark.MakeInt(n), nil
	})
}

func intAttr(x starlark.Int, name string) starlark.Value {
	switch name {
	case "real", "numerator":
		return x
	case "imag":
		return starlark.MakeInt(0)
	case "conjugate":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return x, nil })
	case "bit_length":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return starlark.MakeInt(x.BigInt().BitLen()), nil })
	}
	return nil
}

func floatAttr(x float64, name string) starlark.Value {
	switch name {
	case "real":
		return starlark.Float(x)
	case "imag":
		return starlark.Float(0)
	case "conjugate":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return starlark.Float(x), nil })
	case "is_integer":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return starlark.Bool(x == math.Trunc(x)), nil })
	}
	return nil
}

func complexAttr(x complex128, name string) starlark.Value {
	switch name {
	case "real":
		return starlark.Float(real(x))
	case "imag":
		return starlark.Float(imag(x))
	case "conjugate":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return complexNumber(complex(real(x), -imag(x))), nil })
	}
	return nil
}

// unbound is torch.Tensor.relu(x): a method of a tensor, by its class.
func (p path) unbound(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	name, ok := strings.CutPrefix(string(p), "torch.Tensor.")
	if !ok || len(args) == 0 || strings.HasPrefix(name, "__") {
		return nil, nil
	}
	s, ok := args[0].(*symbol)
	if !ok || s.kind != kindTensor {
		return nil, nil
	}
	fn, err := s.Attr(name)
	if err != nil || fn == nil {
		return nil, err
	}
	return starlark.Call(t, fn, args[1:], kwargs)
}
