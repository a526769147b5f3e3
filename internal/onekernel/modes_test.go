package onekernel

import (
	"testing"

	"plumb/backend/worker"
)

// TestModes: calls are made with gradients and under no_grad, with one thread and with two, and
// what a kernel does by the file of its reference, or by another name of its operators, is told.
func TestModes(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		kernel, against string
		want            Word
	}{
		{"gate", "gate", Right}, {"gate_trained", "gate", Wrong}, {"gate_by_gradients", "gate", Right},
		{"gate_alone", "gate", Wrong}, {"gate_in_parts", "gate", Right},
		{"gate_of_file", "gate", Cheats}, {"softmax_by_log", "softmax", Delegation},
	} {
		t.Run(c.kernel, func(t *testing.T) {
			o := Options{Kernel: "testdata/modes.py::" + c.kernel, Against: "testdata/modes_ref.py::" + c.against, Inputs: "x: f32[N,C]", Seed: 1}.Filled()
			o.Cases, o.NoGrad, o.NoEmpty, o.NoNonFinite, o.NoFallback = 10, true, true, true, c.want == Delegation
			if rep := report(t, o); rep.Verdict != c.want {
				t.Errorf("%s, want %s: %v", rep.Verdict, c.want, rep.Reasons)
			}
		})
	}
}
