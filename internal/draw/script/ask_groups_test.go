package script

import (
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

// countingObserver notes how many calls it is asked to run.
type countingObserver struct {
	nativeObserver
	calls *[]int
}

func (o countingObserver) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	*o.calls = append(*o.calls, len(p.Calls))
	return o.nativeObserver.Observe(p, refs...)
}

// TestAskedWithWhatDecides: a value is asked for with the calls that can decide it,
// what changes it through a view too, and with those whose draws come before.
func TestAskedWithWhatDecides(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []int
	}{
		"apart":     {"a = torch.ones(3).exp()\nb = torch.zeros(3).cos()\nassert b.sum().item() == 3\nreturn a", []int{3}},
		"a view":    {"a = torch.zeros(3)\nv = a[0:2]\nb = torch.ones(3)\nv.fill_(2)\nassert a.sum().item() == 4 and b.sum().item() == 3\nreturn a", []int{4, 2}},
		"backward":  {"x = torch.ones(3, requires_grad=True)\nb = torch.ones(3)\ny = (x * 2).sum()\ny.backward()\nassert x.grad.sum().item() == 6\nreturn b", []int{6}},
		"draws":     {"p = torch.full((64,), 0.5)\ntorch.manual_seed(3)\na = torch.bernoulli(p)\nb = torch.bernoulli(p)\nc = torch.ones(3)\ntorch.manual_seed(3)\nd = torch.bernoulli(p)\nassert a.tolist() == d.tolist() and a.tolist() != b.tolist()\nreturn c", []int{6, 6, 6}},
		"dropout":   {"m = torch.nn.Dropout(0.5)\na = m(torch.ones(64))\nb = torch.ones(3)\nassert b.sum().item() == 3\nreturn a", []int{5}},
		"one calm":  {"m = torch.nn.ReLU()\na = m(torch.ones(64))\nb = torch.ones(3)\nassert b.sum().item() == 3\nreturn a", []int{3}},
		"of a part": {"w = torch.ones(3)\nm = torch.nn.CrossEntropyLoss(weight=w)\nb = torch.ones(3)\nassert b.sum().item() == 3\nreturn m(torch.ones(2, 3), torch.tensor([0, 1]))", []int{4}},
	} {
		f := load(t, "import torch\n"+body(test.body))
		var calls []int
		o := countingObserver{nativeObserver{native.New(ops.Table(), nn.Modules())}, &calls}
		if _, err := f.Tests()[0].Draw(choice.New(3), Env{Signatures: tableSigs{}, Observer: o}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(calls) != len(test.want) {
			t.Errorf("%s: asked with %v calls, want %v", name, calls, test.want)
			continue
		}
		for i := range calls {
			if calls[i] != test.want[i] {
				t.Errorf("%s: asked with %v calls, want %v", name, calls, test.want)
				break
			}
		}
	}
}

// TestEmptyTurns: a decorated function that returns at once leaves its case to the next.
func TestEmptyTurns(t *testing.T) {
	f := load(t, "import torch\n@autotest(n=1)\ndef _test_x(test_case, i):\n    if i % 2 == 0:\n        return\n    return torch.relu(random_tensor(1, i))\n\n@globaltest\ndef test_all(test_case):\n    for i in range(4):\n        _test_x(test_case, i)\n")
	for _, test := range f.Tests() {
		for i := range 4 {
			p, err := test.Draw(choice.New(uint64(i)), Env{Signatures: toySigs, Index: i})
			if err != nil || len(p.Calls) != 1 {
				t.Errorf("%s, case %d: %v\n%s", test.Name, i, err, p)
			}
		}
	}
}
