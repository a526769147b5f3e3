package script

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
)

// TestKits: what other packages than pytest make of tests; a test that needs what is not
// there is one that says so.
func TestKits(t *testing.T) {
	f := load(t, `
import unittest
import pytest
from dataclasses import dataclass
from hypothesis import given, settings, strategies as st
from parameterized import parameterized, param, parameterized_class
from torch.testing._internal.common_device_type import dtypes, dtypesIfCUDA, instantiate_device_type_tests, onlyCUDA, ops
from torch.testing._internal.common_dtype import floating_types_and
from torch.testing._internal.common_utils import TestCase, parametrize, subtest
from somewhere import decorate

class TestDevice(TestCase):
    @dtypes(*floating_types_and(torch.bfloat16))
    @dtypesIfCUDA(torch.float16)
    def test_dtypes(self, device, dtype): pass

    @parametrize("a,b", [(1, 2), subtest((3, 4), name="large")])
    def test_sets(self, a, b): pass

    @onlyCUDA
    def test_elsewhere(self, device): pass

    @ops([])
    def test_ops(self, device, dtype, op): pass

instantiate_device_type_tests(TestDevice, globals())

class TestLists(unittest.TestCase):
    @parameterized.expand([("x", 1), param("y")])
    def test_lists(self, name, n=2): pass

    @parameterized.expand([(1, 2, 3)])
    def test_long(self, a): pass

@settings(max_examples=7)
@given(st.integers(1, 3))
def test_drawn(n): pass

@decorate(3)
def test_decorated(x): pass

def test_helped(a): pass

def test_handed(test_case, a): pass

def test_helps(): test_helped(1)

def test_defaults(n=2): pass

def test_helped_too(n=2): pass

def test_helps_too(): test_helped_too(3)

def test_fixtures(recwarn, pytestconfig): pass

class Mixin:
    def test_shared(self): pass
    def test_hidden(self): pass

class TestPlain(Mixin):
    test_hidden = None

class Other(TestPlain): pass

class Base(unittest.TestCase):
    def test_base(self): pass

class Derived(Mixin, Base):
    def test_base(self): pass

@pytest.mark.parametrize("b", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("k", [1, 3])
class TestAll:
    def test_k(self, k, b): pass

@dataclass
class TestData:
    def test_it(self): pass

class TestMethods:
    def test_lacks(self, pytestconfig): pass
    def test_helped(self, n): pass
    def test_helps(self): self.test_helped(1)
    def test_default(self, n=3): pass

class TestModule(torch.nn.Module):
    def test_it(self, x): return x

@parameterized_class(("n", "how"), [(2, "by sum"), (3, "mean")])
class TestOften(unittest.TestCase):
    def test_n(self): pass

@parameterized_class([{"p": 1.0}, {"p": 2.0}])
class TestOften2(unittest.TestCase):
    def test_p(self): pass
`)
	var got []string
	for _, test := range f.Tests() {
		line := strings.TrimPrefix(test.Name, "t.py::")
		for what, text := range map[string]string{" skipped: ": test.Skip, " lacks: ": test.lacks} {
			if text != "" {
				line += what + text
			}
		}
		if test.wrong != nil {
			line += " wrong: " + test.wrong.Error()
		}
		if test.Options.N == 7 {
			line += " 7 times"
		}
		got = append(got, line)
	}
	want := `TestDevice::test_dtypes[float32]
TestDevice::test_dtypes[float64]
TestDevice::test_dtypes[bfloat16]
TestDevice::test_sets[1-2]
TestDevice::test_sets[large]
TestDevice::test_elsewhere skipped: it is for other devices: onlyCUDA
TestDevice::test_ops lacks: torch.testing._internal.common_device_type.ops is not supported in test files
TestLists::test_lists[0-x-1]
TestLists::test_lists[1-y-2]
TestLists::test_long wrong: parameterized.expand: list 0 has 3 arguments, and test_long takes 1
test_drawn 7 times
test_decorated lacks: somewhere.decorate is not supported: somewhere is not available in test files, which are run without Python
test_helps
test_defaults
test_helps_too
test_fixtures lacks: the fixture recwarn is not in test files, and the file has none of that name
TestPlain::test_shared
Derived::test_shared
Derived::test_hidden
Base::test_base
Derived::test_base
TestAll::test_k[1-yes]
TestAll::test_k[1-no]
TestAll::test_k[3-yes]
TestAll::test_k[3-no]
TestMethods::test_lacks lacks: the fixture pytestconfig is not in test files, and the file has none of that name
TestMethods::test_helps
TestMethods::test_default
TestOften_0_by_sum::test_n
TestOften_1_mean::test_n
TestOften2_0::test_p
TestOften2_1::test_p`
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Error(diff)
	}
}

