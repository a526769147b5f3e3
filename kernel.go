package plumb

import (
	"context"
	"errors"
	"testing"

	"plumb/backend"
	"plumb/internal/onekernel"
)

// KernelOptions say which kernel is judged by what, as the flags of plumb kernel do;
// what is zero is as it is there without flags, the seed 0.
type KernelOptions = onekernel.Options

// KernelReport is what is said of a kernel; docs/kernel.md states its fields.
type KernelReport = onekernel.Report

// Kernel judges one kernel of yours, a function in Python, Triton or C, by the
// function that it should equal, and fails the test unless the verdict is "right", or
// "limited" where that is allowed:
//
//	func TestSoftmax(t *testing.T) {
//		plumb.Kernel(t, plumb.KernelOptions{Kernel: "softmax.py::my_softmax", Against: "torch.softmax"})
//	}
//
// It does what plumb kernel does, in processes of their own. Without PyTorch the test
// is skipped.
func Kernel(t testing.TB, o KernelOptions) *KernelReport {
	t.Helper()
	o = o.Filled()
	cfg, err := o.Config()
	if fault := (*backend.Fault)(nil); errors.As(err, &fault) && o.Python == "" {
		t.Skipf("needs PyTorch: %v (fix: %s)", fault.Err, fault.Fix)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := onekernel.Judge(context.Background(), *cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Passes(r) {
		t.Errorf("%s", r.Text())
	}
	return r
}
