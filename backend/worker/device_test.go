//go:build unix

package worker

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// onDevice opens PyTorch on a device that modules may bring.
func onDevice(t *testing.T, device string, imports ...string) (*Worker, error) {
	t.Helper()
	torch(t)
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), Config{Device: device, Imports: imports, Env: []string{"PYTHONPATH=" + dir, "PYTHONDONTWRITEBYTECODE=1"}})
	if err == nil {
		t.Cleanup(func() { w.Close() })
	}
	return w, err
}

// TestMeta: tensors of the device meta have shapes and dtypes alone.
func TestMeta(t *testing.T) {
	w, err := onDevice(t, "meta")
	if err != nil {
		t.Fatal(err)
	}
	x := f32([]int{2, 3}, -1, 2, -3, 4, -5, 6)
	out := run(t, w, new(builder).in("x", x, true).call("y", "torch.relu", program.Ref("x")).call("z", "torch.argmax", program.Ref("y")).call("s", "torch.sum", program.Ref("y"), int64(1)).back("s", program.Fill{}))
	if !w.Info().NoElements || out.Status != backend.OK || !out.NoElements {
		t.Fatalf("%+v, %+v", w.Info(), out)
	}
	if y, z := out.Values[0], out.Values[1]; !slices.Equal(y.Tensor.Shape(), []int{2, 3}) || !y.RequiresGrad || z.Tensor.DType() != tensor.I64 {
		t.Errorf("%+v", out.Values)
	}
	out = run(t, w, new(builder).in("x", x, false).call("e", "torch.ones", program.Tuple{int64(2), int64(3)}).call("y", "torch.add", program.Ref("x"), program.Ref("e")))
	if out.Status != backend.OK && out.Message != "" && !strings.HasPrefix(w.Info().Version, "1.") {
		t.Errorf("what a call makes is not on the device: %+v", out)
	}
	out = run(t, w, new(builder).in("x", f32([]int{}, 1), false).call("y", "Tensor.item", program.Ref("x")))
	if out.Status != backend.Unsupported {
		t.Errorf("%+v", out)
	}
}

// TestImports: a module that cannot be imported is told by its name.
func TestImports(t *testing.T) {
	_, err := onDevice(t, "cpu", "no_such_plugin")
	if err == nil || !strings.Contains(err.Error(), "--import no_such_plugin: ModuleNotFoundError") || strings.Contains(err.Error(), "Traceback") {
		t.Errorf("%v", err)
	}
}

// TestNoSuchDevice: a device that is not there is told in one line, with the subject and
// what brings it.
func TestNoSuchDevice(t *testing.T) {
	_, err := onDevice(t, "mynpu")
	if err == nil || !strings.HasPrefix(err.Error(), "torch@mynpu: cannot start ") || !strings.Contains(err.Error(), "has no device mynpu here") ||
		!strings.Contains(err.Error(), "--import") || strings.ContainsAny(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// TestPluginDevice: on a plugin's device programs run, a kernel that it lacks is
// unsupported, and one that is wrong is seen.
func TestPluginDevice(t *testing.T) {
	w, err := onDevice(t, "mynpu", "mynpu")
	if err != nil && (strings.Contains(err.Error(), "ImportError") || strings.Contains(err.Error(), "No module named 'torch.")) {
		t.Skip("needs a PyTorch with devices in Python, such as 2.15")
	}
	if err != nil {
		t.Fatal(err)
	}
	x := f32([]int{3}, 0, 1, 2)
	out := run(t, w, new(builder).in("x", x, true).call("y", "torch.mul", program.Ref("x"), program.Ref("x")).call("s", "torch.sum", program.Ref("y")).back("s", program.Fill{}))
	if out.Status != backend.OK || numbers(out.Values[0].Tensor) != "0 1 4" || numbers(out.Slots[0].Tensor) != "0 2 4" {
		t.Errorf("%+v", out)
	}
	if out := run(t, w, new(builder).in("x", x, false).call("y", "torch.erf", program.Ref("x"))); out.Status != backend.Unsupported || !strings.Contains(out.Message, "aten::erf") {
		t.Errorf("erf: %+v", out)
	}
	if out := run(t, w, new(builder).in("x", f32([]int{1}, 0), false).call("y", "torch.cosh", program.Ref("x"))); out.Status != backend.OK || numbers(out.Values[0].Tensor) != "0" {
		t.Errorf("cosh: %+v", out)
	}
}