// TestKitsRefuse: what the kits' functions cannot be called with is an error, at the latest
// when a case is drawn.
func TestKitsRefuse(t *testing.T) {
	for src, want := range map[string]string{
		"@given(st.integers(), st.integers())\ndef test_it(n): pass":          "has 2 strategies, and test_it takes 1 arguments",
		"@given(st.integers(), m=st.integers())\ndef test_it(n, m): pass":     "by position or by name, not both",
		"@given(st.lists())\ndef test_it(n): pass":                            "a strategy of its elements",
		"@given(st.lists(st.none(), min_size=10**9))\ndef test_it(n): pass":   "lists of more than 1048576 elements",
		"@given(st.integers().map())\ndef test_it(n): pass":                   "map takes one argument, not 0",
		"@given(st.integers(5, 2))\ndef test_it(n): pass":                     "nothing is between 5 and 2",
		"@given(st.integers(0, 2**70))\ndef test_it(n): pass":                 "beyond 2^62",
		"@given(st.sampled_from([]))\ndef test_it(n): pass":                   "nothing is between 0 and -1",
		"@given(st.integers().filter(lambda n: False))\ndef test_it(n): pass": "none of 100 draws",
		"@given(st.floats(2.0, 1.0))\ndef test_it(n): pass":                   "nothing is between 2 and 1",
		"f = st.composite()\n@given(f)\ndef test_it(n): pass":                 "composite takes one argument, not 0",
		"@parametrize('a', [subtest()])\ndef test_it(a): pass":                "subtest takes the arguments",
		"@parameterized.expand()\ndef test_it(a): pass":                       "takes lists of arguments",
	} {
		f, err := Load("t.py", []byte("from hypothesis import given, strategies as st\nfrom parameterized import parameterized\nfrom torch.testing._internal.common_utils import parametrize, subtest\n"+src+"\n"))
		for range 2 {
			if err == nil && len(f.Tests()) > 0 {
				_, err = f.Tests()[0].Draw(choice.New(1), Env{})
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v; want %q", src, err, want)
		}
	}
	f := load(t, "from hypothesis import given, strategies as st\n@given(st.integers(0, 2**32 - 1), st.lists(st.booleans(), max_size=3))\ndef test_it(seed, flags):\n    assert 0 <= seed < 2**32 and len(flags) <= 3\n")
	for key := range uint64(20) {
		if _, err := f.Tests()[0].Draw(choice.New(key), Env{}); err != nil {
			t.Error(err)
		}
	}
}

// TestDefaults: an argument with a default has it, and not the test case.
func TestDefaults(t *testing.T) {
	f := load(t, "def test_it(n=3):\n    assert n == 3\n\nclass TestM:\n    def test_it(self, n=3):\n        assert n == 3\n\ndef around(fn):\n    def w(*args, **kwargs):\n        return fn(*args, **kwargs)\n    return w\n\n@around\ndef test_wrapped():\n    pass\n\n@around\ndef test_both(n=3):\n    assert n == 3\n")
	if n := len(f.Tests()); n != 4 {
		t.Errorf("%d tests, want 4", n)
	}
	for _, test := range f.Tests() {
		if _, err := test.Draw(choice.New(1), Env{}); err != nil {
			t.Errorf("%s: %v", test.Name, err)
		}
	}
}

// TestIdentity: a parameter is another one once it is assigned, and itself until then.
func TestIdentity(t *testing.T) {
	drawOne(t, body("m = torch.nn.Linear(2, 2)\nw = list(m.parameters())[0]\nassert w is m.weight and id(w) == id(m.weight)\nm.weight = torch.nn.Parameter(torch.ones(2, 2))\nassert w is not m.weight\nreturn m.weight"), Env{Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}, Signatures: tableSigs{}})
}
