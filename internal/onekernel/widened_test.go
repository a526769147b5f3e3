package onekernel

import (
	"path/filepath"
	"testing"

	"plumb/backend/worker"
)

// TestAnotherFormulaIsSeenInFloat64: that of a GELU within the bounds of a transformer block in
// float32 is, and another way to write the same, with a constant of ten digits, is none.
func TestAnotherFormulaIsSeenInFloat64(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(sets, "problems")
	for solution, want := range map[string]Word{"erf": Wrong, "sigmoid": Right} {
		r := report(t, Options{Kernel: filepath.Join(dir, "solutions/gelu_block", solution+".py"), Against: filepath.Join(dir, "gelu_block.py"), Seed: 1, Cases: 1}.Filled())
		if r.Verdict != want || want == Wrong && (len(r.Reasons) != 1 || r.Reasons[0].Kind != "formula") {
			t.Errorf("%s: %s, %v", solution, r.Verdict, r.Reasons)
		}
	}
}
