package command

import (
	"encoding/json"
	"strings"
	"testing"

	"plumb/op"
)

// TestGraphsHoldLessThanEager: a training step as a graph gives what eager
// gives, bit for bit, and holds at most 60% of its memory.
func TestGraphsHoldLessThanEager(t *testing.T) {
	slow(t)
	for _, k := range graphBlocks() {
		eager, graph := newEagerRunner(&k, "train"), newGraphRunner(&k, "train", nil)
		want, err := eager.check()
		if err != nil {
			t.Fatal(err)
		}
		got, err := graph.check()
		if err != nil {
			t.Fatal(err)
		}
		if i := differs(want, got); i >= 0 || len(got) != len(want) {
			t.Errorf("%s: result %d of %d differs", k.name, i, len(want))
		}
		all, err := eager.memory()
		if err != nil {
			t.Fatal(err)
		}
		part, err := graph.memory()
		if err != nil {
			t.Fatal(err)
		}
		if part <= 0 || float64(part) > 0.6*float64(all) {
			t.Errorf("%s: the graph holds %d bytes, eager %d", k.name, part, all)
		}
	}
}

func TestBenchGraph(t *testing.T) {
	slow(t)
	needTorch(t)
	cmd := newBenchGraph()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--filter", "mlp", "--count", "1", "--json"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var b graphBench
	if err := json.Unmarshal([]byte(out.String()), &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Parts) != 1 || len(b.Parts[0].Rows) != 2 {
		t.Fatalf("%s", out.String())
	}
	for _, r := range b.Parts[0].Rows {
		for _, name := range []string{torchEager, nativeEager, nativeGraph, "torch.jit.trace"} {
			if s := r.side(name); s == nil || !(s.Millis > 0) || s.Bytes <= 0 {
				t.Errorf("%s: %s: %+v", r.name(), name, s)
			}
		}
		if !(r.Speed > 0) || !(r.Memory > 0) {
			t.Errorf("%s: %+v", r.name(), r)
		}
	}
}

// TestBenchGraphChecks: a block that computes something else is not timed.
func TestBenchGraphChecks(t *testing.T) {
	slow(t)
	needTorch(t)
	blocks := graphBlocks()[:1]
	torch, err := startGraphPeer(t.Context(), "", 1, blocks)
	if err != nil {
		t.Fatal(err)
	}
	defer torch.close()
	for _, f := range []func(b op.Builder, y op.Value) op.Value{
		func(b op.Builder, y op.Value) op.Value { return b.Op("relu", y) },
		func(b op.Builder, y op.Value) op.Value { return b.Mul(y, 1.01) },
	} {
		k := blocks[0]
		k.forward = func(b op.Builder, x op.Value, p map[string]op.Value, training bool) op.Value {
			return f(b, mlp(b, x, p, training))
		}
		for _, step := range []string{"forward", "train"} {
			if _, err := (&graphBench{count: 1}).row(torch, &k, step); err == nil || !strings.Contains(err.Error(), "native eager differs from torch eager") {
				t.Errorf("%s: %v", step, err)
			}
		}
	}
}
