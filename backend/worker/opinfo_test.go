//go:build unix

package worker

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/tensor"
)

// TestOpInfo: PyTorch's sample inputs are programs that it runs, its error inputs
// programs that it refuses.
func TestOpInfo(t *testing.T) {
	w := torch(t)
	entries, err := w.OpInfo()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		dt    tensor.DType
		least int
		want  string
	}{
		{"add", tensor.F32, 5, "y = torch.add("},
		{"max.reduction_with_dim", tensor.I64, 2, "y = torch.max(x0"},
		{"__rsub__", tensor.F64, 1, "y = x0 - x1"},
		{"polygamma.polygamma_n_0", tensor.F32, 1, "y = torch.polygamma("},
		{"mT", tensor.F32, 1, "y = x0.mT"},
		{"__getitem__", tensor.Bool, 5, "y = x0["},
		{"zero_", tensor.F32, 1, "y1 = torch.zero_(y)"},
		{"nn.functional.conv2d", tensor.Invalid, 1, "y = torch.nn.functional.conv2d("},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := slices.IndexFunc(entries, func(e backend.OpInfo) bool { return e.Name == c.name })
			if i < 0 || c.dt != tensor.Invalid && !slices.Contains(entries[i].DTypes, c.dt) || c.dt == tensor.Invalid && !entries[i].Illegal {
				t.Fatalf("entry %d of %d", i, len(entries))
			}
			programs, left, err := w.OpInfoCases(i, c.dt, 1)
			if err != nil || len(programs) < c.least {
				t.Fatalf("%d programs, left %v, %v", len(programs), left, err)
			}
			if text := programs[0].String(); !strings.Contains(text, c.want) {
				t.Errorf("%s, want %q in it", text, c.want)
			}
			for _, p := range programs {
				b := &builder{p: *p}
				for i := range p.Inputs {
					b.inputs = append(b.inputs, p.Inputs[i].Materialize())
				}
				if out := run(t, w, b); (out.Status == backend.OK) != (c.dt != tensor.Invalid) {
					t.Errorf("%s: %s %s %s", p, out.Status, out.Class, out.Message)
				}
			}
		})
	}
	if _, _, err := w.OpInfoCases(len(entries), tensor.F32, 1); err == nil || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("beyond the last entry: %v", err)
	}
}
