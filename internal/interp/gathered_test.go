package interp

import (
	"testing"

	"plumb/backend"
	"plumb/ops"
)

// TestGradientsByTwoNames: a pass adds to a leaf's gradient in place, which all that has it by
// a name shows; to what is retained it adds anew; and what was given to a pass is not the leaf's.
func TestGradientsByTwoNames(t *testing.T) {
	const begin = "x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\n"
	for _, c := range []struct {
		calls string
		want  float64 // the first element of the last value
	}{
		{"v = x.prod()\nv2 = v.backward(retain_graph=True)\ng = x.grad\nv3 = v.backward()\nv4 = torch.add(g, 1)", 5},
		{"v = x.prod()\nv2 = v.backward(retain_graph=True)\ng = x.grad\nv3 = v.backward(retain_graph=True)\nv4 = v.backward()\nv5 = torch.add(g, 1)", 7},
		{"v = x.prod()\nv2 = v.backward(retain_graph=True)\ng = x.grad\nv3 = v.backward()\nh = x.grad\nwith torch.no_grad():\n    z = h.zero_()\nv4 = torch.add(g, 1)", 1},
		{"h = x * 1\nr = h.retain_grad()\nv = h.prod()\nv2 = v.backward(retain_graph=True)\ng = h.grad\nv3 = v.backward()\nv4 = torch.add(g, 1)", 3},
		{"o = torch.ones(2)\nv = x * 1\nv2 = v.backward(o, retain_graph=True)\nv3 = v.backward(o)\nv4 = torch.add(o, 1)", 2},
		{"v = x.sum()\nv2 = v.backward(retain_graph=True)\nh = x.grad\nwith torch.no_grad():\n    z = h.mul_(3)\nv3 = v.backward()\nv4 = torch.add(h, 1)", 5},
		{"y = torch.ones(2, requires_grad=True)\nv = x * y\nw = v.sum()\nb = w.backward(inputs=[y])\ng = y.grad\nv4 = torch.add(g, 1)", 2},
	} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, begin+c.calls)))
		if out.Status != backend.OK {
			t.Errorf("%s\n%s", c.calls, out.Message)
			continue
		}
		if got := out.Values[len(out.Values)-1].Tensor.Float(0); got != c.want {
			t.Errorf("%s\ngave %v, want %v", c.calls, got, c.want)
		}
	}
}
