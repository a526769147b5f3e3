package interp

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/ops"
	"plumb/tensor"
)

// TestChangesBehindAutograd: what x.data, x.detach() and a None take from or
// give to a leaf reaches the modules and the gradients; the values are PyTorch's.
func TestChangesBehindAutograd(t *testing.T) {
	x := "x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\n"
	m := x + "m = torch.nn.Linear(2, 1)\nw = m.weight\n"
	other := x + "z = tensor((2,), torch.float32, [3.0, 4.0])\no = torch.ones(1)\nq = o.add_(1)\n"
	for name, c := range map[string]struct {
		lines string
		last  []float64 // of the last call
		grad  []float64 // of x
	}{
		"data":              {x + "d = x.data\nv = d.mul_(3)\ny = x * x\ny.backward()", []float64{9, 36}, []float64{6, 12}},
		"an element":        {x + "d = x.data\nv = operator.setitem(d, 0, 7)\ny = x * x\ny.backward()", []float64{49, 4}, []float64{14, 4}},
		"a parameter":       {m + "d = w.data\nv = d.fill_(0.5)\nb = m.bias\nbd = b.data\nv2 = bd.zero_()\ny = m(x)\ny.backward()", []float64{1.5}, []float64{.5, .5}},
		"a detached view":   {m + "d = w.detach()\nv = d.fill_(0.5)\nn = setattr(m, \"bias\", None)\ny = m(x)\ny.backward()", []float64{1.5}, []float64{.5, .5}},
		"a lost bias":       {m + "d = w.data\nv = d.fill_(2)\nn = setattr(m, \"bias\", None)\ny = m(x)\ny.backward()", []float64{6}, []float64{2, 2}},
		"data given":        {other + "n = setattr(x, \"data\", z)\ny = x * x\ny.backward()", []float64{9, 16}, []float64{6, 8}},
		"data looked at":    {other + "u = x * x\nb = u.sum()\nc = b.backward()\nn = setattr(x, \"data\", z)\ns = u * 1\nd = x.detach()\ny = d * 1", []float64{3, 4}, []float64{2, 4}},
		"data changed":      {other + "k = z * 1\nn = setattr(x, \"data\", k)\nd = x.data\nv = d.mul_(2)\ny = x * x\ny.backward()", []float64{36, 64}, []float64{12, 16}},
		"data after use":    {x + "u = x * x\nd = x.data\nv = d.mul_(3)\ny = x * 2\ny.backward()", []float64{6, 12}, []float64{2, 2}},
		"data with history": {x + "z = tensor((2,), torch.float32, [3.0, 4.0], requires_grad=True)\nd = x.data\nv = operator.iadd(d, z)\nn = setattr(x, \"data\", v)\ny = x * x\ny.backward()", []float64{16, 36}, []float64{8, 12}},
		"of a parameter":    {m + "z = tensor((1, 2), torch.float32, [3.0, 4.0], requires_grad=True)\nd = w.data\nf = d.fill_(1)\nd2 = w.data\nv = operator.iadd(d2, z)\nw2 = m.weight\nn = setattr(w2, \"data\", v)\nn2 = setattr(m, \"bias\", None)\ny = m(x)\ny.backward()", []float64{14}, []float64{4, 5}},
		"to its own dtype":  {x + "o = torch.ones(1)\nv = o.add_(1)\nh = x.to(torch.float32)\ns = h.sum()\nb = s.backward()\ny = x.grad", []float64{1, 1}, nil},
		"a leaf stays one":  {x + "d = x.detach()\nv = d.mul_(3)\ns = x.sum()\nb = s.backward()\ny = x.grad", []float64{1, 1}, nil},
	} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, c.lines)))
		if out.Status != backend.OK {
			t.Errorf("%s: %s: %s", name, out.Status, out.Message)
			continue
		}
		if y := out.Values[len(out.Values)-1].Tensor; !slices.Equal(floats(y), c.last) {
			t.Errorf("%s: got %v, want %v", name, y, c.last)
		}
		if g := out.Grad("x"); c.grad != nil && !slices.Equal(floats(g), c.grad) {
			t.Errorf("%s: gradient %v, want %v", name, g, c.grad)
		}
	}
}

