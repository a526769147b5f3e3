//go:build unix

package worker

import (
	"os/exec"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
)

// TestNewSubject: what is written to start from is a worker, for an interface like
// PyTorch's and for one of its own.
func TestNewSubject(t *testing.T) {
	path, _, err := FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	x := f32([]int{2, 2}, 1, -2, 3, -4)
	product := func() *builder {
		return new(builder).in("x", x, false).call("y", "torch.matmul", program.Ref("x"), program.Ref("x")).call("z", "torch.sum", program.Ref("y")).kw("dim", int64(1))
	}
	for _, c := range []struct {
		module string
		own    bool
	}{{"torch", false}, {"numpy", true}} {
		if c.own && exec.Command(path, "-c", "import numpy").Run() != nil {
			t.Log("needs numpy: ", path)
			continue
		}
		dir := t.TempDir()
		made, err := NewSubject(dir, "mine", c.module, path, c.own)
		if err != nil {
			t.Fatal(err)
		}
		w := openOwn(t, made)
		if out := run(t, w, product()); out.Status != backend.OK || numbers(out.Values[1].Tensor) != "1 1" {
			t.Errorf("%s: %+v", c.module, out)
		}
		if out := run(t, w, new(builder).in("x", x, false).call("y", "torch.no_such", program.Ref("x"))); out.Status != backend.Unsupported {
			t.Errorf("%s: %+v", c.module, out)
		}
		if _, err := NewSubject(dir, "mine", c.module, path, c.own); err == nil {
			t.Error("what is there is written over")
		}
	}
	for _, name := range []string{"Mine", "arrays"} { // plumb_arrays.py is the kit's
		if _, err := NewSubject(t.TempDir(), name, "numpy", path, true); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
