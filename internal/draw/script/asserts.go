package script

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// asserted is a check of the test case: it returns what is wrong, "" for nothing.
type asserted struct {
	params []string
	check  func(t *starlark.Thread, a []starlark.Value) (string, error)
}

var asserts map[string]asserted

func init() {
	two := []string{"first", "second", "msg"}
	one := []string{"expr", "msg"}
	asserts = map[string]asserted{
		"assertTrue":  {one, func(t *starlark.Thread, a []starlark.Value) (string, error) { return holds(t, a[0], true) }},
		"assertFalse": {one, func(t *starlark.Thread, a []starlark.Value) (string, error) { return holds(t, a[0], false) }},
		"assertIsNone": {one, func(_ *starlark.Thread, a []starlark.Value) (string, error) {
			return unless(isNone(a[0]), "%s is not None", a[0])
		}},
		"assertIsNotNone": {one, func(_ *starlark.Thread, a []starlark.Value) (string, error) {
			return unless(!isNone(a[0]), "unexpectedly None")
		}},
		"assertIs": {two, func(_ *starlark.Thread, a []starlark.Value) (string, error) {
			return unless(same(a[0], a[1]), "%s is not %s", a...)
		}},
		"assertIsNot": {two, func(_ *starlark.Thread, a []starlark.Value) (string, error) {
			return unless(!same(a[0], a[1]), "unexpectedly identical: %s", a[0])
		}},
		"assertEqual":          {two, relation("eq", "%s != %s")},
		"assertEquals":         {two, relation("eq", "%s != %s")},
		"assertListEqual":      {two, relation("eq", "%s != %s")},
		"assertTupleEqual":     {two, relation("eq", "%s != %s")},
		"assertDictEqual":      {two, relation("eq", "%s != %s")},
		"assertSetEqual":       {two, relation("eq", "%s != %s")},
		"assertMultiLineEqual": {two, relation("eq", "%s != %s")},
		"assertSequenceEqual":  {two, sequencesEqual},
		"assertCountEqual":     {two, sameElements},
		"assertNotEqual":       {two, relation("ne", "%s == %s")},
		"assertGreater":        {two, relation("gt", "%s not greater than %s")},
		"assertGreaterEqual":   {two, relation("ge", "%s not greater than or equal to %s")},
		"assertLess":           {two, relation("lt", "%s not less than %s")},
		"assertLessEqual":      {two, relation("le", "%s not less than or equal to %s")},
		"assertIn":             {[]string{"member", "container", "msg"}, membership(true)},
		"assertNotIn":          {[]string{"member", "container", "msg"}, membership(false)},
		"assertIsInstance":     {[]string{"obj", "cls", "msg"}, instanceOf(true)},
		"assertNotIsInstance":  {[]string{"obj", "cls", "msg"}, instanceOf(false)},
		"assertAlmostEqual":    {[]string{"first", "second", "places", "msg", "delta"}, almost(true)},
		"assertNotAlmostEqual": {[]string{"first", "second", "places", "msg", "delta"}, almost(false)},
		"fail":                 {[]string{"msg"}, func(*starlark.Thread, []starlark.Value) (string, error) { return "fail()", nil }},
	}
}

func unless(ok bool, format string, a ...starlark.Value) (string, error) {
	if ok {
		return "", nil
	}
	var shown []any
	for _, v := range a[:min(len(a), strings.Count(format, "%s"))] {
		shown = append(shown, shortened(v))
	}
	return fmt.Sprintf(format, shown...), nil
}

// shortened is a value in a message.
func shortened(v starlark.Value) string {
	var s string
	switch x := v.(type) {
	case *symbol:
		s = string(x.ref)
		if seen, ok := x.d.seen[x.ref]; ok && seen.Tensor != nil && seen.Tensor.Len() <= 8 {
			s = repr((&array{seen.Tensor}).list(), 0)
		}
	case *array:
		if s = "an array of " + x.t.String(); x.t.Len() <= 8 {
			s = repr(x.list(), 0)
		}
	default:
		s = repr(v, 0)
	}
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + "…"
	}
	return s
}

func isNone(v starlark.Value) bool {
	if a, ok := v.(*attr); ok {
		s, err := a.resolve()
		if err != nil {
			return false
		}
		v = s
	}
	if s, ok := v.(*symbol); ok {
		if s.attribute && s.kind == kindTensor { // as it is taken for: m.bias may be None
			v, err := s.d.observe(s.ref)
			return err == nil && v.Tensor == nil && !v.IsTuple && !v.Module && v.Plain == nil
		}
		if kind, err := s.known(); err != nil || kind != kindPlain {
			return false
		}
		plain, err := s.item()
		return err == nil && plain == nil
	}
	return v == starlark.None
}

func holds(t *starlark.Thread, v starlark.Value, want bool) (string, error) {
	b, err := truth(t, v)
	if err != nil {
		return "", err
	}
	return unless(bool(b.Truth()) == want, "%s is not "+map[bool]string{true: "true", false: "false"}[want], v)
}

func relation(op, format string) func(*starlark.Thread, []starlark.Value) (string, error) {
	return func(t *starlark.Thread, a []starlark.Value) (string, error) {
		if err := plainSides(a); err != nil {
			return "", err
		}
		ok, err := precedes(t, op, a[0], a[1])
		if err != nil {
			return "", err
		}
		return unless(ok, format, a...)
	}
}

