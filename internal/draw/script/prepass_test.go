package script

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"plumb/internal/draw/choice"
)

func TestPrepass(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"import torch", `torch = __import__("torch")`},
		{"import torch.nn as nn, os.path", `nn = __import__("torch.nn"); os = __import__("os")`},
		{"from m import (a as b,\n  c,\n)\nx = 1", "b = __from__(\"m\", \"a\"); c = __from__(\"m\", \"c\")\n\n\nx = 1"},
		{"from m.n import *", `__from__("m.n", "*")`},
		{"from __future__ import annotations", "pass"},
		{"@autotest(n=1,\n  rtol=2) # tight\ndef test_x(): pass", "__decorate__(autotest(n=1,\n  rtol=2)) # tight\ndef test_x(): pass"},
		{"class T(a.B): # one\n  pass", "if __class__(\"T\", a.B): # one\n  pass"},
		{"class T:\n  pass", "if __class__(\"T\"):\n  pass"},
		{"def f(x: int, *a: Tuple[int, int], y: Dict[str, int]={1: 2}, z=lambda v: v) -> List[int]: pass", "def f(x, *a, y={1: 2}, z=lambda v: v) : pass"},
		{"x: int = 3; y: str", "x = 3; pass"},
		{"self.a.b[0]: list[int] = y", "self.a.b[0] = y"},
		{"x[f(1)]: T", "pass"},
		{"class C:\n    x: Dict[str, int] = {}\n    y: T\n    def f():\n        z: int = 3", "if __class__(\"C\"):\n    __annotated__(\"x\", \"Dict[str, int]\"); x = {}\n    __annotated__(\"y\", \"T\")\n    def f():\n        z = 3"},
		{"a is b or c is  not d", "a == b or c != d"},
		{"a ** b @ c", "a // b * c"},
		{"a **= b; a @= b", "a //= b; a *= b"},
		{"f(*a, **b)", "f(*a, **b)"},
		{"def f(*a, **b): return [x, *y]", "def f(*a, **b): return __concat__([x], __many__(y))"},
		{"a < b <= c", `__chain__(lambda: (a ), "<", lambda: ( b ), "<=", lambda: ( c))`},
		{"x = a not in b is not c and d < e", `x = __chain__(lambda: (a ), "not in", lambda: ( b ), "is not", lambda: ( c)) and d < e`},
		{"a, *b = c", "a, b = __unpack__(( c), 1, 0)"},
		{"for a, *b in c: f(*b)", "for a, b in __unpackeach__( c, 1, 0): f(*b)"},
		{"for a, *b,", "for (a, *b,)"}, // which Starlark refuses
		{"y = [f(x) for x, *_ in d]", "y = [f(x) for x, _ in __unpackeach__( d, 1, 0)]"},
		{"x = [b for *a, b in f(c) if b]", "x = [b for a, b in __unpackeach__( f(c), 0, 1) if b]"},
		{"*a, b = c, d", "a, b = __unpack__(( c, d), 0, 1)"},
		{"a, = b; c = d, e,; f(a,)", "(a,) = b; c = (d, e,); f(a,)"},
		{"for a, in b: return a,", "for (a,) in b: return (a,)"},
		{"a = b = c[0] = d", "a = d; b = a; c[0] = a"},
		{"{1, 2}, {x for x in y}, {}, {1: 2}, {**a, 1: 2}", "set([1, 2]), set([x for x in y]), {}, {1: 2}, __merge__(a, {1: 2})"},
		{"sum(x for x in y), (x for x in y)", "sum([x for x in y]), ([x for x in y])"},
		{"def f():\n  await 1\n  x = 2\ny = 3", "def f():\n  __unsupported__(\"await is not supported in test files\", 2, 3)\n\ny = 3"},
		{"def f(a: int, /, b=1 / 2, *c): pass\ndef g(a, /): pass", "def f(a, b=1 / 2, *c): pass\ndef g(a): pass"},
		{"def f():\n  match = 1\n  match a:\n    case 1: pass\ny = 3", "def f():\n  match = 1\n  if __match__( a):\n    if __case__(__pattern__(\"value\", 1), ()): pass\ny = 3"},
		{"match a, b:\n  case [x, *_] | C(y=x) if x: pass", "if __match__(( a, b)):\n  if __case__(__pattern__(\"or\", __pattern__(\"sequence\", __pattern__(\"name\", \"x\"), __pattern__(\"star\", \"_\")), __pattern__(\"class\", C, y=__pattern__(\"name\", \"x\"))), (\"x\",), x): pass"},
		{"def f():\n  with a as b, c:\n    pass", "def f():\n  if __with__( \"b\", a , \"\", c):\n    pass"},
		{"for x in y:\n  pass\nelse:\n  z", "for x in y:\n  pass\nif __unbroken__:\n  z"},
		{"try:\n  import a\nexcept E:\n  pass", "if True:\n  a = __import__(\"a\")\nif False:\n  pass"},
		{"def f():\n  try:\n    a\n  except (E, F) as e:\n    b\n  else:\n    c\n  finally:\n    d", "def f():\n  if __try__():\n    a\n  if __except__(\"e\",  (E, F) ):\n    b\n  if __noerror__():\n    c\n  if __finally__():\n    d"},
		{"def f():\n  global a, b\n  x = yield a, b\n  yield from c", "def f():\n  __global__(\"a\", \"b\")\n  x = __yield__(( a, b))\n  __yieldfrom__( c)"},
		{"if (n := f(a)) > 2 and g(m := 1, 2): pass", "if (__let__(n , f(a))) > 2 and g(__let__(m , 1), 2): pass"},
		{"del a[0]", "__delete__( a[0])"},
		{"f(**a)(b)**c", "f(**a)(b)//c"},
		{"x[:, 1]", "x[slice(None,None), 1]"},
		{"x[1:2, ::-1, ..., f(a[1:2]):]", "x[slice(1,2), slice(None,None,-1), Ellipsis, slice(f(a[1:2]),None)]"},
		{"x[1:2], [a for b in c], {1: 2}[1], x[lambda: 1]", "x[1:2], [a for b in c], {1: 2}[1], x[lambda: 1]"},
		{"1_000 + 2j + 0x_ff", "1000 + complex(0, 2) + 0xff"},
		{"x = 'a' \"b\" 'c'", "x = ('a' + \"b\" + 'c')"},
		{"x = ('a'\n  'b')", "x = (('a'\n  + 'b'))"},
		{`f"a{x}%{y.z[0]!r}{{}}"`, `("a%s%%%r{}" % ((x),(y.z[0]),))`},
		{`rf'\d{x}' u"a" b"c"`, `((r'\d%s' % ((x),)) + "a" + b"c")`},
		{"raise ValueError('x') from e", "__raise__( ValueError('x') , e)"},
		{"assert x, 'no'", "__assert__( x, lambda:  'no')"},
		{"if a is None: raise E", "if a == None: __raise__( E)"},
		{"x = '# is ** @' # is ** @", "x = '# is ** @' # is ** @"},
		{"'''a\nis @'''; x is y", "'''a\nis @'''; x == y"},
		{"x = 1 + \\\n  2 ** 3", "x = 1 + \\\n  2 // 3"},
		{"\ufeffx is y", "x == y"},
		{"matches = island is_not", "matches = island is_not"},
	} {
		out, err := prepass(c.src)
		if err != nil {
			t.Errorf("%q: %v", c.src, err.msg)
			continue
		}
		if out.text != c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.src, out.text, c.want)
		}
	}
}

