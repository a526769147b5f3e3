package plumb_test

import (
	"os"
	"path/filepath"
	"testing"

	"plumb"
	"plumb/tensor"
)

// TestKernel: a kernel that is right passes, and the report says what was tried.
func TestKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PyTorch")
	}
	file := filepath.Join(t.TempDir(), "k.py")
	if err := os.WriteFile(file, []byte("def relu(x):\n    return x.clamp(min=0)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := plumb.KernelOptions{Kernel: file + "::relu", Against: "torch.relu", DTypes: []string{tensor.F32.String()}, Cases: 4, NoGrad: true, NoNonFinite: true}
	r := plumb.Kernel(t, o)
	if r.Verdict != "right" || r.Tried.Right != r.Tried.Cases || r.Tried.Cases < o.Cases {
		t.Errorf("%s", r.Text())
	}
}
