package ops_test

import (
	"testing"

	"plumb/global"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func TestEveryOperatorSaysHowItIsSharded(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		stated := d.SBP != nil || (d.Compose != nil || d.Formula != nil) && d.NotSplittable == ""
		if stated == (d.NotSplittable != "") {
			t.Errorf("%s: its literal needs either SBP or, in NotSplittable, the reason why it has none", d.ID())
		}
	}
}

// shardedSamples is how many sampled calls each operator's signatures have to hold on.
const shardedSamples = 16

func TestShardingsComputeTheWhole(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || d.Traits.Has(op.Random) {
			continue
		}
		t.Run(d.ID(), func(t *testing.T) {
			tried := 0
			for key := range uint64(shardedSamples) {
				call := sample(t, d, key, tensor.F64)
				shardings, err := call.Shardings()
				if err != nil {
					t.Fatalf("sample %d: %v", key, err)
				}
				for _, s := range shardings {
					for _, ranks := range []int{2, 3} {
						ran, err := global.Holds(t.Context(), call, s, ranks)
						if err != nil {
							t.Errorf("sample %d, %s on %d ranks: %v", key, s, ranks, err)
						}
						if ran {
							tried++
						}
					}
				}
			}
			if tried == 0 && d.NotSplittable == "" {
				t.Errorf("no signature was tried on %d samples", shardedSamples)
			}
		})
	}
}

func TestWrongShardingsAreCaught(t *testing.T) {
	for _, c := range []struct {
		id  string
		key uint64
		s   op.Sharding
	}{
		{"relu", 0, op.Sharding{Args: map[string]op.SBP{"input": op.P}, Results: []op.SBP{op.P}}},
		{"sum", 0, op.Sharding{Args: map[string]op.SBP{"input": op.S(0)}, Results: []op.SBP{op.B}}},
		{"add", 0, op.Sharding{Args: map[string]op.SBP{"input": op.P}, Results: []op.SBP{op.P}}},
		{"matmul", 0, op.Sharding{Args: map[string]op.SBP{"input": op.S(0)}, Results: []op.SBP{op.P}}},
	} {
		d := ops.Table().Def(c.id)
		caught := false
		for key := range uint64(shardedSamples) {
			ran, err := global.Holds(t.Context(), sample(t, d, key, tensor.F64), c.s, 2)
			caught = caught || ran && err != nil
		}
		if !caught {
			t.Errorf("%s: nothing speaks against %s", c.id, c.s)
		}
	}
}
