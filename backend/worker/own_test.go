//go:build unix

package worker

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// ownWorker compiles and opens examples/ownworker.
func ownWorker(t *testing.T) *Worker {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: the worker in C is not tested")
	}
	binary := filepath.Join(t.TempDir(), "ownworker")
	if out, err := exec.Command(cc, "-O2", "-Wall", "-Wextra", "-Werror", "-o", binary, "../../examples/ownworker/worker.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w, err := Open(t.Context(), Config{Command: []string{binary}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func equal(a, b *tensor.Tensor) bool {
	return slices.Equal(a.Shape(), b.Shape()) && slices.Equal(tensor.Data[float32](a), tensor.Data[float32](b))
}

func TestOwnWorkerComputes(t *testing.T) {
	w := ownWorker(t)
	x, y := f32([]int{2, 2}, 1, -2, 3, -4), f32([]int{2, 2}, 10, 20, 30, 40)
	for _, c := range []struct {
		name string
		job  *builder
		want []float64
	}{
		{"relu", new(builder).in("x", x, false).call("z", "torch.relu", program.Ref("x")), []float64{1, 0, 3, 0}},
		{"add", new(builder).in("x", x, false).in("y", y, false).call("z", "torch.add", program.Ref("x"), program.Ref("y")), []float64{11, 18, 33, 36}},
		{"a gradient", new(builder).in("x", x, true).call("z", "torch.relu", program.Ref("x")).back("z", program.Fill{}), []float64{1, 0, 3, 0}},
		{"keywords", new(builder).in("x", x, false).in("y", y, false).call("z", "torch.add").kw("other", program.Ref("y")).kw("input", program.Ref("x")), []float64{11, 18, 33, 36}},
	} {
		out := runOK(t, w, c.job)
		if z := out.Values[0].Tensor; !equal(z, f32([]int{2, 2}, c.want...)) {
			t.Errorf("%s: %v, want %v", c.name, z, c.want)
		}
	}
}

func TestOwnWorkerGrowsTheRegion(t *testing.T) {
	w := ownWorker(t)
	n := startMemory/4 - 1024 // the input fits, the result does not
	x := tensor.New(tensor.F32, n)
	x.Set(n-1, 7)
	out := runOK(t, w, new(builder).in("x", x, false).call("z", "torch.relu", program.Ref("x")))
	if !equal(out.Values[0].Tensor, x) {
		t.Error("relu of a large tensor is wrong")
	}
}

func TestOwnWorkerRefusesByName(t *testing.T) {
	w := ownWorker(t)
	x := f32([]int{2}, 1, 2)
	for _, c := range []struct {
		reason string
		job    *builder
	}{
		{"only relu and add exist", new(builder).in("x", x, false).call("z", "torch.exp", program.Ref("x"))},
		{"one plain call at a time", new(builder).in("x", x, false).call("z", "torch.add", program.Ref("x"), program.Ref("x")).kw("alpha", int64(2))},
		{"one plain call at a time", new(builder).in("x", x, false).call("z", "torch.nn.functional.relu", program.Ref("x"), true)},
		{"want contiguous float32 tensors", new(builder).in("x", tensor.New(tensor.F64, 2), false).call("z", "torch.relu", program.Ref("x"))},
		{"want tensors of one shape", new(builder).in("x", x, false).in("y", f32([]int{1}, 1), false).call("z", "torch.add", program.Ref("x"), program.Ref("y"))},
	} {
		out := run(t, w, c.job)
		if out.Status != backend.Unsupported || out.Message != c.reason {
			t.Errorf("%s %q, want unsupported %q", out.Status, out.Message, c.reason)
		}
	}
}
