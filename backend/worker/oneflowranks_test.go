package worker

import (
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
)

// TestOneFlowOverRanks: processes of OneFlow, a rank each, give what one process gives,
// call by call and as a graph; one that ends is named and costs its case alone, and so is
// what ranks do not have alike.
func TestOneFlowOverRanks(t *testing.T) {
	w := hosted(t, "oneflow", "global")
	x := f32([]int{3, 2}, 1, -2, 3, 4, -5, 6)
	placed := func(sbp string) *builder {
		b := new(builder).in("x", x, true).call("a", "Tensor.to_global", program.Ref("x")).kw("placement", "cpu[0, 1]").kw("sbp", sbp)
		return b.call("y", "torch.relu", program.Ref("a")).call("s", "torch.sum", program.Ref("y")).kw("dim", int64(0))
	}
	for _, sbp := range []string{"S(0)", "S(1)", "B", "P"} {
		out := run(t, w, placed(sbp).back("s", program.Fill{}))
		if out.Status != backend.OK || numbers(out.Values[2].Tensor) != "4 10" || numbers(out.Slots[len(out.Slots)-1].Tensor) != "1 0 1 1 0 1" {
			t.Errorf("%s: %+v", sbp, out)
		}
	}
	for name, c := range map[string]struct {
		b      *builder
		status backend.Status
		want   string
	}{
		"a rank that ends":          {new(builder).in("x", f32(nil, 1), false).call("y", "torch.softmax", program.Ref("x"), int64(0)), backend.Crashed, "at call 0, torch.softmax; rank "},
		"ranks that there are not":  {new(builder).in("x", x, false).call("a", "Tensor.to_global", program.Ref("x")).kw("placement", "cpu[0, 2]").kw("sbp", "B"), backend.Unsupported, "rank 2, of 2"},
		"an axis that there is not": {new(builder).in("x", x, false).call("a", "Tensor.to_global", program.Ref("x")).kw("placement", "cpu[0, 1]").kw("sbp", "S(2)"), backend.Raised, "Split axis out of range"},
		"a piece":                   {new(builder).in("x", x, false).call("a", "Tensor.to_local", program.Ref("x")).kw("placement", "cpu[0, 1]").kw("sbp", "S(0)").kw("rank", int64(0)), backend.OK, ""},
	} {
		if out := run(t, w, c.b); out.Status != c.status || !strings.Contains(out.Message, c.want) {
			t.Errorf("%s: %+v", name, out)
		}
	}
	graph, err := w.In("global-graph")
	if err != nil {
		t.Fatal(err)
	}
	out, err := graph.Run(t.Context(), placed("S(1)").job())
	if err != nil || out.Status != backend.OK || numbers(out.Values[2].Tensor) != "4 10" {
		t.Errorf("as a graph: %+v", out)
	}
}