func floats(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Len())
	for i := range out {
		out[i] = t.Float(i)
	}
	return out
}

// TestDataIsAllThatChanges: PyTorch counts a change through x.data for x.data alone.
func TestDataIsAllThatChanges(t *testing.T) {
	out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, "x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\nd = x.data\nv = d.mul_(3)\nw = x.mul(2)\nu = w.mul_(5)")))
	var told []string
	for _, s := range out.Slots {
		if s.Part == backend.PartChange {
			told = append(told, s.Owner)
		}
	}
	if !slices.Equal(told, []string{"d", "w"}) {
		t.Errorf("changed: %v", told)
	}
}

// TestChangesOfDataAndItsViews: x.data has a counter of its own, which its views share and x does
// not; the names are those that PyTorch 1.13 counts.
func TestChangesOfDataAndItsViews(t *testing.T) {
	x := "x = tensor((2,), torch.float32, [1.0, 2.0])\ny = x.view(2)\nd = x.data\ne = d[0:2]\nf = x.data\n"
	for line, want := range map[string][]string{
		"v = x.mul_(2)": {"x", "y"},
		"v = y.mul_(2)": {"x", "y"},
		"v = e.mul_(2)": {"d", "e"},
		"v = f.mul_(2)": {"f"},
	} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, x+line)))
		var told []string
		for _, s := range out.Slots {
			if s.Part == backend.PartChange {
				told = append(told, s.Owner)
			}
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: %v changed, want %v: %s %s", line, told, want, out.Status, out.Message)
		}
	}
}

// TestDataAfterUse: PyTorch differentiates y by the elements that x has later.
func TestDataAfterUse(t *testing.T) {
	out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, "x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\ny = x * x\nd = x.data\nv = d.mul_(3)\ny.backward()")))
	if out.Status != backend.Unsupported || !strings.Contains(out.Message, "changing x.data in place between") {
		t.Errorf("%s: %s", out.Status, out.Message)
	}
}

// TestHistoryGivenAway: what x.data has the history of is x's alone to take.
func TestHistoryGivenAway(t *testing.T) {
	out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, "x = tensor((2,), torch.float32, [1.0, 2.0])\nk = tensor((2,), torch.float32, [5.0, 6.0])\nz = tensor((2,), torch.float32, [3.0, 4.0], requires_grad=True)\nd = x.data\nv = operator.iadd(d, z)\nn = setattr(k, \"data\", v)\ny = k.mul_(2)")))
	if out.Status != backend.Unsupported || !strings.Contains(out.Message, "using x.data after a change") {
		t.Errorf("%s: %s", out.Status, out.Message)
	}
}

// TestDataThatIsShared: what x.data = y makes one memory is changed by no call in place, and
// what was computed from the x before is not differentiated.
func TestDataThatIsShared(t *testing.T) {
	x := "x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\nz = tensor((2,), torch.float32, [3.0, 4.0])\n"
	for lines, says := range map[string]string{
		"n = setattr(x, \"data\", z)\nv = z.mul_(2)\ny = x * 2\n":                 "shares",
		"n = setattr(x, \"data\", z)\nd = x.data\nv = d.mul_(2)\ny = x * 2\n":     "shares",
		"w = z[0:2]\nn = setattr(x, \"data\", w)\nv = z.mul_(2)\ny = x * 2\n":     "shares",
		"y = x * x\nn = setattr(x, \"data\", z)\ny.backward()\n":                  "assigning x.data between",
		"y = x * x\nn = setattr(x, \"data\", z)\ns = y.sum()\nv = s.backward()\n": "assigning x.data between",
	} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, x+lines)))
		if out.Status != backend.Unsupported || !strings.Contains(out.Message, says) {
			t.Errorf("%s%s: %s", lines, out.Status, out.Message)
		}
	}
}
