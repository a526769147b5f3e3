package onekernel

import (
	"testing"

	"plumb/backend/worker"
)

// TestFourier: what is allowed to fast algorithms is so where --inputs says what PyTorch's operator
// takes, and where masks are made beside a product.
func TestFourier(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	const conv, rows = "x: f32[B,I,L+K], w: f32[O,I,K]", "x: f32[B,N], h: f32[N]"
	for _, c := range []struct {
		kernel, against, inputs string
		want                    Word
	}{
		{"conv1d", "torch.nn.functional.conv1d", conv, Right}, {"conv1d_half", "torch.nn.functional.conv1d", conv, Wrong},
		{"filtered", "testdata/fourier.py::triangle", rows, Right}, {"filtered_around", "testdata/fourier.py::triangle", rows, Wrong},
	} {
		o := Options{Kernel: "testdata/fourier.py::" + c.kernel, Against: c.against, Inputs: c.inputs, Seed: 1}.Filled()
		o.Cases, o.NoEmpty, o.NoNonFinite = 20, true, true
		if rep := report(t, o); rep.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %v", c.kernel, rep.Verdict, c.want, rep.Reasons)
		}
	}
}
