package interp

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/ops"
)

// TestCreatedLeaves: a tensor that is made with requires_grad=True is a leaf,
// whose gradient is an outcome.
func TestCreatedLeaves(t *testing.T) {
	out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, "x = tensor((2,), torch.float32, [3.0, 4.0])\ny = torch.ones(2, requires_grad=True)\nz = torch.full_like(x, 2.0, requires_grad=True)\nr = torch.randn(2, requires_grad=True)\np = x * y\nq = p * z\ns = q + r\nt = s.sum()\nb = t.backward()")))
	if out.Status != backend.OK {
		t.Fatalf("%s: %s", out.Status, out.Message)
	}
	for name, want := range map[string][]float64{"y": {6, 8}, "z": {3, 4}, "r": {1, 1}} {
		if g := out.Grad(name); g == nil || !slices.Equal(floats(g), want) {
			t.Errorf("the gradient of %s is %v, want %v", name, g, want)
		}
	}
	out = outcomeOf(t, ops.Table(), backend.NewJob(text(t, "y = torch.ones(2, dtype=torch.int64, requires_grad=True)")))
	if out.Status != backend.Raised || !strings.Contains(out.Message, "Only Tensors of floating point and complex dtype can require gradients") {
		t.Errorf("%s: %s", out.Status, out.Message)
	}
}
