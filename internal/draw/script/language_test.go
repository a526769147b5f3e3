package script

import (
	"errors"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

// TestWhatCannotRunPoisonsItsOwnTest: each construct makes its test
// unsupported, at its position, and the file's other test runs.
func TestWhatCannotRunPoisonsItsOwnTest(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"async":            {body("async def f():\n    pass"), "t.py:3:5: async is not supported in test files"},
		"class inside":     {"import threading\n" + body("class A(threading.Thread):\n    pass\nA()"), "t.py:6:5: class A is not supported: its base threading.Thread is not in test files"},
		"decorator inside": {body("@torch.jit.interface\ndef f():\n    pass\nf()"), "t.py:6:5: the decorator torch.jit.interface is not supported in test files"},
		"one line":         {"@autotest()\ndef test_it(): await f()\n", "t.py:2:16: await is not supported in test files"},
		"file":             {body("with open('x') as f:\n    pass"), "t.py:3:10: files are not open to test files"},
		"with of a value":  {body("with 3:\n    pass"), "t.py:3:5: with an int is not supported in test files"},
		"foreign module":   {"import requests\n" + body("requests.get('x')"), "t.py:4:5: requests.get is not supported: requests is not available in test files, which are run without Python"},
		"oneflow only":     {"import oneflow as flow\n" + body("return flow.comm.barrier()"), "t.py:4:12: oneflow.comm.barrier is not supported: a test names no framework but torch, whose calls run on all of them"},
		"library":          {"import os\n" + body("os.system('a')"), "t.py:4:5: os.system is not supported in test files"},
		"torch.jit":        {body("torch.jit.trace(1)"), "t.py:3:5: torch.jit.trace of an int is not supported in test files"},
		"a look ahead":     {"import re\n" + body("re.compile('a(?=b)')"), "t.py:4:5: the regular expression 'a(?=b)' is not supported in test files: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		"optimizer":        {body("torch.optim.LBFGS([], 0.1)"), "t.py:3:5: torch.optim.LBFGS is not supported in test files"},
		"own class":        {"class Net(torch.jit.ScriptModule):\n    def f(self):\n        pass\n" + body("Net()"), "t.py:6:5: class Net is not supported: its base torch.jit.ScriptModule is not in test files"},
		"decorator":        {"import functools\n@functools.singledispatch\n" + body("pass"), "t.py:4:1: functools.singledispatch is not supported in test files"},
		"lost import":      {"from oneflow.test_utils.test_util import GenArgList, wrap_it\n" + body("return wrap_it()"), "t.py:4:12: oneflow.test_utils.test_util.wrap_it is not supported: a test names no framework but torch, whose calls run on all of them"},
		"lost name":        {"from somewhere import *\n" + body("return helper()"), "t.py:4:12: helper is not supported: helper is not available in test files, which are run without Python"},
		"eval":             {body("eval('1', {})"), "t.py:3:9: eval with variables of its own is not supported in test files"},
		"assert method":    {"import unittest\nclass TestX(unittest.TestCase):\n    @autotest()\n    def test_x(test_case):\n        test_case.assertRegex('a', 'b')\n", "t.py:5:18: assertRegex is not supported in test files"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Load("t.py", []byte(c.src+"\n@autotest()\ndef test_fine():\n    return torch.relu(random_tensor())\n"))
			if err != nil {
				t.Fatal(err)
			}
			var poisoned error
			fine := 0
			for _, test := range f.Tests() {
				_, err := test.Draw(choice.New(1), Env{Signatures: toySigs})
				if strings.HasSuffix(test.Name, "test_fine") {
					fine++
					if err != nil {
						t.Errorf("the other test: %v", err)
					}
					continue
				}
				poisoned = err
			}
			var e *Error
			if fine != 1 || !errors.As(poisoned, &e) || !e.Unsupported || poisoned.Error() != c.want {
				t.Errorf("%d fine; got  %v\nwant %s", fine, poisoned, c.want)
			}
			if e != nil && e.Excerpt() == "" {
				t.Error("no excerpt")
			}
		})
	}
}