func TestColumnsLeadBackToTheSource(t *testing.T) {
	const src = "@deco(HERE)\ndef f(): pass\ny = x[:, HERE] + 2j ** HERE; z = f'{a}' + HERE\nß = 'é' 'ö' + HERE # ** \n(1_000,\n  HERE)\n"
	out, err := prepass(src)
	if err != nil {
		t.Fatal(err.msg)
	}
	from, at := 0, 0
	for range strings.Count(src, "HERE") {
		from += strings.Index(src[from:], "HERE")
		at += strings.Index(out.text[at:], "HERE")
		if got, want := out.source(pointAt(out.text, at)), pointAt(src, from); got != want {
			t.Errorf("%v of the rewritten text leads to %v, want %v", pointAt(out.text, at), got, want)
		}
		from, at = from+1, at+1
	}
}

// TestExpressionsMeanWhatPythonSays evaluates expressions whose value Python
// gives as true.
func TestExpressionsMeanWhatPythonSays(t *testing.T) {
	for _, e := range []string{
		"-2 ** 2 == -4", "2 ** -1 == 0.5", "2 ** 3 ** 2 == 512", "(-2) ** 2 == 4", "3 * 2 ** 2 * 2 == 24", "2 ** 2 // 3 == 1",
		"-2 ** -2 ** 2 == -0.0625", "7 // 2 == 3", "-7 // 2 == -4", "-7 % 3 == 2", "7 / 2 == 3.5", "2 + 3 * 4 ** 2 == 50", "not 1 ** 2 == 2",
		"True + 1 == 2", "1 == 1.0", "True == 1", "None is None", "not (0 is None)", "1 is not None", "'a' 'b' == 'ab'",
		"f'{1 + 1}a{\"\" is None!r}' == '2aFalse'" /* unsupported nesting is an error */, "f'x{3}y%' == 'x3y%'",
		"[1, 2, 3, 4][1:3] == [2, 3]", "[1, 2, 3][::-1] == [3, 2, 1]", "(1, 2, 3)[-2:] == (2, 3)", "'abc'[:-1] == 'ab'", "[1, 2, 3][5:] == []", "[1, 2, 3, 4][3:0:-2] == [4, 2]",
		"1j * 1j == -1", "complex(1, 2) == 1 + 2j", "(1 + 2j) - 2j == 1", "abs(-3) == 3", "sum([1, 2], 3) == 6", "pow(2, 5) == 32", "round(2.5) == 2",
		"int(3.7) == 3", "float(2) == 2.0", "bool([]) == False", "len('abc') == 3", "1_000 == 1000",
		"[x for x in range(5) if x > 2] == [3, 4]", "(1 if 0 > 1 else 2) == 2", "(0 or 5) == 5", "(3 and 5) == 5", "not (3 > 2 and 2 > 3)",
		"math.sqrt(4) == 2", "torch.float32 == torch.float", "torch.float32 != torch.float64", "torch.float32 is torch.float", "torch.inf > 1e300",
		"torch.Size([1, 2]) == (1, 2)", "{1: 2}[1] == 2", "(1, 2) < (1, 3)", "__name__ != '__main__'", "1 in [1, 2] and 3 not in [1]",
	} {
		src := "import math, torch\nassert " + e + "\n"
		if strings.Contains(e, "!r") {
			if f, err := Load("t.py", []byte(src)); err != nil || len(f.Notes) == 0 {
				t.Errorf("%s: %v; want a note that an operator in an f-string is not supported", e, err)
			}
			continue
		}
		if _, err := Load("t.py", []byte(src)); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
}

func TestStatementsMeanWhatPythonSays(t *testing.T) {
	for _, src := range []string{
		"x = [1]\ny = x\ny += [2]\nassert x == [1, 2]",
		"x = 2\nx **= 3\nx -= 1\nx *= 2\nx //= 4\nassert x == 3",
		"x = [1, 2]\nx[0] += 5\nassert x == [6, 2]",
		"def f(a, b=2, *c, **d): return a + b + len(c) + len(d)\nassert f(1, 2, 3, x=4) == 5",
		"n = 0\nwhile n < 5:\n    n += 1\nassert n == 5",
		"x = 0\nfor i in range(3):\n    if i == 1: continue\n    x += i\nassert x == 2",
		"def f(n): return 1 if n < 2 else n * f(n - 1)\nassert f(5) == 120",
		"x: int = 3; assert x == 3",
		"from typing import Tuple, Union\nr = random(1, 3).to(Union[int, Tuple[int, int]])",
		"from torch import nn\nfrom torch.nn import functional as F\nimport torch.nn.functional as G\nassert str(nn) == 'torch.nn' and F == G",
		"if __name__ == '__main__':\n    unittest = 1\n    unittest.main()",
	} {
		if _, err := Load("t.py", []byte(src)); err != nil {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func TestClassesAndDecorators(t *testing.T) {
	f, err := Load("dir/t.py", []byte(`"""A file in the style of OneFlow's own tests."""
import os, unittest
from collections import OrderedDict
import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *

def _helper(test_case, k):
    return torch.relu(random_tensor(ndim=k))

@flow.unittest.skip_unless_1n1d()
class TestA(flow.unittest.TestCase):
    @autotest(n=2)
    def test_one(test_case):
        return _helper(test_case, 2)

    @unittest.skip("it fails")
    @autotest()
    def test_two(self):
        return self.helper()

    def helper(self):
        return torch.relu(random_tensor())

    @autotest()
    @unittest.skipIf(os.getenv("ONEFLOW_TEST_CPU_ONLY"), "only test cpu cases")
    def test_three(self):
        return self.helper()

    def test_plain(self):
        np.zeros(3)

@unittest.skipUnless(False, "not here")
class TestB(TestA):
    @autotest()
    def test_one(self):
        return self.helper()

@flow.unittest.skip_unless_1n2d()
@autotest()
def test_module_level():
    return torch.relu(random_tensor())

@autotest()
def helper_with_autotest():
    pass

if __name__ == "__main__":
    unittest.main()
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range f.Tests() {
		got = append(got, strings.TrimSpace(test.Name+" "+test.Skip))
		if _, err := test.Draw(choice.New(1), Env{Signatures: toySigs}); err != nil {
			t.Error(err)
		}
	}
	want := `dir/t.py::TestA::test_one
dir/t.py::TestA::test_two it fails
dir/t.py::TestB::test_two it fails
dir/t.py::TestA::test_three
dir/t.py::TestB::test_three not here
dir/t.py::TestA::test_plain
dir/t.py::TestB::test_plain not here
dir/t.py::TestB::test_one not here
dir/t.py::test_module_level it needs several devices: skip_unless_1n2d`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if f.Tests()[0].Line != 15 {
		t.Errorf("test_one is at line %d", f.Tests()[0].Line)
	}
	var notes []string
	for _, n := range f.Notes {
		notes = append(notes, n.Text)
	}
	if len(notes) > 0 {
		t.Error(notes)
	}
}

// FuzzPrepass: any text is rewritten line by line or refused, without a panic.
func FuzzPrepass(f *testing.F) {
	for _, s := range []string{mixed, "x[1:2, 3]", "f'{x!r}{'", "class T(\n", "@\n@x", "from a import (b", "'''", "def f(x: int=3) -> y:", "((((", "1j.2e+", "a\\\n**b", "raise", "lambda: 0", "import a.b as"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		out, err := prepass(src)
		if err != nil {
			if err.at < 0 || err.at > len(src) {
				t.Fatalf("the error is at byte %d of %d", err.at, len(src))
			}
			return
		}
		if strings.Count(out.text, "\n") != strings.Count(src, "\n") {
			t.Fatalf("%q became %q", src, out.text)
		}
	})
}

// FuzzLoad: any text is loaded and its tests are drawn, or an *Error says why
// not, in bounded time.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{mixed, body("x = random_tensor()\nreturn x[0:1, :] @ x.T"), "for i in range(9): i", "x = 'a' * 9", "def f(): return f()\nf()", "@autotest(n=1)\nclass T: pass"} {
		f.Add(s)
	}
	data, err := os.ReadFile("testdata/language.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(data), "\n-- ")[1:] {
		_, text, _ := strings.Cut(part, " --\n")
		f.Add(strings.ReplaceAll(wrapped(text), "show((", "print(("))
	}
	for _, s := range []string{
		"np.arange(10**9)", "np.ones((10**5, 10**5))", "[0] * 10**9", "'a' * 10**9", "10**10**10", "1 << 10**9", "'%99999999d' % 1", "f'{1:99999999}'", "'a'.ljust(10**9)",
		"list(itertools.product(range(100), repeat=9))", "list(itertools.permutations(range(50)))", "math.factorial(10**9)", "math.comb(10**6, 5)", "sum(range(10**6))", "np.linspace(0, 1, 10**9)", "np.eye(10**6)",
		"np.random.randn(10**9)", "pyrandom.choices([1], k=10**9)", "np.zeros((3,))[5]", "np.zeros((3,))[::-1]", "np.zeros((2, 3)).reshape(-1, -1)", "np.zeros((2, 3)).transpose(5, 6)", "np.broadcast_to(np.ones(3), (10**6, 10**6))",
		"np.concatenate([])", "np.stack([np.ones(2), np.ones(3)])", "copy.deepcopy([[1]] * 1000)", "sorted([1, 'a'])", "max([])", "'{' .format()", "'{0[5]}'.format([1])", "round(1e308, -400)", "divmod(1, 0)", "1.0 % 0.0", "np.array([1]) // 0", "(-1) ** 0.5", "0.0 ** -1",
		"np.array([[1], [2, 3]])", "np.full(3, np.ones(2))", "np.where([1], 2, 3)", "functools.reduce(lambda a, b: a, [])", "torch.tensor(np.ones((2, 2)))", "int('9' * 5000)", "float('1e999')", "np.repeat([1], 10**9)", "np.arange(0, 1, 0)", "np.arange(0, 1, float('nan'))",
	} {
		f.Add(wrapped("y = " + s + "\nreturn x * 1\n"))
	}
	f.Fuzz(func(t *testing.T, src string) {
		defer time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("this hangs: %q", src)) }).Stop()
		file, err := Load("t.py", []byte(src))
		var e *Error
		ours := func(err error) {
			if strings.Contains(err.Error(), ourMistake) && !strings.Contains(src, "__") { // the engine's names
				t.Fatal(err)
			}
		}
		if err != nil {
			ours(err)
			if !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		for _, test := range file.Tests() {
			p, err := test.Draw(choice.New(1), Env{Signatures: toySigs, Observer: &watcher{answer: ofShape(2, 3)}})
			if err == nil {
				err = p.Validate()
				if err != nil {
					t.Fatalf("%v\n%s", err, p)
				}
			} else if ours(err); !errors.As(err, &e) && !errors.Is(err, ErrNoObserver) {
				t.Fatalf("%T %v", err, err)
			}
		}
	})
}
