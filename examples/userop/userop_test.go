package userop

import (
	"testing"

	"plumb/check"
)

func TestOperators(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"bent_identity", "peaks"} {
		t.Run(id, func(t *testing.T) { check.Operator(t, table, id) })
	}
}

// TestGrade plants faults in the operator and asks whether TestOperators would find
// them.
func TestGrade(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	if planted, missed := check.Grade(t, table, "bent_identity"); missed > 0 {
		t.Errorf("%d of %d planted faults are missed", missed, planted)
	}
}
