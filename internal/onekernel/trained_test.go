package onekernel

import (
	"testing"

	"plumb/backend/worker"
)

// TestInTrainingBehindADropout: of a model that draws random numbers in training the running
// statistics are compared there, and by which law its results are drawn.
func TestInTrainingBehindADropout(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]Word{"same": Right, "own": Right, "slow": Wrong, "whole": Wrong, "fixed": Wrong, "unscaled": Wrong, "dies": Unsafe} {
		t.Run(name, func(t *testing.T) {
			o := Options{Kernel: "testdata/dropping_" + name + ".py", Against: "testdata/dropping.py", Seed: 1}.Filled()
			o.Cases = 8
			if rep := report(t, o); rep.Verdict != want {
				t.Errorf("%s, want %s: %v", rep.Verdict, want, rep.Reasons)
			}
		})
	}
}
