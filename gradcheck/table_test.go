package gradcheck_test

import (
	"testing"

	"plumb/gradcheck"
	"plumb/ops"
)

func TestTable(t *testing.T) {
	table := ops.Table()
	for _, d := range table.Defs() {
		r := gradcheck.Check(table, d, gradcheck.Options{})
		if r.None != "" {
			t.Logf("%s: none: %s", r.ID, r.None)
			continue
		}
		t.Logf("%s %v %v %v refused %v", r.ID, r.DTypes, r.Orders[0], r.Orders[1], r.Refused)
		for i := range min(len(r.Findings), 3) {
			t.Errorf("%s: %v", r.ID, &r.Findings[i])
		}
	}
}
