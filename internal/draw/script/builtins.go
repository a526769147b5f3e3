package script

import (
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
		fnUnsupported: builtin(fnUnsupported, unsupportedHere), fnDropped: loading(fnDropped, dropped), fnMember: loading(fnMember, member),
		fnChain: builtin(fnChain, chain), fnConcat: builtin(fnConcat, concat), fnMany: builtin(fnMany, many), fnMerge: builtin(fnMerge, merge),
		fnUnpack: builtin(fnUnpack, unpack), fnFormat: builtin(fnFormat, formatCall), fnDelete: builtin(fnDelete, deleteItem),
		fnDepth: starlark.NewBuiltin(fnDepth, checkDepth),
		fnAttr:  builtin(fnAttr, attrCall), fnIn: builtin(fnIn, contains), fnNotIn: builtin(fnNotIn, notContains),
		"any": builtin("any", anyTrue), "all": builtin("all", allTrue), "map": builtin("map", mapCall), "filter": builtin("filter", filterCall),
		"min": starlark.NewBuiltin("min", extreme("lt")), "max": starlark.NewBuiltin("max", extreme("gt")),
		"sorted": starlark.NewBuiltin("sorted", sorted), "reversed": builtin("reversed", reversed), "enumerate": starlark.NewBuiltin("enumerate", enumerate),
		"zip": starlark.NewBuiltin("zip", zip), "round": builtin("round", roundTo), "divmod": builtin("divmod", divmod),
		"isinstance": builtin("isinstance", isInstance), "type": builtin("type", typeCall), "id": builtin("id", identityOf),
		"callable": builtin("callable", isCallable), "getattr": builtin("getattr", getAttr), "hasattr": builtin("hasattr", hasAttr), "setattr": builtin("setattr", setAttr),
		"repr": builtin("repr", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return one("repr", a, func(v starlark.Value) string { return repr(v, 0) })
		}),
		"format": builtin("format", formatCall), "print": ignoredCall("print"), "super": builtin("super", superCall), "iter": builtin("iter", iterCall), "next": builtin("next", nextCall),
		"bin": builtin("bin", inBase("#b")), "hex": builtin("hex", inBase("#x")), "oct": builtin("oct", inBase("#o")),
		"open": notHere("open", "files are not open to test files"), "eval": notHere("eval", "eval is not supported in test files"), "exec": notHere("exec", "exec is not supported in test files"),
		"input": notHere("input", "input is not supported in test files"), "globals": notHere("globals", "globals is not supported in test files"), "locals": notHere("locals", "locals is not supported in test files"), "vars": notHere("vars", "vars is not supported in test files"),
		"staticmethod": notHere("staticmethod", "staticmethod is not supported as a function"), "classmethod": notHere("classmethod", "classmethod is not supported in test files"), "property": notHere("property", "property is not supported in test files"),
		"issubclass": notHere("issubclass", "issubclass is not supported in test files"), "exit": notHere("exit", "exit is not supported in test files"),
	}
	for _, e := range []string{"ZeroDivisionError", "AttributeError", "OverflowError", "ImportError", "StopIteration", "ModuleNotFoundError", "UserWarning", "DeprecationWarning"} {
		hostFunctions[e] = builtin(e, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return exception(e, a), nil })
	}
	for name, v := range hostFunctions {
		predeclared[name] = v
	}
}