// plainSides takes attributes that are plain values, such as x.is_leaf, for these
// where the other side is one.
func plainSides(a []starlark.Value) error {
	for i := range 2 {
		switch a[1-i].(type) {
		case starlark.Bool, starlark.NoneType, starlark.String:
		default:
			continue
		}
		s, ok := a[i].(*symbol)
		if x, named := a[i].(*attr); named {
			var err error
			if s, err = x.resolve(); err != nil {
				return err
			}
			ok = true
		}
		if ok && (s.attribute || isBool(a[1-i])) {
			if kind, err := s.known(); err != nil || kind != kindPlain {
				return err
			}
			v, err := settled(s)
			if err != nil {
				return err
			}
			a[i] = v
		}
	}
	return nil
}

func isBool(v starlark.Value) bool {
	_, ok := v.(starlark.Bool)
	return ok
}

// both returns the elements of two iterables.
func both(t *starlark.Thread, a []starlark.Value) (x, y []starlark.Value, err error) {
	if x, err = iterate(t, a[0]); err == nil {
		y, err = iterate(t, a[1])
	}
	return x, y, err
}

func sequencesEqual(t *starlark.Thread, a []starlark.Value) (string, error) {
	x, y, err := both(t, a)
	if err != nil {
		return "", err
	}
	return relation("eq", "%s != %s")(t, []starlark.Value{starlark.Tuple(x), starlark.Tuple(y)})
}

// mostCounted bounds the elements that are looked for one by one.
const mostCounted = 1000

// sameElements says that two iterables have the same elements, each as often.
func sameElements(t *starlark.Thread, a []starlark.Value) (string, error) {
	x, y, err := both(t, a)
	if err != nil {
		return "", err
	}
	if len(x) > mostCounted {
		return "", lack("assertCountEqual of more than %d elements is not supported in test files", mostCounted)
	}
	same := len(x) == len(y)
	for _, v := range x {
		at := -1
		for i, w := range y {
			if eq, err := operators["eq"].call(t, v, w); err != nil {
				return "", err
			} else if bool(eq.Truth()) {
				at = i
				break
			}
		}
		if at < 0 {
			same = false
			break
		}
		y = slices.Delete(y, at, at+1)
	}
	return unless(same, "%s and %s do not have the same elements", a...)
}

func membership(want bool) func(*starlark.Thread, []starlark.Value) (string, error) {
	return func(t *starlark.Thread, a []starlark.Value) (string, error) {
		v, err := contains(t, starlark.Tuple{a[0], a[1]})
		if err != nil {
			return "", err
		}
		return unless(bool(v.Truth()) == want, "%s "+map[bool]string{true: "not found in", false: "unexpectedly found in"}[want]+" %s", a...)
	}
}

func instanceOf(want bool) func(*starlark.Thread, []starlark.Value) (string, error) {
	return func(t *starlark.Thread, a []starlark.Value) (string, error) {
		v, err := isInstance(t, starlark.Tuple{a[0], a[1]})
		if err != nil {
			return "", err
		}
		return unless(bool(v.Truth()) == want, "%s is "+map[bool]string{true: "not ", false: ""}[want]+"an instance of %s", a...)
	}
}

func almost(want bool) func(*starlark.Thread, []starlark.Value) (string, error) {
	return func(t *starlark.Thread, a []starlark.Value) (string, error) {
		diff, err := operators["sub"].call(t, a[0], a[1])
		if err != nil {
			return "", err
		}
		diff, err = settled(diff)
		if err != nil {
			return "", err
		}
		f, ok := starlark.AsFloat(number(diff))
		if !ok {
			return "", fmt.Errorf("assertAlmostEqual needs numbers, not %s", a[0].Type())
		}
		places, limit := 7, math.NaN()
		if a[2] != nil && a[2] != starlark.None {
			if places, err = starlark.AsInt32(a[2]); err != nil {
				return "", err
			}
		}
		if a[4] != nil && a[4] != starlark.None {
			limit, _ = starlark.AsFloat(a[4])
		}
		close := roundDigits(math.Abs(f), places) == 0
		if !math.IsNaN(limit) {
			close = math.Abs(f) <= limit
		}
		return unless(close == want, "%s "+map[bool]string{true: "!=", false: "=="}[want]+" %s within the tolerance", a...)
	}
}

// assertion returns an assert method of the test case; nil for other names.
func assertion(name string) starlark.Value {
	a, ok := asserts[name]
	if !ok {
		return nil
	}
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		given := arguments{name, a.params, make([]starlark.Value, len(a.params))}
		if err := given.bind(args, kwargs); err != nil {
			return nil, err
		}
		for i, p := range a.params {
			if given.values[i] == nil && p != "msg" && p != "places" && p != "delta" {
				return nil, fmt.Errorf("%s needs the argument '%s'", name, p)
			}
		}
		for i, v := range given.values {
			if x, ok := v.(*attr); ok {
				s, err := x.resolve()
				if err != nil {
					return nil, err
				}
				given.values[i] = s
			}
		}
		wrong, err := a.check(t, given.values)
		if err != nil || wrong == "" {
			return starlark.None, err
		}
		if msg := given.get("msg"); msg != nil && msg != starlark.None {
			wrong += ": " + str(msg)
		}
		if d, ok := t.Local(drawKey).(*draw); ok && d.guessed {
			return nil, lack("%s: the test asked for its rank, and what other ranks have is taken to be the same", wrong)
		}
		return nil, &assertionError{"the test's assertion failed on the reference: " + wrong}
	})
}
