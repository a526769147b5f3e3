package onekernel

import (
	"testing"

	"plumb/backend/worker"
)

// TestNamedParts: results in a dict, or an object, are compared as those of a tuple are.
func TestNamedParts(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]Word{"ordered": Right, "another": Wrong, "renamed": Wrong, "unnamed": Wrong} {
		t.Run(name, func(t *testing.T) {
			o := Options{Kernel: "testdata/named.py::" + name, Against: "testdata/named.py::reference", Inputs: "x: f32[N,C]", Seed: 1}.Filled()
			o.Cases = 3
			if rep := report(t, o); rep.Verdict != want {
				t.Errorf("%s, want %s: %v", rep.Verdict, want, rep.Reasons)
			}
		})
	}
}
