package script

import (
	"strings"
	"testing"

	"plumb/internal/draw/choice"
)

// TestDefaultDType: what a test makes without a dtype of floats, and its modules, are in the
// one that the top of its file has set, or the test itself.
func TestDefaultDType(t *testing.T) {
	f, err := Load("t.py", []byte(`import torch
torch.use_deterministic_algorithms(True)
torch.set_default_dtype(torch.float64)

def test_made():
    assert torch.get_default_dtype() == torch.float64
    x = torch.tensor([1.0, 2]) + torch.full((2,), 0.5) + torch.arange(2) + torch.zeros(2, dtype=None)
    torch.zeros(2, dtype=torch.float32)
    torch.tensor([1, 2])
    torch.tensor([1.0, 2j])

def test_module():
    torch.nn.Linear(2, 3)(torch.ones(1, 2))

def test_back():
    torch.set_default_dtype(torch.float32)
    torch.nn.Linear(2, 3)(torch.ones(1, 2))

def test_between():
    torch.nn.Linear(2, 3)
    torch.set_default_dtype(torch.float32)

def test_ints():
    torch.set_default_dtype(torch.int32)
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"test_made":    "torch.tensor([1.0, 2], dtype=torch.float64); torch.full((2,), 0.5, dtype=torch.float64); torch.arange(2); torch.zeros(2, dtype=torch.float64); torch.zeros(2, dtype=torch.float32); torch.tensor([1, 2]); torch.tensor([1.0, complex(0.0, 2.0)])",
		"test_module":  "dtype=torch.float64; torch.ones(1, 2, dtype=torch.float64)",
		"test_back":    "torch.ones(1, 2)",
		"test_between": "torch.set_default_dtype between modules is not supported",
		"test_ints":    "torch.set_default_dtype takes a dtype of floats, not torch.int32",
	}
	for _, test := range f.Tests() {
		name := strings.TrimPrefix(test.Name, "t.py::")
		p, err := test.Draw(choice.New(1), nativeEnv())
		text := ""
		if p != nil {
			text = p.String()
		}
		if err != nil {
			text = err.Error()
		}
		for part := range strings.SplitSeq(want[name], "; ") {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %s in\n%s", name, part, text)
			}
		}
	}
}
