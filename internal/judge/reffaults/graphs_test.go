package reffaults

import (
	"slices"
	"testing"

	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
)

// TestTuplesOfScripts: three results in the place of one are known of TorchScript's
// unique_consecutive, as those of other shapes are.
func TestTuplesOfScripts(t *testing.T) {
	for _, rule := range []compare.Rule{compare.Structure, compare.Shape} {
		if !slices.ContainsFunc(Graphs, func(f verdict.CandidateFault) bool {
			return f.Target == "unique_consecutive" && slices.Contains(f.Kinds, verdict.Kind(rule)) && slices.Equal(f.Modes, []string{"jit.script"})
		}) {
			t.Errorf("%s is not known", rule)
		}
	}
}
