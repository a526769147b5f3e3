package script

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/internal/draw/choice"
)

// TestParametrize: ids and their order are those of pytest 8.
func TestParametrize(t *testing.T) {
	f := load(t, `
import pytest

@pytest.mark.parametrize("y", [2, 3])
@pytest.mark.parametrize("x", [0.5, None])
def test_product(x, y): assert torch.ones(y).dim() == 1

@pytest.mark.slow
@pytest.mark.parametrize("shape, mode", [((2, 2), "sum"), pytest.param([3], "mean", id="line"), pytest.param((1,), "none", marks=[pytest.mark.skip(reason="later")])])
@autotest(n=2)
def test_shapes(shape, mode): return torch.relu(random_tensor(len(shape)))

class TestC:
    @pytest.mark.parametrize(argnames=("a", "b"), argvalues=zip([1, 2], [True, False]), ids=["one", None])
    def test_self(self, a, b): assert torch.ones(a).dim() == 1

@pytest.mark.parametrize("f", [torch.relu, torch.nn.Tanh, test_product, torch.float64])
def test_named(f): assert torch.ones(1).dim() == 1

@pytest.mark.skipif(2 > 1, reason="more")
def test_left_out(): pass

@pytest.mark.skipif(2 < 1, reason="less")
def test_taken(): torch.ones(1)

@pytest.mark.parametrize("z", [1])
def test_other(x): pass

@pytest.mark.parametrize("x, y", [1])
@autotest()
def test_few(x, y): pass
`)
	var got []string
	for _, test := range f.Tests() {
		line := strings.TrimPrefix(test.Name, "t.py::")
		if test.Skip != "" {
			line += " skipped: " + test.Skip
		}
		if test.wrong != nil {
			line += " wrong: " + test.wrong.Error()
		}
		got = append(got, line)
	}
	want := `test_product[0.5-2]
test_product[0.5-3]
test_product[None-2]
test_product[None-3]
test_shapes[shape0-sum]
test_shapes[line]
test_shapes[shape2-none] skipped: later
TestC::test_self[one]
TestC::test_self[2-False]
test_named[relu]
test_named[Tanh]
test_named[test_product]
test_named[f3]
test_left_out skipped: more
test_taken
test_other[1] wrong: test_other has no argument "z", which pytest.mark.parametrize gives
test_few wrong: pytest.mark.parametrize: argvalues[0] has not 2 values: x, y`
	if got := strings.Join(got, "\n"); got != want {
		t.Errorf("tests are\n%s\nwant\n%s", got, want)
	}
}

// TestAssertClose: the tolerances are those of torch.testing.assert_close.
func TestAssertClose(t *testing.T) {
	for call, holds := range map[string]bool{
		"f32(1), f32(1.000001)":                        true,
		"f32(1), f32(1.0001)":                          false,
		"f32(1), f32(1.0001), rtol=1e-3, atol=0":       true,
		"f32(1), f32(1.0001), rtol=None, atol=None":    false,
		"f32(1), np.array([1.0])":                      false,
		"f32(1), np.array([1.0]), check_dtype=False":   true,
		"f32(1, 1), f32(1)":                            false,
		"f32(math.nan), f32(math.nan)":                 false,
		"f32(math.nan), f32(math.nan), equal_nan=True": true,
		"[f32(1), f32(2)], (f32(1), f32(2))":           true,
		"[f32(1)], [f32(1), f32(2)]":                   false,
		"np.array([3]), np.array([4]), atol=0":         false,
	} {
		test := loadTest(t, "import math, numpy as np, torch\nf32 = lambda *v: np.array(v, dtype=np.float32)\n"+body("torch.testing.assert_close("+call+")\nreturn torch.relu(random_tensor())"))
		_, err := test.Draw(choice.New(1), nativeEnv())
		if holds != (err == nil) || err != nil && !strings.Contains(err.Error(), "assertion failed") {
			t.Errorf("assert_close(%s): %v", call, err)
		}
	}
}

// TestFixtures: a test's arguments are what the fixtures of their names return
// or yield; their params make tests, with pytest's ids.
func TestFixtures(t *testing.T) {
	f, err := Load("t.py", []byte(`import pytest
import torch

log = []

@pytest.fixture
def device():
    return "cpu"

@pytest.fixture(params=[torch.float32, torch.float64], ids=["a", "b"])
def dtype(request):
    return request.param

@pytest.fixture(params=[(1, 2), (3,)])
def shape(request):
    return request.param

@pytest.fixture
def weights(device, dtype):
    yield torch.ones(2, 3, dtype=dtype)
    torch.neg(torch.zeros(1))

@pytest.mark.parametrize("n", [1, 2])
def test_linear(weights, n, dtype):
    torch.add(weights, torch.full((n, 1), 2, dtype=dtype))

def test_shape(shape):
    torch.zeros(shape)

class TestIn:
    @pytest.fixture(autouse=True)
    def prepare(self):
        self.k = 3

    def test_k(self, device):
        assert device == "cpu"
        torch.ones(self.k)
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range f.Tests() {
		p, err := test.Draw(choice.New(1), Env{Signatures: tableSigs{}})
		if err != nil {
			t.Fatalf("%s: %v", test.Name, err)
		}
		var targets []string
		for _, c := range p.Calls {
			targets = append(targets, strings.TrimPrefix(c.Target, "torch."))
		}
		got = append(got, strings.TrimPrefix(test.Name, "t.py::")+" "+strings.Join(targets, " "))
	}
	want := []string{ // as pytest 8 names and orders them
		"test_linear[a-1] ones full add zeros neg", "test_linear[a-2] ones full add zeros neg", "test_linear[b-1] ones full add zeros neg", "test_linear[b-2] ones full add zeros neg",
		"test_shape[shape0] zeros", "test_shape[shape1] zeros", "TestIn::test_k ones",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
