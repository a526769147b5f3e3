package opcheck_test

import (
	"maps"
	"slices"
	"testing"

	"plumb/internal/opcheck"
	"plumb/op"
	"plumb/ops"
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
