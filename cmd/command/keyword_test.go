package command

import (
	"slices"
	"strings"
	"testing"
)

func TestKeyword(t *testing.T) {
	name := "suites/conv.py::TestConv::test_conv2d[float64]"
	for expr, want := range map[string]bool{
		"": true, "  ": true,
		"conv": true, "CONV2D": true, "pool": false, "test_conv2d[float64]": true, "conv.py::TestConv": true,
		"conv and pool": false, "conv or pool": true, "not pool": true, "not conv": false, "not not conv": true,
		"pool or conv and not float32":       true, // and binds before or
		"(pool or conv) and not (float64)":   false,
		"not pool and not linear or nothing": true,
		"nota":                               false, "or_ or conv": true, "((conv))": true,
	} {
		k, err := parseKeyword(expr)
		if err != nil || k(name) != want {
			t.Errorf("-k %q: %v, want %v", expr, err, want)
		}
	}
	for expr, want := range map[string]string{
		"and":                              `column 1: want a name, not, or (, not "and"`,
		"conv or":                          "column 8: want a name, not, or (, not the end",
		"(conv":                            `column 6: want ")", not the end`,
		"conv)":                            `column 5: want and, or, or the end, not ")"`,
		"a b":                              "column 3: want and",
		"é & a":                            `column 3: want and, or, or the end, not "&"`,
		"!":                                `column 1: want a name`,
		strings.Repeat("(", 1000) + "a":    "at most 100 levels",
		strings.Repeat("not ", 1000) + "a": "at most 100 levels",
	} {
		if _, err := parseKeyword(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-k %.20q: %v, want %q", expr, err, want)
		}
	}
}

func FuzzKeyword(f *testing.F) {
	for _, s := range []string{"a and (b or not c)", "((", "not", "é\xff", "a)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		k, err := parseKeyword(expr)
		if (k == nil) == (err == nil) {
			t.Fatalf("%q: neither an expression nor an error, or both", expr)
		}
		if k == nil {
			return
		}
		k("a::b")
		if n, err := parseKeyword("not (" + expr + ")"); err == nil && n("a::b") == k("a::b") {
			t.Errorf("%q and its negation are %v", expr, k("a::b"))
		}
	})
}

func TestNear(t *testing.T) {
	names := []string{"a.py::test_conv1d", "a.py::test_conv2d", "a.py::TestX::test_relu", "a.py::test_linear"}
	for name, want := range map[string][]string{
		"b.py::test_con1d":    {"a.py::test_conv1d"},
		"rleu":                {"a.py::TestX::test_relu"},
		"rxlu":                {"a.py::TestX::test_relu"},
		"xexlu":               nil,
		"relu_":               {"a.py::TestX::test_relu"},
		"conv":                {"a.py::test_conv1d", "a.py::test_conv2d"},
		"a.py::TestX::linaer": {"a.py::test_linear"},
	} {
		if got := near(name, names); !slices.Equal(got, want) {
			t.Errorf("near %s is %v, want %v", name, got, want)
		}
	}
}

func TestSplitIDs(t *testing.T) {
	files, ids := splitIDs([]string{"x/a.py::T::t", "x/./a.py::u", "b.py", "b.py", "conv.py::test_conv2d"})
	if !slices.Equal(files, []string{"x/a.py", "x/./a.py", "b.py", "suites/conv.py"}) || !slices.Equal(ids, []string{"x/a.py::T::t", "x/a.py::u", "suites/conv.py::test_conv2d"}) {
		t.Errorf("%v %v", files, ids)
	}
	for name, want := range map[string]bool{"x/a.py::T::t": true, "x/./a.py::T::t[float32]": true, "x/a.py::T::tt": false, "x/a.py::T": false, "y/a.py::T::t": false} {
		if selects("x/a.py::T::t", name) != want {
			t.Errorf("x/a.py::T::t selects %s: %v", name, !want)
		}
	}
	if !selects("x/a.py::T", "x/a.py::T::t") || selects("x/a.py::T", "x/a.py::TX::t") {
		t.Error("a class selects other tests than its own")
	}
}