// TestMistakesAreNotUnsupported: what Python itself would refuse stays an error of the file.
func TestMistakesAreNotUnsupported(t *testing.T) {
	for _, src := range []string{body("x = = 3"), body("return torch.relu(undefined_name)"), body("x = random_tensor(ndim='two')"), body("assert 1 == 2"), body("raise ValueError('no')")} {
		f, err := Load("t.py", []byte(src))
		if err == nil {
			_, err = f.Tests()[0].Draw(choice.New(1), Env{Signatures: toySigs})
		}
		var e *Error
		if !errors.As(err, &e) || e.Unsupported {
			t.Errorf("%q: %v; want a mistake", src, err)
		}
	}
}

func TestExpectedRefusalEndsTheProgram(t *testing.T) {
	o := nativeObserver{native.New(ops.Table(), nn.Modules())}
	draw := func(src string) (*program.Program, error) {
		f, err := Load("t.py", []byte("import unittest\nclass TestX(unittest.TestCase):\n    @autotest()\n    def test_x(self):\n        x = random_tensor(ndim=2, dim0=2, dim1=3)\n"+src))
		if err != nil {
			t.Fatal(err)
		}
		var seen *program.Program
		env := Env{Signatures: tableSigs{}, Observer: watching{o, &seen}}
		_, err = f.Tests()[0].Draw(choice.New(1), env)
		return seen, err
	}
	p, err := draw("        with self.assertRaises(RuntimeError):\n            torch.matmul(x, x)\n")
	if err == nil || p == nil || !p.Raises || len(p.Calls) != 1 {
		t.Errorf("%v, program %v", err, p)
	}
	if p, err := draw("        self.assertRaises(RuntimeError, torch.matmul, x, x)\n"); err == nil || p == nil || !p.Raises {
		t.Errorf("%v, program %v", err, p)
	}
	if _, err := draw("        with self.assertRaises(RuntimeError):\n            torch.relu(x)\n"); err == nil || !strings.Contains(err.Error(), "nothing was raised") {
		t.Errorf("%v; want that nothing was raised", err)
	}
}

// TestEveryExpectedRefusalHasItsCase: of several blocks each ends the program of
// one case, and what follows the last has another.
func TestEveryExpectedRefusalHasItsCase(t *testing.T) {
	f, err := Load("t.py", []byte("import unittest\nclass TestX(unittest.TestCase):\n    def test_x(self):\n        x = random_tensor(ndim=2, dim0=2, dim1=3)\n"+
		"        with self.assertRaises(RuntimeError):\n            torch.matmul(x.relu(), x)\n        self.assertRaises(RuntimeError, torch.sum, x, 5)\n        y = torch.tanh(x)\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Tests()[0].Options.N; n != 3 {
		t.Errorf("%d cases, want 3", n)
	}
	o := refusing{nativeObserver{native.New(ops.Table(), nn.Modules())}}
	for i, want := range []string{"Tensor.relu torch.matmul raises", "Tensor.relu torch.sum raises", "Tensor.relu torch.tanh"} {
		var seen *program.Program
		p, err := f.Tests()[0].Draw(choice.New(1), Env{Signatures: tableSigs{}, Observer: noting{o, &seen}, Index: i})
		if err != nil {
			p = seen
		}
		var got []string
		for _, c := range p.Calls {
			got = append(got, c.Target)
		}
		if p.Raises {
			got = append(got, "raises")
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("case %d: %s, want %s (%v)", i, s, want, err)
		}
	}
}

// refusing tells what the subject raised, as the observer of a run does.
type refusing struct{ nativeObserver }

func (r refusing) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	vs, err := r.nativeObserver.Observe(p, refs...)
	if err != nil {
		return nil, raisedError{err}
	}
	return vs, nil
}

type raisedError struct{ error }

func (r raisedError) Raised() (class, message string, ok bool) {
	return "RuntimeError", r.Error(), true
}

// noting remembers the program that was last observed.
type noting struct {
	refusing
	seen **program.Program
}

func (n noting) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	kept := *p
	*n.seen = &kept
	return n.refusing.Observe(p, refs...)
}

// watching remembers the program that was last observed.
type watching struct {
	nativeObserver
	seen **program.Program
}

func (w watching) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	*w.seen = p
	return w.nativeObserver.Observe(p, refs...)
}
