package bundle_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/internal/find/bundle"
	"plumb/internal/mutants"
	"plumb/nn"
	"plumb/op"
)

// TestRanksScripts: a program that says how its inputs lie on ranks runs over the
// ranks of DTensor and of OneFlow, and gives what it gives on one.
func TestRanksScripts(t *testing.T) {
	table, _, err := mutants.Plant(func(defs map[string]*op.Def, _ map[string]*nn.Def) error {
		defs["exp"].Kernels = defs["neg"].Kernels
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f := finding(t, `case("t", seed=1)
x = tensor((3, 2), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)
x_g = x.to_global(placement="cpu[0, 1]", sbp="S(0)", grad_sbp="S(1)")
w = x_g.to_global(sbp="B")
part = w.to_local(placement="cpu[0, 1]", sbp="S(0)", rank=1)
y = torch.exp(part)
y.backward(uniform(-1.0, 1.0, key=2))
`, table)
	dir := filepath.Join(t.TempDir(), "bundle")
	if _, err := bundle.Write(dir, f); err != nil {
		t.Fatal(err)
	}
	for file, python := range map[string]string{"ranks_dtensor.py": os.Getenv("PLUMB_TEST_TORCH2"), "ranks_oneflow.py": os.Getenv("PLUMB_TEST_ONEFLOW")} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
		if python == "" {
			continue // no such framework here
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, python, filepath.Join(dir, file)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "y: the largest difference is 0.0") {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
