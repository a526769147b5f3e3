package command

import "testing"

// TestKernelsThatKnowTheirJudge: what is right where memory, limits or the environment are a judge's
// is not; nor is what leaves work to the garbage collector, a state to its caller or another function
// to whoever calls that honest.
func TestKernelsThatKnowTheirJudge(t *testing.T) {
	slow(t)
	pythons, seen := kernelPythons(t), 0
	entries := kernelEntries(t)
	for i := range entries {
		e := &entries[i]
		if e.File != "sniffs.py" && e.File != "patches.py" {
			continue
		}
		seen++
		if python := pythons[e.Python]; python != "" {
			t.Run(e.name(), func(t *testing.T) {
				t.Parallel()
				e.run(t, python, []string{"-n", "8"})
			})
		}
	}
	if seen < 16 {
		t.Errorf("the index has %d entries of sniffs.py and patches.py", seen)
	}
}
