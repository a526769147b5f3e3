package program

import (
	"strings"
	"testing"
)

const scoped = Header + `
import operator, torch
from plumb import case, integer, tensor, uniform

case("t.py::test_scopes", seed=1, raises=True)
x = tensor((2,), torch.float32, uniform(-1.0, 1.0, key=2), requires_grad=True)
with torch.no_grad():
    v = torch.relu(x)
    with torch.enable_grad():
        v2 = v * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        v3 = v2 @ v2
with torch.no_grad():
    v4 = x.sum()
v5 = v4.backward()
v6 = x.grad
v7 = setattr(x, "grad", None)
v2.backward()
`

func TestScopesReadBack(t *testing.T) {
	p, err := Parse("p", scoped)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != scoped {
		t.Errorf("got\n%s\nwant\n%s", got, scoped)
	}
	if !p.Raises || len(p.Backward) != 1 || !p.Differentiates() {
		t.Errorf("raises %v, %d backward entries", p.Raises, len(p.Backward))
	}
	want := []bool{false, true, false, false, true, true, true}
	for i := range p.Calls {
		if p.Calls[i].Grad() != want[i] {
			t.Errorf("%s: grad is %v", p.Calls[i].Result, p.Calls[i].Grad())
		}
	}
	if a, b := p.Calls[0].Scopes, p.Calls[3].Scopes; a[0] == b[0] {
		t.Error("two statements share a scope")
	}
	if a, b := p.Calls[0].Scopes, p.Calls[1].Scopes; a[0] != b[0] || len(b) != 2 {
		t.Error("one statement has two scopes")
	}
}

func TestScopesThatAreNone(t *testing.T) {
	for src, want := range map[string]string{
		"with open(\"x\"):\n    v = torch.relu(x)":    "open is not defined",
		"with torch.relu(x):\n    v = torch.relu(x)":  "with needs one of torch.no_grad",
		"with torch.no_grad()\n    v = torch.relu(x)": `expected ":"`,
		"with torch.no_grad(): v = torch.relu(x)":     `unexpected "v"`,
		"with torch.no_grad\n    v = torch.relu(x)\n": "torch.no_grad is not defined",
	} {
		_, err := Parse("p", "x = tensor((2,), torch.float32, uniform(-1.0, 1.0, key=2))\n"+src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", src, err, want)
		}
	}
}
