package onekernel

import (
	"strings"
	"testing"

	"plumb/backend/worker"
)

// TestModes: calls are made with gradients and under no_grad, with one thread and with two, and
// what a kernel does by the file of its reference, or by another name of its operators, is told;
// along which dimension a problem works is no size of it.
func TestModes(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		kernel, against string
		want            Word
	}{
		{"modes.py::gate", "modes_ref.py::gate", Right}, {"modes.py::gate_trained", "modes_ref.py::gate", Wrong},
		{"modes.py::gate_by_gradients", "modes_ref.py::gate", Right},
		{"modes.py::gate_alone", "modes_ref.py::gate", Wrong}, {"modes.py::gate_in_parts", "modes_ref.py::gate", Right},
		{"modes.py::gate_of_file", "modes_ref.py::gate", Cheats}, {"modes.py::softmax_by_log", "modes_ref.py::softmax", Delegation},
		{"axis_given.py", "axis.py", Right}, {"imports_model.py", "dropping.py", Cheats}, {"imports_late.py", "dropping.py", Cheats},
		{"looks_early.py", "dropping.py", Cheats}, {"inherits_model.py", "dropping.py", Right},
	} {
		t.Run(c.kernel, func(t *testing.T) {
			o := Options{Kernel: "testdata/" + c.kernel, Against: "testdata/" + c.against, Seed: 1}.Filled()
			if strings.Contains(c.against, "::") {
				o.Inputs = "x: f32[N,C]"
			}
			o.Cases, o.NoGrad, o.NoEmpty, o.NoNonFinite, o.NoFallback = 10, true, true, true, c.want == Delegation
			if rep := report(t, o); rep.Verdict != c.want {
				t.Errorf("%s, want %s: %v", rep.Verdict, c.want, rep.Reasons)
			}
		})
	}
}
