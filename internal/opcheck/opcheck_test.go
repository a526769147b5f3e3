package opcheck_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"plumb/internal/opcheck"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var theirs = ops.All()

// table has a literal before Plumb's operators.
func table(t *testing.T, d *op.Def) *op.Table {
	t.Helper()
	tb, err := op.NewTable(append([]*op.Def{d}, ops.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// TestDescribe: a call's line has what stands out of large tensors.
func TestDescribe(t *testing.T) {
	x := tensor.New(tensor.F32, 4, 5)
	x.Set(3, complex(math.Inf(-1), 0))
	x.Set(17, complex(math.NaN(), 0))
	call, err := ops.Table().Resolve("torch.nn.functional.relu6", []any{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := opcheck.Describe(call), "relu6(input=float32[4, 5]{3: -Inf, 17: NaN}, inplace=false)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRightOnesAreNotBlamed(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(right)) {
		t.Run(name, func(t *testing.T) {
			d := right[name]()
			r := opcheck.Run(table(t, d), d.ID(), opcheck.Options{})
			for _, f := range r.Findings {
				t.Errorf("%s: %s", f.Aspect, f)
			}
			t.Log(r.DTypes, r.Checked, r.Unchecked)
		})
	}
}