// pythonAttrs are attributes of plain values that Starlark lacks.
var pythonAttrs = map[string]bool{
	"format": true, "zfill": true, "ljust": true, "rjust": true, "center": true, "sort": true, "reverse": true, "copy": true, "swapcase": true,
	"real": true, "imag": true, "conjugate": true, "is_integer": true, "bit_length": true, "count": true, "index": true, "encode": true, "decode": true,
	"join": true, "replace": true, "extend": true, "item": true, "tolist": true, "all": true, "any": true, "astype": true, "dtype": true,
	"__name__": true, "__version__": true, "__class__": true, "__len__": true, "keys": true, "isnumeric": true, "isdecimal": true, "isidentifier": true, "casefold": true, "numerator": true, "union": true,
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

func unsupportedHere(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	line, _ := starlark.AsInt32(a[1])
	col, _ := starlark.AsInt32(a[2])
	return nil, &lacking{string(a[0].(starlark.String)), point{int32(line), int32(col)}}
}

// dropped notes what was left out of a file.
func dropped(_ *starlark.Thread, l *loader, a starlark.Tuple) (starlark.Value, error) {
	line, _ := starlark.AsInt32(a[1])
	l.file.Notes = append(l.file.Notes, Note{line, string(a[0].(starlark.String)) + "; it is left out"})
	return starlark.None, nil
}

// member makes what a class's body assigns an attribute of the class.
func member(_ *starlark.Thread, l *loader, a starlark.Tuple) (starlark.Value, error) {
	if l.class != nil {
		l.class.values[string(a[0].(starlark.String))] = a[1]
	}
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

// iterate returns what a for loop sees.
func iterate(t *starlark.Thread, v starlark.Value) ([]starlark.Value, error) {
	switch v := v.(type) {
	case starlark.String:
		var out []starlark.Value
		for _, c := range string(v) {
			out = append(out, starlark.String(string(c)))
		}
		return out, nil
	case *symbol:
		return v.elements()
	case *attr:
		s, err := v.resolve()
		if err != nil {
			return nil, err
		}
		return s.elements()
	case *array:
		return v.rows()
	case *iterator:
		rest := v.rest
		v.rest = nil
		return rest, nil
	case foreign:
		if _, loads := t.Local(loadKey).(*loader); loads {
			return nil, nil
		}
		return nil, v.unavailable()
	case *generator:
		return nil, fmt.Errorf("a generator is not a sequence; use .value()")
	case starlark.Iterable:
		if n := starlark.Len(v); n > maxElements {
			return nil, fmt.Errorf("more than %d elements", maxElements)
		}
		return slices.Collect(starlark.Elements(v)), nil
	}
	return nil, fmt.Errorf("%s is not iterable", article(v.Type()))
}

// many is the list of what a value holds; a range stays one.
func many(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("a star needs one value")
	}
	if a[0].Type() == "range" {
		return a[0], nil
	}
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	list := starlark.NewList(vs)
	return list, spend(t, list)
}

func concat(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	var out []starlark.Value
	for _, v := range a {
		vs, err := iterate(t, v)
		if err != nil {
			return nil, err
		}
		if out = append(out, vs...); len(out) > maxElements {
			return nil, fmt.Errorf("a list of more than %d elements", maxElements)
		}
	}
	list := starlark.NewList(out)
	return list, spend(t, list)
}

func merge(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	out := starlark.NewDict(4)
	for _, v := range a {
		m, ok := v.(starlark.IterableMapping)
		if !ok {
			return nil, fmt.Errorf("%s is not a dict", article(v.Type()))
		}
		for _, item := range m.Items() {
			if err := out.SetKey(item[0], item[1]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
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

func formatCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("format takes a value and a specification")
	}
	spec := ""
	if len(a) == 2 {
		spec, _ = starlark.AsString(a[1])
	}
	v, err := settled(a[0])
	if err != nil {
		return nil, err
	}
	s, err := formatValue(v, spec)
	if err != nil {
		return nil, err
	}
	return starlark.String(s), spend(t, starlark.String(s))
}

// settled returns the plain value of what a test looks at.
func settled(v starlark.Value) (starlark.Value, error) {
	switch v.(type) {
	case *symbol, *attr, foreign:
		return plainOf("format", starlark.Tuple{v})
	}
	return v, nil
}

// deleteItem is "del x[k]"; of an attribute it is what test files lack.
func deleteItem(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, lack("del of an attribute is not supported in test files")
	}
	switch x := a[0].(type) {
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
	return nil, fmt.Errorf("%s has no items to delete", article(a[0].Type()))
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

func anyTrue(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return truths(t, a, true) }
func allTrue(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return truths(t, a, false)
}

// truths is any and all: the first element with the truth decides.
func truths(t *starlark.Thread, a starlark.Tuple, decides bool) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("any and all take one argument, not %d", len(a))
	}
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	for _, v := range vs {
		b, err := truth(t, v)
		if err != nil {
			return nil, err
		}
		if bool(b.Truth()) == decides {
			return starlark.Bool(decides), nil
		}
	}
	return starlark.Bool(!decides), nil
}

func mapCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 2 {
		return nil, fmt.Errorf("map takes a function and sequences")
	}
	rows, err := transpose(t, a[1:], false)
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(rows))
	for i, row := range rows {
		if out[i], err = starlark.Call(t, a[0], row, nil); err != nil {
			return nil, err
		}
	}
	return &iterator{rest: out}, nil
}

