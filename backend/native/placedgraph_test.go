package native

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/global"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

// TestGraphsOfPlacedPrograms: what to_global says in the middle of a program holds in
// the plan of its graph, for gradients too, and is refused as ranks refuse it.
func TestGraphsOfPlacedPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		held    []string // in the plan
		status  backend.Status
		message string
	}{
		"in the middle": {
			"a = torch.exp(x)\nb = a.to_global(placement=\"cpu[[0, 1], [2, 3]]\", sbp=\"[S(1), P]\")\nc = torch.neg(b)\n",
			[]string{":[S(1), P] float32"}, backend.OK, "",
		},
		"ranks in a row, then in a grid": {
			"a = x.to_global(placement=\"cpu[0, 1, 2, 3]\", sbp=\"S(1)\")\nb = a.to_global(placement=\"cpu[[0, 1], [2, 3]]\", sbp=\"[B, S(0)]\")\nc = torch.neg(b)\n",
			[]string{":[S(1), S(1)] float32", ":[B, S(0)] float32"}, backend.OK, "",
		},
		"of a gradient": {
			"a = x.to_global(placement=\"cpu[0, 1]\", sbp=\"B\", grad_sbp=\"S(1)\")\nb = a.to_global(sbp=\"S(0)\")\nc = torch.exp(b)\nd = torch.sum(c)\nd.backward()\n",
			[]string{":S(0) = box(", ":S(1) = box("}, backend.OK, "",
		},
		"an axis that there is not":   {"a = torch.sum(x)\nb = a.to_global(placement=\"cpu[0, 1]\", sbp=\"S(0)\")\n", nil, backend.Raised, "splits an axis"},
		"an sbp of another hierarchy": {"a = x.to_global(placement=\"cpu[0, 1]\", sbp=\"[B, B]\")\n", nil, backend.Raised, "does not fit"},
		"a rank twice":                {"a = x.to_global(placement=\"cpu[0, 0]\", sbp=\"B\")\n", nil, backend.Raised, ""},
		"other ranks":                 {"a = x.to_global(placement=\"cpu[0, 1]\", sbp=\"B\")\nb = a.to_global(placement=\"cpu[2, 3]\", sbp=\"B\")\n", nil, backend.Unsupported, "cpu[2, 3]"},
	} {
		p, err := program.Parse("p.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=5)\n"+
			"x = tensor((5, 6), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)\n"+c.body)
		if err != nil {
			t.Fatal(name, err)
		}
		plan := ""
		out := overRanks(t, p, "global-graph", []global.Pass{{Name: "none", Run: func(p *global.Plan) int {
			plan = p.String()
			return 0
		}}})
		if out.Status != c.status || !strings.Contains(out.Message, c.message) {
			t.Errorf("%s: %s: %s", name, out.Status, out.Message)
			continue
		}
		if missing := slices.IndexFunc(c.held, func(text string) bool { return !strings.Contains(plan, text) }); missing >= 0 {
			t.Errorf("%s: %s is not in\n%s", name, c.held[missing], plan)
		}
		if out.Status != backend.OK {
			continue
		}
		want, err := New(ops.Table(), nn.Modules()).Run(t.Context(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range out.Values {
			if v.Tensor != nil && !v.Tensor.SameBits(want.Values[i].Tensor) && p.Calls[i].Target != "torch.sum" {
				t.Errorf("%s: %s is %v, not %v", name, p.Calls[i].Result, v.Tensor, want.Values[i].Tensor)
			}
		}
	}
}

// TestGraphsChangeDataAlone: a graph too tells a change through x.data of x.data alone.
func TestGraphsChangeDataAlone(t *testing.T) {
	p, err := program.Parse("p.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=5)\n"+
		"x = tensor((2,), torch.float32, [1.0, 2.0])\nd = x.data\nv = d.mul_(3)\nw = x.mul(2)\nu = w.mul_(5)\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"graph", "global-graph"} {
		b, err := New(ops.Table(), nn.Modules()).In(mode)
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.Run(t.Context(), backend.NewJob(p))
		if err != nil || out.Status != backend.OK {
			t.Fatal(mode, err, out)
		}
		var changed []string
		for _, s := range out.Slots {
			changed = append(changed, s.Owner)
		}
		if !slices.Equal(changed, []string{"d", "w"}) {
			t.Errorf("%s: changed are %q", mode, changed)
		}
	}
}
