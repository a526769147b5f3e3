package script

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"plumb/internal/draw/choice"
)

var besideTests = fstest.MapFS{
	"top/common.py":       {Data: []byte("import torch\nSIZE = 3\n_hidden = 1\ndef act(x):\n    return torch.relu(x) * SIZE\n\nclass Layer(torch.nn.Module):\n    def forward(self, x):\n        return torch.tanh(x)\n")},
	"top/conftest.py":     {Data: []byte("import pytest\nimport torch\n@pytest.fixture(params=[2, 5])\ndef width(request):\n    return request.param\n@pytest.fixture\ndef shift():\n    return 1.0\n")},
	"top/a/__init__.py":   {Data: []byte("from ._C import *\n")},
	"top/a/all.py":        {Data: []byte("import numpy as np\nfrom common import *\nfrom helper import *\nSIZE = 4\n")},
	"top/a/helper.py":     {Data: []byte("import torch\nfrom ..common import SIZE\nfrom .circle import other\ndef twice(x):\n    return torch.add(x, x)\n")},
	"top/a/circle.py":     {Data: []byte("import helper\nother = 1\n")},
	"top/a/conftest.py":   {Data: []byte("import pytest\n@pytest.fixture\ndef shift():\n    return 2.0\n")},
	"top/a/broken.py":     {Data: []byte("x = = 1\n")},
	"top/a/cannot.py":     {Data: []byte("import torch\ndef f(x):\n    import requests\n    return requests.get(x)\n")},
	"top/a/sized.py":      {Data: []byte("class Base:\n    def size(self):\n        return self.width\n\nclass Sized(Base):\n    @property\n    def height(self):\n        return 3\n\nSIZED = Sized()\n")},
	"elsewhere/secret.py": {Data: []byte("x = 1\n")},
}

