package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/gen"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// load loads a file.
func load(t *testing.T, src string) *File {
	t.Helper()
	f, err := Load("t.py", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAutotestOptions(t *testing.T) {
	f := load(t, `
@autotest(n=3, seed=9, dtypes=[torch.float64, int], layouts=["non-contiguous", "expanded"], order=2, tolerance="default", special="inf", random="shape", check_graph="ValidatedFalse", refusals=True)
def test_a():
    return torch.relu(random_tensor())

@autotest(tolerance="autotest", rtol=0.5, layouts=True, special=True)
def test_b():
    return torch.relu(random_tensor())
`)
	a, b := f.Tests()[0].Options, f.Tests()[1].Options
	if a.N != 3 || *a.Seed != 9 || !slices.Equal(a.DTypes, []tensor.DType{tensor.F64, tensor.I64}) || a.Order != 2 || a.Tolerance != program.Default ||
		a.Special != program.Infs || !a.Draws || a.CheckGraph || !a.Refusals || !slices.Equal(a.Layouts, []gen.Layout{gen.Strided, gen.Transposed, gen.Expanded}) {
		t.Errorf("%+v", a)
	}
	if *b.RTol != 0.5 || *b.ATol != AutotestATol || b.Special != program.AllSpecials || len(b.Layouts) != 5 || b.Seed != nil || b.Order != 1 {
		t.Errorf("%+v", b)
	}
}

func TestOptionsReachThePrograms(t *testing.T) {
	p := drawOne(t, `
@autotest(order=2, tolerance="default", random="shape", check_allclose=False, layouts="strided")
def test_it():
    return torch.relu(random_tensor(ndim=2, dim0=3, dim1=4))
`, Env{})
	if !p.Shapes || !p.Draws || p.Tolerance != program.Default || p.Second.Dist != program.Uniform || !slices.Equal(p.Inputs[0].Strides, []int{8, 2}) {
		t.Error(p)
	}
	if q, err := program.Parse("p.py", p.String()); err != nil || q.String() != p.String() {
		t.Errorf("%v\n%s", err, p)
	}
	p = drawOne(t, body("return torch.relu(random_tensor())"), Env{Float: tensor.I32})
	if p.Inputs[0].DType != tensor.I32 || p.DType != tensor.Invalid || !p.Backward[0].Auto {
		t.Error(p)
	}
}

const drivenSource = `
@autotest(n=2, rtol=0.25, atol=0)
def _test_impl(test_case, ndim, keep):
    x = random_tensor(ndim=ndim)
    return x.sum(dim=0, keepdim=keep)

@autotest(n=3)
def _test_other(test_case):
    return torch.relu(random_tensor())

class TestIt(unittest.TestCase):
    def test_all(test_case):
        for ndim in [2, 3]:
            for keep in [True, False]:
                _test_impl(test_case, ndim, keep)
        _test_other(test_case)

    def test_nothing(test_case):
        pass
`

// TestTestsThatCallTests: a test function that calls decorated functions has
// their cases, one call after the other.
func TestTestsThatCallTests(t *testing.T) {
	f := load(t, "import unittest\n"+drivenSource)
	if len(f.Tests()) != 2 || f.Tests()[1].Name != "t.py::TestIt::test_nothing" || len(f.Notes) != 0 {
		t.Fatalf("%v %v", f.Tests(), f.Notes)
	}
	test := f.Tests()[0]
	if test.Name != "t.py::TestIt::test_all" || test.Calls != 5 || test.Options.N != 4*2+3 {
		t.Errorf("%s: %d calls, %d cases", test.Name, test.Calls, test.Options.N)
	}
	var got []string
	for i := range 6 {
		p, err := test.Draw(choice.New(uint64(i)), Env{Signatures: toySigs, Index: i})
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d %s", len(p.Inputs[0].Shape), p.Calls[0].Expr())
		if p.RTol != nil {
			line += fmt.Sprint(" ", *p.RTol)
		}
		if len(p.Calls) != 1 || len(p.Backward) != 1 {
			t.Errorf("case %d is\n%s", i, p)
		}
		got = append(got, line)
	}
	got[4] = strings.TrimLeft(got[4], "12345")
	want := []string{"2 x.sum(dim=0, keepdim=True) 0.25", "2 x.sum(dim=0, keepdim=False) 0.25", "3 x.sum(dim=0, keepdim=True) 0.25",
		"3 x.sum(dim=0, keepdim=False) 0.25", " torch.relu(x)", "2 x.sum(dim=0, keepdim=True) 0.25"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAutotestIsCalled: the decorator decorates a function that was defined before.
func TestAutotestIsCalled(t *testing.T) {
	f := load(t, `import unittest
def _test_sum(test_case, ndim):
    return random_tensor(ndim=ndim).sum()

class TestIt(unittest.TestCase):
    def test_all(test_case):
        for ndim in [1, 2]:
            autotest(n=3, rtol=0.25)(_test_sum)(test_case, ndim)
`)
	if len(f.Tests()) != 1 {
		t.Fatal(f.Tests())
	}
	test := f.Tests()[0]
	p, err := test.Draw(choice.New(1), Env{Signatures: toySigs, Index: 1})
	if err != nil || test.Calls != 2 || test.Options.N != 6 || len(p.Inputs[0].Shape) != 2 || p.RTol == nil || *p.RTol != 0.25 {
		t.Error(err, test.Calls, test.Options.N, p)
	}
}

// TestGlobalTensors: what tests of global tensors say becomes calls of to_global.
func TestGlobalTensors(t *testing.T) {
	f := load(t, `
import unittest
import oneflow as flow

@autotest(n=1)
def _test_local(test_case, placement, sbp):
    assert placement.type == "cpu" and placement.ranks.shape in ((4,), (2, 2), (2,))
    return torch.relu(random_tensor().to_global(placement, sbp))

@autotest(n=1)
def test_argument():
    p = flow.placement("cpu", ranks=[[0, 2], [1, 3]])
    return torch.zeros(2, 3, placement=p, sbp=[flow.sbp.split(1), flow.sbp.broadcast()])

@autotest(n=1)
def test_drawn():
    p = random_placement()
    return torch.relu(random_tensor(ndim=1).to_global(p, (flow.sbp.partial_sum,)))

@autotest(n=1)
def test_names():
    assert flow.sbp.split(0) == flow.sbp.split(0) and flow.sbp.split(0) != flow.sbp.broadcast
    assert flow.placement.all("cpu") == flow.placement("cpu", [0, 1, 2, 3])
    return torch.relu(random_tensor())

@autotest(n=1)
def test_local_part():
    return random_tensor().to_global(flow.placement.all("cpu"), flow.sbp.broadcast).to_local()

@autotest(n=1)
def test_asked():
    p, s = flow.placement("cpu", [0, 1]), (flow.sbp.split(0),)
    x = random_tensor(ndim=1)
    assert not x.is_global and x.is_local and flow.env.get_rank() == 0
    y = x.to_global(p, s)
    assert y.is_global and y.placement == p and y.sbp == s and len(p.ranks) == 2
    z = torch.relu(y).to_global(sbp=flow.sbp.split(0), grad_sbp=[flow.sbp.partial_sum])
    assert z.placement == p and z.detach().sbp == s and not z.to_local().is_global
    assert torch.zeros(4, placement=p, sbp=s, requires_grad=True).sbp == s
    return z

@autotest(n=1)
def test_refused():
    return random_tensor().to_global(sbp=flow.sbp.broadcast)

@flow.unittest.skip_unless_1n2d()
class TestOnRanks(unittest.TestCase):
    @globaltest
    def test_ranks(test_case):
        _test_local(test_case, flow.placement("cpu", [0, 1]), flow.sbp.split(0))

class TestIt(unittest.TestCase):
    @globaltest
    def test_loops(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2):
                _test_local(test_case, placement, sbp)
`)
	want := map[string]string{
		"test_argument":   `v.to_global(placement="cpu[[0, 2], [1, 3]]", sbp="[S(1), B]")`,
		"test_drawn":      `, sbp="P")`,
		"test_names":      "torch.relu(x)",
		"test_local_part": `v.to_local(placement="cpu[0, 1, 2, 3]", sbp="B", rank=0)`,
		"test_asked":      `to_global(sbp="S(0)", grad_sbp="P")`,
		"test_loops":      `x.to_global(placement="cpu[0, 1, 2, 3]", sbp="S(0)")`,
	}
	for _, test := range f.Tests() {
		name := test.Name[strings.LastIndexByte(test.Name, ':')+1:]
		c, err := test.Draw(choice.New(1), Env{Signatures: toySigs})
		if name == "test_refused" {
			if err == nil || !strings.Contains(err.Error(), "must have placement and sbp parameters") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := c.String(); !strings.Contains(text, want[name]) {
			t.Errorf("%s: no %s in\n%s", name, want[name], text)
		}
	}
	for _, test := range f.Tests() {
		if test.Skip != "" {
			t.Errorf("%s is skipped: %s", test.Name, test.Skip)
		}
		if strings.HasSuffix(test.Name, "test_loops") && test.Calls != 4+16 {
			t.Errorf("%s makes %d calls, want 4 signatures of [4] and 16 of [2 2]", test.Name, test.Calls)
		}
	}
}

func TestProfilesAreListedAndSkipped(t *testing.T) {
	f := load(t, "@profile(torch.relu)\ndef profile_relu(test_case):\n    torch.relu(torch.ones(3))\n")
	if len(f.Tests()) != 1 || f.Tests()[0].Name != "t.py::profile_relu" || !strings.Contains(f.Tests()[0].Skip, "plumb profile") {
		t.Errorf("%+v", f.Tests())
	}
}

func TestVocabularyOfGenerators(t *testing.T) {
	for lines, want := range map[string]string{
		"x = random_pytorch_tensor(ndim=1)\nreturn torch.add(x, x)":                                                                     "v = torch.add(x, x)",
		"x = choice_tensor(3, size=(2, 2), dtype=float, requires_grad=True)\nreturn torch.relu(x)":                                      "v = torch.relu(x)",
		"x = choice_pytorch_tensor([1.5, -2], size=3, replace=True)\nreturn torch.relu(x)":                                              "v = torch.relu(x)",
		"x = random_tensor(dtype=random_pytorch_dtype(['half']), pin_memory=False)\nreturn torch.relu(x)":                               "v = torch.relu(x)",
		"x = random_tensor(ndim=2)\nreturn torch.relu(x.permute(0, 1) if random_cpu_placement().value().type == 'cpu' else x)":          "v = x.permute(0, 1)\nv2 = torch.relu(v)",
		"x = random_tensor(layout=oneof('strided', 'strided'))\nreturn torch.relu(x)":                                                   "v = torch.relu(x)",
		"x = random_tensor()\nk = random(2, 3).to(_size_3_opt_t_not_none).value()\nreturn torch.relu(x)":                                "v = torch.relu(x)",
		"x = random_tensor()\nk = random(2, 3).to(_size_any_t).value(), random(2, 3).to(_size_any_opt_t).value()\nreturn torch.relu(x)": "v = torch.relu(x)",
	} {
		for key := range uint64(10) {
			p, err := loadTest(t, body(lines)).Draw(choice.New(key), Env{Signatures: toySigs})
			if err != nil {
				t.Errorf("%s: %v", lines, err)
				break
			}
			got, _, _ := strings.Cut(calls(p), "\nbackward")
			if err := p.Validate(); err != nil || got != want {
				t.Errorf("%s: %v\n got %s\nwant %s", lines, err, got, want)
			}
		}
	}
}

// TestLaterDefinitionsReplaceEarlier: as in Python, the last function of a name
// is the one that there is, and a note tells of the first.
func TestLaterDefinitionsReplaceEarlier(t *testing.T) {
	f := load(t, `
@autotest()
def _impl(test_case, k):
    return torch.relu(random_tensor())

@autotest(n=7)
def _impl(test_case, k):
    return torch.nn.functional.leaky_relu(random_tensor())

class TestA:
    @autotest()
    def test_x(self):
        return torch.relu(random_tensor())

    def test_driver(self):
        pass

    @autotest(n=3)
    def test_x(self):
        return torch.nn.functional.leaky_relu(random_tensor())

    def test_driver(self):
        _impl(self, 1)

class TestB:
    @autotest()
    def test_gone(self):
        return torch.relu(random_tensor())

class TestB:
    @autotest()
    def test_there(self):
        return torch.relu(random_tensor())
`)
	var got []string
	for _, test := range f.Tests() {
		p, err := test.Draw(choice.New(1), Env{Signatures: toySigs})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d %s", test.Name, test.Options.N, p.Calls[0].Target))
	}
	for _, n := range f.Notes {
		got = append(got, fmt.Sprintf("%d: %s", n.Line, n.Text))
	}
	want := []string{
		"t.py::TestA::test_x 3 torch.nn.functional.leaky_relu", "t.py::TestA::test_driver 7 torch.nn.functional.leaky_relu", "t.py::TestB::test_there 20 torch.relu",
		"7: _impl takes the place of the one at line 3", "19: test_x takes the place of the one at line 12",
		"22: test_driver takes the place of the one at line 15", "30: TestB takes the place of the one at line 25",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAMistakeCostsItsOwnTest: the other tests of the file run.
func TestAMistakeCostsItsOwnTest(t *testing.T) {
	for src, want := range map[string]string{
		"@autotest(rtoll=1)\ndef test_x(test_case):\n    pass\n":                        "t.py:1:11: autotest: unknown keyword argument 'rtoll'",
		"@autotest(n=times)\ndef test_x(test_case):\n    pass\n":                        "t.py:1:13: undefined: times",
		"@unittest.skipIf(undefined_flag, '')\n@autotest()\ndef test_x(a):\n    pass\n": "t.py:1:2: undefined: unittest",
		"@autotest()\ndef test_x(a, b):\n    pass\n":                                    "t.py:2:1: test_x must have one parameter",
		"@autotest()\ndef test_x():\n    return torch.relu(nobody)\n":                   "t.py:3:23: undefined: nobody",
	} {
		f := load(t, src+"@autotest()\ndef test_fine():\n    return torch.relu(random_tensor())\n")
		if len(f.Tests()) != 2 {
			t.Fatalf("%q: %d tests", src, len(f.Tests()))
		}
		_, wrong := f.Tests()[0].Draw(choice.New(1), Env{Signatures: toySigs})
		_, fine := f.Tests()[1].Draw(choice.New(1), Env{Signatures: toySigs})
		var e *Error
		if !errors.As(wrong, &e) || e.Unsupported || !strings.HasPrefix(wrong.Error(), want) || fine != nil {
			t.Errorf("%q: %v, want %s; the other test: %v", src, wrong, want, fine)
		}
	}
}

// TestATestThatDrawsNothing runs as it is.
func TestATestThatDrawsNothing(t *testing.T) {
	p := drawOne(t, body("x = torch.ones(2, 3)\nreturn torch.relu(x)"), Env{})
	if len(p.Inputs) != 0 || len(p.Calls) != 2 || len(p.Backward) != 1 {
		t.Error(p)
	}
}

// TestPlainTestsRunOnce: a test without @autotest is one program, with its
// assertions about the reference.
func TestPlainTestsRunOnce(t *testing.T) {
	f := load(t, `
import unittest
import numpy as np
import oneflow as flow

def _test_relu(test_case, shape, device):
    a = np.random.randn(*shape).astype(np.float32)
    x = flow.tensor(a, device=flow.device(device))
    test_case.assertTrue(np.array_equal(flow.relu(x).numpy(), np.maximum(a, 0)))

class TestIt(flow.unittest.TestCase):
    def test_relu(test_case):
        for shape in [(2, 3), (4,)]:
            for device in ["cpu", "cuda"]:
                _test_relu(test_case, shape, device)

    @autotest(n=2)
    def _impl(test_case, ndim):
        return torch.relu(random_tensor(ndim=ndim))

    def test_driver(test_case):
        test_case._impl(2)
        test_case._impl(3)

def test_with_a_parameter(device):
    pass
`)
	var got []string
	for _, test := range f.Tests() {
		o := test.Options
		got = append(got, fmt.Sprintf("%s %d %t", test.Name, o.N, o.AutoBackward == NoBackward))
	}
	want := []string{"t.py::TestIt::test_relu 1 true", "t.py::TestIt::test_driver 4 false", "t.py::test_with_a_parameter 1 true"}
	if !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	o := nativeObserver{native.New(ops.Table(), nn.Modules())}
	p, err := f.Tests()[0].Draw(choice.New(1), Env{Signatures: tableSigs{}, Observer: o})
	if err != nil || len(p.Calls) != 4 || len(p.Inputs) != 4 {
		t.Errorf("%v\n%s", err, p)
	}
	p, err = f.Tests()[1].Draw(choice.New(1), Env{Signatures: tableSigs{}, Index: 1})
	if err != nil || len(p.Calls) != 1 || len(p.Inputs[0].Shape) != 3 {
		t.Errorf("%v\n%s", err, p)
	}
}

// TestADriverMayMakeFewerCalls than when the file was loaded.
func TestADriverMayMakeFewerCalls(t *testing.T) {
	test := loadTest(t, `
@autotest(n=1)
def _impl(test_case, ndim):
    return torch.relu(random_tensor(ndim=ndim))

def test_driver():
    for ndim in range(1, 1 + random(1, 6).to(int).value()):
        _impl(None, ndim)
`)
	for i := range 40 {
		p, err := test.Draw(choice.New(uint64(i)), Env{Signatures: toySigs, Index: i})
		if err != nil || len(p.Calls) != 1 {
			t.Fatalf("case %d: %v\n%s", i, err, p)
		}
	}
}
