package onekernel

import (
	"testing"

	"plumb/backend/worker"
)

// TestOperatorOfInputs: an operator of PyTorch's is what it is, whoever says what it takes.
func TestOperatorOfInputs(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for kernel, want := range map[string]Word{"fourier.py::conv1d": Right, "fourier.py::conv1d_half": Wrong} {
		o := Options{Kernel: "testdata/" + kernel, Against: "torch.nn.functional.conv1d", Inputs: "x: f32[B,I,L+K], w: f32[O,I,K]", Seed: 1}.Filled()
		o.Cases, o.NoEmpty, o.NoNonFinite = 20, true, true
		if rep := report(t, o); rep.Verdict != want {
			t.Errorf("%s: %s, want %s: %v", kernel, rep.Verdict, want, rep.Reasons)
		}
	}
}
