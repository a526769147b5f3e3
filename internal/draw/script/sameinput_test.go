package script

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
	"plumb/tensor"
)

// TestDrawsAreData: what a test draws and computes with is an input, the same on both sides;
// what it draws alone is a call, whose law is judged.
func TestDrawsAreData(t *testing.T) {
	for name, test := range map[string]struct {
		body   string
		inputs []string // how the text of each goes on behind its name
		calls  string   // targets
	}{
		"read":               {"return torch.exp(torch.randn(2, 3))", []string{"tensor((2, 3), torch.float32, normal(0.0, 1.0, key="}, "torch.exp"},
		"alone":              {"return torch.randn(2, 3)", nil, "torch.randn"},
		"two, one alone":     {"a, b = torch.rand(2), torch.rand(2)\nreturn b, torch.exp(a)", []string{"tensor((2,), torch.float32, uniform("}, "torch.rand torch.exp"},
		"leaf":               {"x = torch.rand(3, dtype=torch.float64, requires_grad=True)\nreturn x * 2", []string{"tensor((3,), torch.float64, uniform(0.0, 1.0, key="}, "operator.mul"},
		"integers":           {"return torch.randint(5, (4,)) + 1", []string{"tensor((4,), torch.int64, integer(0.0, 5.0, key="}, "operator.add"},
		"permutation":        {"x = torch.ones(3)\nreturn x[torch.randperm(3)]", []string{"tensor((3,), torch.int64, ["}, "torch.ones operator.getitem"},
		"like":               {"x = torch.ones(3, dtype=torch.float16)\nreturn torch.randn_like(x) + x", []string{"tensor((3,), torch.float16, normal("}, "torch.ones operator.add"},
		"normal":             {"return -torch.normal(2.0, 0.5, (3,))", []string{"tensor((3,), torch.float32, normal(2.0, 0.5, key="}, "operator.neg"},
		"filled":             {"return torch.exp(torch.empty(3).uniform_(-1, 1))", []string{"tensor((3,), torch.float32, normal(0.0, 1.0, key=", "tensor((3,), torch.float32, uniform(-1.0, 1.0, key="}, "Tensor.copy_ torch.exp"},
		"coins":              {"return torch.empty(3).bernoulli_(0.25) * 2", []string{"tensor((3,), torch.float32, normal(0.0, 1.0, key=", "tensor((3,), torch.float32, integer(1.0, 2.0, key="}, "Tensor.copy_ operator.mul"},
		"filled alone":       {"return torch.empty(3).uniform_(-1, 1)", []string{"tensor((3,), torch.float32, normal("}, "Tensor.uniform_"},
		"filled parameter":   {"m = torch.nn.Linear(2, 3)\ntorch.nn.init.normal_(m.weight, 0, 0.02)\nreturn m.weight", []string{"tensor((3, 2), torch.float32, normal(0.0, 0.02, key="}, "torch.nn.Linear getattr Tensor.copy_ getattr"},
		"filled result":      {"x = torch.ones(3) * 2\nreturn x.normal_()", nil, "torch.ones operator.mul Tensor.normal_"},
		"filled part":        {"x = torch.ones(3)\nx[1:].normal_()\nreturn x", []string{"tensor((2,), torch.float32, normal("}, "torch.ones operator.getitem Tensor.copy_"},
		"that may be raised": {"try:\n    x = torch.rand(2)\nexcept RuntimeError:\n    x = torch.ones(2)\nreturn x * 2", []string{"tensor((2,), torch.float32, uniform("}, "operator.mul"},
		"out":                {"x = torch.empty(3)\ntorch.randn(3, out=x)\nreturn x + 1", []string{"tensor((3,), torch.float32, normal("}, "torch.randn operator.add"},
		"new memory":         {"x = torch.empty(2, 3)\nfor i in range(2):\n    x[i] = i\nreturn x * 2", []string{"tensor((2, 3), torch.float32, normal(0.0, 1.0, key="}, "operator.setitem operator.setitem operator.mul"},
		"memory alone":       {"return torch.empty(2, 3), torch.ones(2)", nil, "torch.empty torch.ones"},
		"out of integers":    {"n, x = torch.empty(3, dtype=torch.int64), torch.ones(3).long()\ntorch.add(x, 1, out=n)\nreturn n * 2", []string{"tensor((3,), torch.int64, integer(0.0, 8.0, key="}, "torch.ones Tensor.long torch.add operator.mul"},
		"of other tensors":   {"x = torch.ones(3)\nreturn torch.normal(x, x) + 1", nil, "torch.ones torch.normal operator.add"},
	} {
		f := load(t, "import torch\n"+body(test.body))
		p, err := f.Tests()[0].Draw(choice.New(3), Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var calls []string
		for _, c := range p.Calls {
			calls = append(calls, c.Target)
		}
		text, n := p.String(), 0
		for _, want := range test.inputs {
			if strings.Contains(text, " = "+want) {
				n++
			}
		}
		if n != len(test.inputs) || len(p.Inputs) != n || strings.Join(calls, " ") != test.calls {
			t.Errorf("%s: want the inputs %q and the calls %s in\n%s", name, test.inputs, test.calls, text)
		}
		if name == "leaf" && !p.Inputs[0].RequiresGrad {
			t.Error("it requires no gradient")
		}
	}
}

// TestDataFollowsSeeds: after one seed the same data, and after a state that was saved.
func TestDataFollowsSeeds(t *testing.T) {
	f := load(t, "import torch\n"+body(`torch.manual_seed(3)
a, b = torch.rand(4), torch.rand(4)
state = torch.get_rng_state()
c = torch.rand(4)
torch.set_rng_state(state)
d = torch.rand(4)
torch.manual_seed(3)
e = torch.rand(4)
g = torch.Generator().manual_seed(3)
h = torch.rand(4, generator=g)
return a + b + c + d + e + h`))
	var before []uint64
	for seed := range uint64(2) {
		p, err := f.Tests()[0].Draw(choice.New(seed), Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}})
		if err != nil {
			t.Fatal(err)
		}
		var keys []uint64
		for i := range p.Inputs {
			keys = append(keys, p.Inputs[i].Fill.Key)
		}
		if len(keys) != 6 || keys[0] != keys[4] || keys[0] != keys[5] || keys[2] != keys[3] || keys[0] == keys[1] || keys[1] == keys[2] {
			t.Errorf("keys %v", keys)
		}
		if slices.Equal(keys, before) {
			t.Error("all cases have the same data")
		}
		before = keys
	}
}