// transpose is zip; strict asks for equal lengths.
func transpose(t *starlark.Thread, seqs []starlark.Value, strict bool) ([]starlark.Tuple, error) {
	n := -1
	columns := make([][]starlark.Value, len(seqs))
	for i, s := range seqs {
		vs, err := iterate(t, s)
		if err != nil {
			return nil, err
		}
		if strict && n >= 0 && len(vs) != n {
			return nil, fmt.Errorf("zip: the sequences have different lengths")
		}
		columns[i] = vs
		if n < 0 || len(vs) < n {
			n = len(vs)
		}
	}
	rows := make([]starlark.Tuple, max(n, 0))
	for i := range rows {
		for _, c := range columns {
			rows[i] = append(rows[i], c[i])
		}
	}
	return rows, nil
}

func zip(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"zip", []string{"strict"}, make([]starlark.Value, 1)}
	if err := a.bind(nil, kwargs); err != nil {
		return nil, err
	}
	rows, err := transpose(t, args, a.values[0] != nil && bool(a.values[0].Truth()))
	out := make([]starlark.Value, len(rows))
	for i, r := range rows {
		out[i] = r
	}
	return &iterator{rest: out}, err
}

func filterCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("filter takes a function and a sequence")
	}
	vs, err := iterate(t, a[1])
	if err != nil {
		return nil, err
	}
	var out []starlark.Value
	for _, v := range vs {
		keep := v
		if a[0] != starlark.None {
			if keep, err = starlark.Call(t, a[0], starlark.Tuple{v}, nil); err != nil {
				return nil, err
			}
		}
		b, err := truth(t, keep)
		if err != nil {
			return nil, err
		}
		if b.Truth() {
			out = append(out, v)
		}
	}
	return &iterator{rest: out}, nil
}

// keyed returns what elements are compared by.
func keyed(t *starlark.Thread, vs []starlark.Value, key starlark.Value) ([]starlark.Value, error) {
	if key == nil || key == starlark.None {
		return vs, nil
	}
	out := make([]starlark.Value, len(vs))
	for i, v := range vs {
		k, err := starlark.Call(t, key, starlark.Tuple{v}, nil)
		if err != nil {
			return nil, err
		}
		out[i] = k
	}
	return out, nil
}

// precedes reports whether the operator holds, observing tensors.
func precedes(t *starlark.Thread, op string, x, y starlark.Value) (bool, error) {
	v, err := operators[op].call(t, x, y)
	if err != nil {
		return false, err
	}
	b, err := truth(t, v)
	return err == nil && bool(b.Truth()), err
}

// extreme makes min and max.
func extreme(op string) func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		a := arguments{b.Name(), []string{"key", "default"}, make([]starlark.Value, 2)}
		if err := a.bind(nil, kwargs); err != nil {
			return nil, err
		}
		vs := []starlark.Value(args)
		if len(args) == 1 {
			var err error
			if vs, err = iterate(t, args[0]); err != nil {
				return nil, err
			}
		}
		if len(vs) == 0 {
			if a.values[1] != nil {
				return a.values[1], nil
			}
			return nil, fmt.Errorf("%s() of an empty sequence", b.Name())
		}
		keys, err := keyed(t, vs, a.values[0])
		if err != nil {
			return nil, err
		}
		best := 0
		for i := 1; i < len(vs); i++ {
			better, err := precedes(t, op, keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if better {
				best = i
			}
		}
		return vs[best], nil
	}
}

func sorted(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"sorted", []string{"key", "reverse"}, make([]starlark.Value, 2)}
	if err := a.bind(nil, kwargs); err != nil {
		return nil, err
	}
	if len(args) != 1 {
		return nil, fmt.Errorf("sorted takes one sequence, not %d", len(args))
	}
	vs, err := iterate(t, args[0])
	if err != nil {
		return nil, err
	}
	vs, err = sortValues(t, vs, a.values[0], a.values[1])
	return starlark.NewList(vs), err
}

func sortValues(t *starlark.Thread, vs []starlark.Value, key, reverse starlark.Value) ([]starlark.Value, error) {
	keys, err := keyed(t, vs, key)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(vs))
	for i := range at {
		at[i] = i
	}
	descending := reverse != nil && bool(reverse.Truth())
	slices.SortStableFunc(at, func(i, j int) int {
		if err != nil {
			return 0
		}
		var before, after bool
		if before, err = precedes(t, "lt", keys[i], keys[j]); err == nil && !before {
			after, err = precedes(t, "lt", keys[j], keys[i])
		}
		switch {
		case before == after:
			return 0
		case before != descending:
			return -1
		}
		return 1
	})
	out := make([]starlark.Value, len(vs))
	for i, j := range at {
		out[i] = vs[j]
	}
	return out, err
}

