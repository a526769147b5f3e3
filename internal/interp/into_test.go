package interp

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/ops"
)

// TestOut: what out names has the result, its views too, and is what the call gives; the values
// and the messages are PyTorch's.
func TestOut(t *testing.T) {
	head := "x = tensor((2,), torch.float32, [1.0, 2.0])\ne = torch.zeros(4)\n"
	for lines, want := range map[string][]float64{
		"f = e[1:3]\nr = torch.add(x, 1, out=f)\ny = e * 2":        {0, 4, 6, 0},
		"f = e[1:3]\nr = torch.add(x, 1, out=f)\ny = r.mul_(3)":    {6, 9},
		"f = e[1:3]\nr = torch.cat([x], out=f)\nv = f.add_(1)":     {2, 3},
		"r = torch.mul(e, 0, out=e)\ny = torch.cat([x, x], out=e)": {1, 2, 1, 2},
	} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, head+lines)))
		if out.Status != backend.OK {
			t.Errorf("%s: %s: %s", lines, out.Status, out.Message)
			continue
		}
		if y := out.Values[len(out.Values)-1].Tensor; !slices.Equal(floats(y), want) {
			t.Errorf("%s: got %v, want %v", lines, y, want)
		}
	}
	for lines, says := range map[string]string{
		"r = torch.add(x, 1, out=e)":                                     "out of another shape",
		"f = torch.zeros(2, dtype=torch.float64)\nr = x.add(1, out=f)":   "out of another shape or dtype",
		"w = x.requires_grad_()\nf = torch.zeros(2)\nr = w.exp(out=f)":   "exp(): functions with out=... arguments don't support automatic differentiation",
		"f = torch.zeros(2)\ng = torch.zeros(2)\nr = x.max(0, out=(f,))": "argument 'out' is not supported",
	} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, head+lines)))
		if out.Status == backend.OK || !strings.Contains(out.Message, says) {
			t.Errorf("%s: %s: %s", lines, out.Status, out.Message)
		}
	}
}