// TestDataOfTheRunsDType: a run's dtype is that of random tensors and modules, not of what a
// test makes itself, as torch.zeros beside its torch.randn.
func TestDataOfTheRunsDType(t *testing.T) {
	f := load(t, "import torch\n"+body("return torch.randn(2) + torch.rand(2, dtype=torch.float32) + torch.randint(3, (2,))"))
	env := Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}, Float: tensor.F64}
	p, err := f.Tests()[0].Draw(choice.New(1), env)
	if err != nil {
		t.Fatal(err)
	}
	var got []tensor.DType
	for _, in := range p.Inputs {
		got = append(got, in.DType)
	}
	if !slices.Equal(got, []tensor.DType{tensor.F32, tensor.F32, tensor.I64}) {
		t.Errorf("%v\n%s", got, p)
	}
}

// TestDataAtTheTop: what the file draws outside of a test, and hands to it, is data of the case.
func TestDataAtTheTop(t *testing.T) {
	src := `import pytest
import torch
X = torch.randn(3)
Y = [torch.randn_like(X), torch.empty(2).uniform_()]
@pytest.mark.parametrize("p", [torch.rand(4), Y[0]])
def test_it(p):
    return torch.exp(p) + torch.exp(X).sum() + torch.exp(Y[1]).sum()
`
	f := load(t, src)
	for _, test := range f.Tests() {
		p, err := test.Draw(choice.New(3), Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}})
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]bool{}
		for i := range p.Calls {
			for _, r := range refsOf(&p.Calls[i]) {
				read[string(r)] = true
			}
		}
		for _, c := range p.Calls {
			if read[c.Result] && (c.Target == "torch.rand" || c.Target == "torch.randn" || c.Target == "torch.randn_like" || c.Target == "Tensor.uniform_") {
				t.Errorf("%s stays a call\n%s", c.Target, p)
			}
		}
		if len(p.Inputs) < 3 {
			t.Errorf("%d inputs\n%s", len(p.Inputs), p)
		}
	}
}
