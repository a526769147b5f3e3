package onekernel

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend/worker"
)

// TestBuffersBeforeADropout: of a model that draws random numbers in training the running
// statistics are compared there, and one that draws none is noted.
func TestBuffersBeforeADropout(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]Word{"same": Right, "slow": Wrong, "whole": Right, "dies": Unsafe} {
		t.Run(name, func(t *testing.T) {
			o := Options{Kernel: "testdata/dropping_" + name + ".py", Against: "testdata/dropping.py", Seed: 1}.Filled()
			o.Cases = 8
			rep := report(t, o)
			if rep.Verdict != want {
				t.Errorf("%s, want %s: %v", rep.Verdict, want, rep.Reasons)
			}
			if noted := slices.ContainsFunc(rep.Notes, func(n string) bool { return strings.Contains(n, "draws no random numbers") }); noted != (name == "whole") {
				t.Errorf("notes: %q", rep.Notes)
			}
		})
	}
}