func reversed(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("reversed takes one sequence, not %d", len(a))
	}
	vs, err := iterate(t, a[0])
	vs = slices.Clone(vs)
	slices.Reverse(vs)
	return &iterator{rest: vs}, err
}

func enumerate(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"enumerate", []string{"iterable", "start"}, make([]starlark.Value, 2)}
	if err := a.bind(args, kwargs); err != nil {
		return nil, err
	}
	if a.values[0] == nil {
		return nil, fmt.Errorf("enumerate takes a sequence")
	}
	vs, err := iterate(t, a.values[0])
	if err != nil {
		return nil, err
	}
	start := 0
	if a.values[1] != nil {
		if start, err = starlark.AsInt32(a.values[1]); err != nil {
			return nil, err
		}
	}
	out := make([]starlark.Value, len(vs))
	for i, v := range vs {
		out[i] = starlark.Tuple{starlark.MakeInt(start + i), v}
	}
	return &iterator{rest: out}, nil
}

// iterator is what zip, map, reversed and the like give: it is used up once.
type iterator struct{ rest []starlark.Value }

func (*iterator) String() string        { return "<iterator>" }
func (*iterator) Type() string          { return "iterator" }
func (*iterator) Freeze()               {}
func (*iterator) Truth() starlark.Bool  { return true }
func (*iterator) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: iterator") }

// Iterate uses up what is left.
func (i *iterator) Iterate() starlark.Iterator {
	rest := i.rest
	i.rest = nil
	return &elements{rest}
}

func iterCall(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("iter takes one sequence, not %d", len(a))
	}
	if i, ok := a[0].(*iterator); ok {
		return i, nil
	}
	vs, err := iterate(t, a[0])
	return &iterator{rest: vs}, err
}

func nextCall(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("next takes an iterator and a default")
	}
	i, ok := a[0].(*iterator)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is not an iterator", article(a[0].Type()))
	case len(i.rest) > 0:
		v := i.rest[0]
		i.rest = i.rest[1:]
		return v, nil
	case len(a) == 2:
		return a[1], nil
	}
	return nil, fmt.Errorf("next() of an iterator that is used up")
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
	return math.RoundToEven(f/p) * p
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

// classNames are the classes that a value is an instance of.
func classNames(v starlark.Value) ([]string, error) {
	switch v := v.(type) {
	case starlark.Bool:
		return []string{"bool", "int"}, nil
	case starlark.Int, starlark.Float, starlark.Tuple, *starlark.List, *starlark.Dict, *starlark.Set, complexNumber, *slice:
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
	if ts, ok := a[1].(starlark.Tuple); ok {
		types = ts
	}
	for _, t := range types {
		if slices.Contains(names, className(t)) {
			return starlark.True, nil
		}
	}
	return starlark.False, nil
}

// className is the name of a class as a value.
func className(v starlark.Value) string {
	switch v := v.(type) {
	case *pyType:
		return v.name
	case path:
		return string(v)
	case *starlark.Builtin:
		return v.Name()
	}
	return ""
}

func typeCall(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("type takes one argument, not %d", len(a))
	}
	names, err := classNames(a[0])
	if err != nil {
		return nil, err
	}
	name := names[len(names)-1]
	if names[0] == "bool" {
		name = "bool"
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
		h, err := s.Hash()
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
	switch x := a[0].(type) {
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

// superCall gives a parent whose methods do nothing: unittest's setUp.
func superCall(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return parent{}, nil }

type parent struct{}

func (parent) String() string        { return "super" }
func (parent) Type() string          { return "super" }
func (parent) Freeze()               {}
func (parent) Truth() starlark.Bool  { return true }
func (parent) Hash() (uint32, error) { return 0, nil }
func (parent) AttrNames() []string   { return nil }

// Attr returns a method without effect.
func (parent) Attr(name string) (starlark.Value, error) { return ignoredCall(name), nil }

// contains is "x in y".
func contains(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	x, y := a[0], a[1]
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
			v, err := settledAll(y)
			if err != nil {
				return nil, err
			}
			out, err := percent(string(s), v)
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

// settledAll settles the elements of a tuple.
func settledAll(v starlark.Value) (starlark.Value, error) {
	t, ok := v.(starlark.Tuple)
	if !ok {
		return settled(v)
	}
	out := make(starlark.Tuple, len(t))
	for i, e := range t {
		s, err := settled(e)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// elementTypes maps the names of dtypes that Python's types stand for.
var elementTypes = map[string]tensor.DType{"int": tensor.I64, "float": tensor.F64, "bool": tensor.Bool, "complex": tensor.C128}
