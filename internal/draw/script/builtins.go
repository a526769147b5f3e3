package script

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/tensor"
)

// hostFunctions are Python's built-in functions that Starlark lacks or has in
// another way, and those that the source pass calls.
var hostFunctions starlark.StringDict

func init() {
	hostFunctions = starlark.StringDict{
		fnUnsupported: builtin(fnUnsupported, unsupportedHere), fnDropped: loading(fnDropped, dropped), fnUndefined: builtin(fnUndefined, undefinedHere), fnMember: builtin(fnMember, member), fnAnnotated: builtin(fnAnnotated, annotated),
		fnChain: builtin(fnChain, chain), fnConcat: builtin(fnConcat, concat), fnMany: builtin(fnMany, many), fnMerge: builtin(fnMerge, merge),
		fnUnpack: builtin(fnUnpack, unpack), fnUnpackEach: builtin(fnUnpackEach, unpackEach), fnFormat: builtin(fnFormat, formatCall), fnDelete: builtin(fnDelete, deleteItem),
		fnDepth: starlark.NewBuiltin(fnDepth, checkDepth),
		fnAttr:  builtin(fnAttr, attrCall), fnLook: builtin(fnLook, look), fnIn: builtin(fnIn, contains), fnNotIn: builtin(fnNotIn, notContains),
		"any": builtin("any", anyTrue), "all": builtin("all", allTrue), "map": builtin("map", mapCall), "filter": builtin("filter", filterCall),
		"min": starlark.NewBuiltin("min", extreme("lt")), "max": starlark.NewBuiltin("max", extreme("gt")),
		"sorted": starlark.NewBuiltin("sorted", sorted), "reversed": builtin("reversed", reversed), "enumerate": starlark.NewBuiltin("enumerate", enumerate),
		"zip": starlark.NewBuiltin("zip", zip), "round": builtin("round", roundTo), "divmod": builtin("divmod", divmod),
		"isinstance": builtin("isinstance", isInstance), "type": builtin("type", typeCall), "id": builtin("id", identityOf), "hash": builtin("hash", hashOf),
		"callable": builtin("callable", isCallable), "getattr": builtin("getattr", getAttr), "hasattr": builtin("hasattr", hasAttr), "setattr": builtin("setattr", setAttr), "delattr": builtin("delattr", deleteAttr),
		"repr":   builtin("repr", toRepr),
		"format": builtin("format", formatCall), "print": starlark.NewBuiltin("print", printCall), "super": builtin("super", superCall), "iter": builtin("iter", iterCall), "next": builtin("next", nextCall),
		"bin": builtin("bin", inBase("#b")), "hex": builtin("hex", inBase("#x")), "oct": builtin("oct", inBase("#o")),
		"open": notHere("open", "files are not open to test files"), "eval": notHere("eval", "eval is only supported where it is called by its name"), "exec": notHere("exec", "exec is not supported in test files"),
		"input": notHere("input", "input is not supported in test files"), "globals": builtin("globals", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return foreign("globals()"), nil }), "locals": notHere("locals", "locals is not supported in test files"), "vars": builtin("vars", varsOf),
		"staticmethod": wrapMethod("staticmethod", bindsNothing), "classmethod": wrapMethod("classmethod", bindsClass), "property": builtin("property", makeProperty),
		"issubclass": builtin("issubclass", isSubclass), "exit": notHere("exit", "exit is not supported in test files"),
	}
	for name, v := range hostFunctions {
		predeclared[name] = v
	}
	predeclared["NotImplemented"] = notImplemented
}

// pythonAttrs are attributes of plain values that Starlark lacks.
var pythonAttrs = map[string]bool{
	"format": true, "zfill": true, "ljust": true, "rjust": true, "center": true, "sort": true, "reverse": true, "copy": true, "swapcase": true,
	"real": true, "imag": true, "conjugate": true, "is_integer": true, "bit_length": true, "count": true, "index": true, "encode": true, "decode": true,
	"accumulate": true, "reduce": true, "outer": true, "join": true, "replace": true, "extend": true, "item": true, "tolist": true, "all": true, "any": true, "astype": true, "dtype": true,
	"__name__": true, "__init__": true, "__version__": true, "__class__": true, "__len__": true, "__getitem__": true, "__setitem__": true, "__delitem__": true, "keys": true, "isnumeric": true, "isdecimal": true, "isidentifier": true, "casefold": true, "numerator": true, "union": true,
	"pytorch": true, "oneflow": true, "type": true, "name": true, "environ": true,
	"flatten": true, "max": true, "mean": true, "min": true, "ndim": true, "numel": true, "ravel": true, "reshape": true, "shape": true, "size": true, "squeeze": true, "sum": true,
}

