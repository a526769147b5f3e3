package mutants_test

import (
	"slices"
	"testing"

	"plumb/internal/mutants"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
)

// TestEveryMutantHasTables: each names an entry of the tables, once.
func TestEveryMutantHasTables(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range slices.Concat(mutants.All(), mutants.Ranges()) {
		if _, _, err := m.Tables(); err != nil {
			t.Error(err)
		}
		switch {
		case seen[m.Name]:
			t.Errorf("%s: planted twice", m.Name)
		case m.Kind == "":
			t.Errorf("%s: has no kind", m.Name)
		case (m.Op == nil) == (m.Module == nil):
			t.Errorf("%s: wants one of Op and Module", m.Name)
		}
		seen[m.Name] = true
	}
	if n := len(seen); n < 120 {
		t.Errorf("%d mutants, want at least 120", n)
	}
}

// TestPlantingLeavesTheTrueTables: a mutant's changes are its own.
func TestPlantingLeavesTheTrueTables(t *testing.T) {
	before := ops.Table().Def("relu").Kernels[0].When.Text
	_, _, err := mutants.Plant(func(defs map[string]*op.Def, modules map[string]*nn.Def) error {
		defs["relu"].Kernels[0].When.Text = "planted"
		defs["relu"].Doc = "planted"
		modules["torch.nn.ReLU"].Doc = "planted"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := ops.Table().Def("relu"); d.Kernels[0].When.Text != before || d.Doc == "planted" || nn.Modules().Lookup("torch.nn.ReLU").Doc == "planted" {
		t.Error("planting changed the true table")
	}
}