// TestModulesBesideTests: a test file imports modules that lie beside it or above, and has
// the fixtures of the conftest.py files there.
func TestModulesBesideTests(t *testing.T) {
	for name, c := range map[string]struct{ top, body, want string }{
		"from":        {"from helper import twice", "return twice(x)", "torch.add"},
		"as":          {"from helper import twice as t", "return t(x)", "torch.add"},
		"module":      {"import helper", "return helper.twice(x)", "torch.add"},
		"module as":   {"import common as c", "return c.act(x)", "torch.relu operator.mul"},
		"everything":  {"from common import *", "return act(x) + SIZE", "torch.relu operator.mul operator.add"},
		"handed on":   {"from all import *", "return act(twice(x)) + SIZE if np.pi > 3 else x", "torch.add torch.relu operator.mul operator.add"},
		"relative":    {"from .helper import twice", "return twice(x)", "torch.add"},
		"above":       {"from ..common import act", "return act(x)", "torch.relu operator.mul"},
		"of package":  {"from . import helper", "return helper.twice(x)", "torch.add"},
		"from above":  {"from a.helper import twice", "return twice(x)", "torch.add"},
		"a property":  {"from sized import Sized", "return x.repeat(Sized().height, 1)", "Tensor.repeat"},
		"of the top":  {"from sized import SIZED", "return x.repeat(SIZED.height, 1)", "Tensor.repeat"},
		"derived":     {"from sized import Base\nclass Own(Base):\n    @property\n    def width(self):\n        return 4\n", "return x.repeat(Own().size(), 1)", "Tensor.repeat"},
		"dotted":      {"import a.helper, a.all", "return a.helper.twice(x) + a.all.SIZE", "torch.add operator.add"},
		"deep":        {"import top.a.helper", "return top.a.helper.twice(x)", "torch.add"},
		"dotted, not": {"import a.nowhere", "return a.nowhere.f(x)", "a is not available in test files"},
		"a fork":      {"from mine.testing import random, autotest, torch as t", "return t.relu(x) + random(1, 2).to(int)", "torch.relu operator.add"},
		"no fork":     {"from mine.testing import random", "return x + random(1, 2).to(int)", "mine is not available in test files"},
		"within":      {"", "from helper import twice\n    return twice(x)", "torch.add"},
		"class":       {"from common import Layer", "return Layer()(x)", "torch.tanh"},
		"hidden":      {"from common import *", "return x + _hidden", "undefined: _hidden"},
		"no name":     {"from helper import thrice", "return x", "helper has no name thrice"},
		"broken":      {"from broken import f", "return f(x)", "broken is not available in test files"},
		"lacking":     {"from cannot import f", "return f(x)", "requests is not available in test files"},
		"not there":   {"from nowhere import f", "return f(x)", "nowhere is not available in test files"},
		"a package":   {"import a", "return a.f(x)", "a is not available in test files"},
		"other place": {"from secret import x as f", "return f(x)", "secret is not available in test files"},
	} {
		src := c.top + "\n@autotest(n=1)\ndef test_it():\n    x = random_tensor(ndim=1)\n    " + c.body + "\n"
		if got := drawnBeside(src); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// drawnBeside are the calls of the first test of top/a/test_it.py, or what is wrong.
func drawnBeside(src string) string {
	f, err := LoadBeside("top/a/test_it.py", []byte(src), func(path string) ([]byte, error) { return fs.ReadFile(besideTests, path) })
	if err != nil {
		return err.Error()
	}
	p, err := f.Tests()[0].Draw(choice.New(1), nativeEnv())
	if err != nil {
		return err.Error()
	}
	var calls []string
	for _, call := range p.Calls {
		calls = append(calls, call.Target)
	}
	return strings.Join(calls, " ")
}

// TestFixturesOfConftest: those of the nearest conftest.py go first, the file's own before
// all; a parameter makes a test of each.
func TestFixturesOfConftest(t *testing.T) {
	read := func(path string) ([]byte, error) { return fs.ReadFile(besideTests, path) }
	f, err := LoadBeside("top/a/test_it.py", []byte("import torch\ndef test_it(width, shift):\n    x = torch.full((width,), shift)\n    assert x.shape[0] == width\n"), read)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, test := range f.Tests() {
		p, err := test.Draw(choice.New(1), nativeEnv())
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprint(test.Name, " ", p.Calls[0].Target, p.Calls[0].Args))
	}
	if len(names) != 2 || !strings.Contains(names[0], "test_it[2]") || !strings.Contains(names[1], "test_it[5]") || !strings.Contains(names[0], "2") {
		t.Errorf("%q", names)
	}
	wrong := func(path string) ([]byte, error) {
		if path == "top/conftest.py" {
			return []byte("\nx = = 1\n"), nil
		}
		return fs.ReadFile(besideTests, path)
	}
	if f, err := LoadBeside("top/a/test_it.py", []byte("def test_it(shift):\n    pass\n"), wrong); err != nil || len(f.Notes) != 1 || !strings.Contains(f.Notes[0].Text, "fixtures are not taken: top/conftest.py:2:") || len(f.Tests()) != 1 {
		t.Errorf("%+v, %v", f.Notes, err)
	}
	if got := strings.Join(f.Imports(), " "); got != "top/a/conftest.py top/conftest.py" {
		t.Error(got)
	}
}

// TestOptionsOfConftest: an option has the default that the nearest conftest.py gives it; the
// device of PyTorch's kit goes before a fixture of its name, and attributes of a class hold
// in its fixtures and tests.
func TestOptionsOfConftest(t *testing.T) {
	files := fstest.MapFS{
		"top/conftest.py": {Data: []byte("import pytest\ndef pytest_addoption(parser):\n    parser.addoption('--wide-n', type=int, default=3)\n    parser.getgroup('g').addoption('--fast', action='store_true')\n" +
			"@pytest.fixture\ndef width(request):\n    return request.config.getoption('--wide-n') + request.config.getoption('fast') + request.config.getoption('none', 10)\n@pytest.fixture\ndef device():\n    return 'nowhere'\n")},
	}
	read := func(path string) ([]byte, error) { return fs.ReadFile(files, path) }
	f, err := LoadBeside("top/test_it.py", []byte(`import torch, unittest
from parameterized import parameterized_class
from torch.testing._internal.common_device_type import instantiate_device_type_tests
def test_width(width, monkeypatch, caplog):
    monkeypatch.setenv("A", "1")
    with caplog.at_level(10):
        torch.zeros(width)
@parameterized_class([{"n": 4}])
class TestIt(unittest.TestCase):
    def setUp(self):
        self.m = self.n + 1
    def test_n(self, device):
        torch.zeros(self.n, self.m, device=device)
def test_lacks(caplog):
    assert not caplog.records
`), read)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range f.Tests() {
		p, err := test.Draw(choice.New(1), nativeEnv())
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, fmt.Sprint(test.Name, " ", p.Calls[0].Target, p.Calls[0].Args, p.Calls[0].Kwargs))
	}
	want := "top/test_it.py::test_width torch.zeros[13] []; top/test_it.py::TestIt_0::test_n torch.zeros[4 5] [{device cpu}]; top/test_it.py:15:16: caplog.records is not supported: caplog is not available in test files, which are run without Python"
	if all := strings.Join(got, "; "); all != want {
		t.Errorf("got %s", all)
	}
}