// ignoredCall is a function without effect.
func ignoredCall(name string) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return starlark.None, nil
	})
}

// notHere is a function that test files lack.
func notHere(name, why string) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return nil, lack("%s", why)
	})
}

func unsupportedHere(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	line, _ := starlark.AsInt32(a[1])
	col, _ := starlark.AsInt32(a[2])
	if d, ok := t.Local(drawKey).(*draw); ok {
		if file := t.CallFrame(1).Pos.Filename(); file != d.test.file.Name {
			return nil, lack("%s", string(a[0].(starlark.String))) // its line is told with its file
		}
	}
	return nil, &unsupportedInFiles{string(a[0].(starlark.String)), point{int32(line), int32(col)}}
}

// undefinedHere reports a name that nothing defines.
func undefinedHere(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return nil, errors.New(string(a[0].(starlark.String)))
}

// dropped notes what was left out of a file.
func dropped(_ *starlark.Thread, l *loader, a starlark.Tuple) (starlark.Value, error) {
	line, _ := starlark.AsInt32(a[1])
	l.file.Notes = append(l.file.Notes, Note{line, string(a[0].(starlark.String)) + "; it is left out"})
	return starlark.None, nil
}

// maxRecursion is Python's own limit.
const maxRecursion = 1000

// checkDepth begins every function.
func checkDepth(t *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if t.CallStackDepth() > maxRecursion {
		return nil, fmt.Errorf("maximum recursion depth exceeded")
	}
	return starlark.True, nil
}

// comparisons are the engine's names of the operators of a chain.
var comparisons = map[string]string{"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}

// chain is a < b < c: its operands are functions, called once each as far as
// the comparisons hold.
func chain(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	left, err := starlark.Call(t, a[0], nil, nil)
	if err != nil {
		return nil, err
	}
	for i := 1; i+1 < len(a); i += 2 {
		right, err := starlark.Call(t, a[i+1], nil, nil)
		if err != nil {
			return nil, err
		}
		v, err := compare(t, string(a[i].(starlark.String)), left, right)
		if err != nil || i+2 >= len(a) {
			return v, err
		}
		ok, err := truth(t, v)
		if err != nil {
			return nil, err
		}
		if !ok.Truth() {
			return v, nil
		}
		left = right
	}
	return starlark.True, nil
}

func compare(t *starlark.Thread, op string, x, y starlark.Value) (starlark.Value, error) {
	switch op {
	case "in":
		return contains(t, starlark.Tuple{x, y})
	case "not in":
		return notContains(t, starlark.Tuple{x, y})
	case "is":
		return starlark.Bool(same(x, y)), nil
	case "is not":
		return starlark.Bool(!same(x, y)), nil
	}
	return operators[comparisons[op]].call(t, x, y)
}

// unpack is what stands on the right of "a, *b, c =": before and after are the
// numbers of targets around the starred one.
func unpack(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	before, _ := starlark.AsInt32(a[1])
	after, _ := starlark.AsInt32(a[2])
	if len(vs) < before+after {
		return nil, fmt.Errorf("not enough values to unpack (expected at least %d, got %d)", before+after, len(vs))
	}
	out := slices.Clone(vs[:before])
	out = append(out, starlark.NewList(slices.Clone(vs[before:len(vs)-after])))
	return starlark.Tuple(append(out, vs[len(vs)-after:]...)), nil
}

// unpackEach is what stands behind "in" of "for a, *b, c in".
func unpackEach(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(vs))
	for i, v := range vs {
		if out[i], err = unpack(t, starlark.Tuple{v, a[1], a[2]}); err != nil {
			return nil, err
		}
	}
	return starlark.NewList(out), nil
}

// hashOf is hash(v): of an integer itself.
func hashOf(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("hash takes one argument, not %d", len(a))
	}
	if n, ok := number(memberValue(a[0])).(starlark.Int); ok {
		return n, nil
	}
	h, err := a[0].Hash()
	return starlark.MakeUint64(uint64(h)), err
}

func formatCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("format takes a value and a specification")
	}
	spec := ""
	if len(a) == 2 {
		spec, _ = starlark.AsString(a[1])
	}
	s, err := formatValue(a[0], spec)
	if err != nil {
		return nil, err
	}
	return starlark.String(s), spend(t, starlark.String(s))
}

// settled returns the plain value of what a test looks at.
func settled(v starlark.Value) (starlark.Value, error) {
	switch x := v.(type) {
	case *symbol:
		if x.kind == kindModule {
			return v, nil
		}
		return plainOf("format", starlark.Tuple{v})
	case *attr, foreign:
		return plainOf("format", starlark.Tuple{v})
	}
	return v, nil
}

// deleteItem is "del x[k]".
func deleteItem(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, lack("del of an expression is not supported in test files")
	}
	switch x := a[0].(type) {
	case environment:
		return starlark.None, x.SetKey(a[1], starlark.None)
	case *starlark.Dict:
		_, found, err := x.Delete(a[1])
		if err == nil && !found {
			err = fmt.Errorf("key %s is not in the dict", repr(a[1], 0))
		}
		return starlark.None, err
	case *starlark.List:
		vs, _ := sequence(x)
		if s, ok := a[1].(*slice); ok {
			start, stop, step, err := sliceBounds(s.start, s.stop, s.step, len(vs))
			if err != nil {
				return nil, err
			}
			if step != 1 {
				return nil, lack("del of a slice with a step is not supported in test files")
			}
			return starlark.None, replaceAll(x, slices.Delete(vs, start, max(start, stop)))
		}
		i, err := starlark.AsInt32(a[1])
		if err != nil {
			return nil, err
		}
		if i < 0 {
			i += len(vs)
		}
		if i < 0 || i >= len(vs) {
			return nil, fmt.Errorf("list assignment index out of range")
		}
		return starlark.None, replaceAll(x, slices.Delete(vs, i, i+1))
	}
	if _, ok, err := special(t, a[0], "__delitem__", a[1]); ok || err != nil {
		return starlark.None, err
	}
	if o, err := containerOf(a[0]); o != nil || err != nil {
		if err != nil {
			return nil, err
		}
		i, err := o.place(a[1])
		if err != nil {
			return nil, err
		}
		return starlark.None, o.removePart(i)
	}
	return nil, fmt.Errorf("%s has no items to delete", article(a[0].Type()))
}

// deleteAttr is "del x.name": of an object of a class of the file, and of a
// tensor's gradient.
func deleteAttr(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("delattr takes two arguments, not %d", len(a))
	}
	name, _ := starlark.AsString(a[1])
	switch x := a[0].(type) {
	case *object:
		return starlark.None, x.drop(name)
	case *symbol:
		if name == "grad" {
			return starlark.None, x.SetField(name, starlark.None)
		}
	}
	return nil, lack("del of the attribute %s of %s is not supported in test files", name, article(a[0].Type()))
}

// replaceAll gives a list other elements.
func replaceAll(l *starlark.List, vs []starlark.Value) error {
	if err := l.Clear(); err != nil {
		return err
	}
	for _, v := range vs {
		if err := l.Append(v); err != nil {
			return err
		}
	}
	return nil
}

// roundTo rounds half to even, as Python does.
func roundTo(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("round takes a number and a number of digits, not %d arguments", len(a))
	}
	v, err := settled(a[0])
	if err != nil {
		return nil, err
	}
	v = number(v)
	digits := 0
	if len(a) == 2 && a[1] != starlark.None {
		if digits, err = starlark.AsInt32(number(a[1])); err != nil {
			return nil, err
		}
	}
	switch v := v.(type) {
	case starlark.Float:
		f := float64(v)
		if len(a) == 1 || a[1] == starlark.None {
			return starlark.NumberToInt(starlark.Float(math.RoundToEven(f)))
		}
		return starlark.Float(roundDigits(f, digits)), nil
	case starlark.Int:
		return roundInt(v, digits), nil
	}
	return nil, fmt.Errorf("round of %s", v.Type())
}

func roundDigits(f float64, digits int) float64 {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0) || digits > 320:
		return f
	case digits < -310:
		return math.Copysign(0, f)
	case digits >= 0:
		out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
		return out
	}
	p := math.Pow(10, float64(-digits))
	return float64(math.RoundToEven(f/p) * p)
}

func roundInt(v starlark.Int, digits int) starlark.Value {
	if digits >= 0 {
		return v
	}
	if digits < -maxIntBits {
		return starlark.MakeInt(0)
	}
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	q, m := new(big.Int).DivMod(v.BigInt(), p, new(big.Int))
	switch c := m.Lsh(m, 1).Cmp(p); {
	case c > 0 || c == 0 && q.Bit(0) == 1:
		q.Add(q, big.NewInt(1))
	}
	return starlark.MakeBigInt(q.Mul(q, p))
}

func divmod(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("divmod takes two numbers, not %d", len(a))
	}
	q, err := operators["floordiv"].call(t, a[0], a[1])
	if err != nil {
		return nil, err
	}
	m, err := operators["mod"].call(t, a[0], a[1])
	return starlark.Tuple{q, m}, err
}

func one(name string, a starlark.Tuple, f func(starlark.Value) string) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("%s takes one argument, not %d", name, len(a))
	}
	v, err := settled(a[0])
	if err != nil {
		return nil, err
	}
	return starlark.String(f(v)), nil
}

func inBase(spec string) func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
	return func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) == 1 {
			if n, ok := number(a[0]).(starlark.Int); ok {
				s, err := formatValue(n, spec)
				return starlark.String(s), err
			}
		}
		return nil, fmt.Errorf("this takes an int")
	}
}

// contains is "x in y".
func contains(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	x, y := memberValue(a[0]), memberValue(a[1])
	if v, ok, err := special(t, y, "__contains__", x); ok {
		return v, err
	}
	switch y := y.(type) {
	case starlark.String:
		s, ok := x.(starlark.String)
		if !ok {
			return nil, fmt.Errorf("'in <str>' requires a str as left operand, not %s", x.Type())
		}
		return starlark.Bool(strings.Contains(string(y), string(s))), nil
	case *starlark.Dict:
		_, found, err := y.Get(x)
		return starlark.Bool(found), err
	case environment:
		_, found, err := environmentOf(t).Get(x)
		return starlark.Bool(found), err
	case *symbol, *attr:
		return nil, lack("in with a tensor on its right is not supported in test files")
	}
	vs, err := iterate(t, y)
	if err != nil {
		return nil, err
	}
	for _, v := range vs {
		if same(v, x) {
			return starlark.True, nil
		}
		eq, err := precedes(t, "eq", v, x)
		if err != nil {
			return nil, err
		}
		if eq {
			return starlark.True, nil
		}
	}
	return starlark.False, nil
}

func notContains(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	v, err := contains(t, a)
	if err != nil {
		return nil, err
	}
	return !v.(starlark.Bool), nil
}

// calculate computes on plain values what Starlark computes in another way;
// nil for the rest.
func (o operator) calculate(x, y starlark.Value) (starlark.Value, error) {
	switch o.token {
	case syntax.EQL, syntax.NEQ:
		eq, err := equal(x, y, 0)
		return starlark.Bool(eq == (o.token == syntax.EQL)), err
	case syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		ok, err := order(o.token, x, y, 0)
		return starlark.Bool(ok), err
	case syntax.AMP, syntax.PIPE, syntax.CIRCUMFLEX:
		a, xb := x.(starlark.Bool)
		b, yb := y.(starlark.Bool)
		if xb && yb {
			switch o.token {
			case syntax.AMP:
				return a && b, nil
			case syntax.PIPE:
				return a || b, nil
			}
			return starlark.Bool(a != b), nil
		}
	case syntax.SLASH:
		return divide(number(x), number(y))
	case syntax.SLASHSLASH:
		return floorDivide(number(x), number(y))
	case syntax.PERCENT:
		if s, ok := x.(starlark.String); ok {
			out, err := percent(string(s), y)
			return starlark.String(out), err
		}
		return modulo(number(x), number(y))
	case syntax.LTLT:
		if n, err := starlark.AsInt32(number(y)); err != nil || n > maxIntBits {
			return nil, fmt.Errorf("the result of << is too large")
		}
	}
	return nil, nil
}

// elementTypes maps the names of dtypes that Python's types stand for.
var elementTypes = map[string]tensor.DType{"int": tensor.I64, "float": tensor.F64, "bool": tensor.Bool, "complex": tensor.C128}
