package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plumb/conform"
	"plumb/internal/judge/verdict"
)

// toyLibrary builds the library in C of the tests, and has the process that loads
// it built and kept in a folder of the test.
func toyLibrary(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler is here")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := filepath.Join(t.TempDir(), "device.so")
	source := filepath.Join(root, "backend", "worker", "diopi", "testdata", "device.c")
	if out, err := exec.Command(compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", lib, source, "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return "diopi:" + lib
}

// TestLibraryInC judges a library with DIOPI's interface by what PyTorch did, and
// then with faults planted in it: each costs the cases that it is in.
func TestLibraryInC(t *testing.T) {
	lib := toyLibrary(t)
	all := []string{"relu", "exp", "tanh", "neg", "add", "mse_loss", "softmax", "conv2d", "mm", "sum", "cat", "nonzero"}
	for _, c := range []struct {
		fault string
		fname []string
		word  verdict.Word // of cases that are not aligned; empty for none
		says  string
	}{
		{"", all, "", ""},
		{"prints", []string{"relu"}, "", ""},
		{"silu", []string{"silu", "relu"}, verdict.Misaligned, `"no_gradients":"silu: the library has no diopiSiluBackward"`},
		{"relu-grad", []string{"relu", "exp"}, verdict.Misaligned, "gradient of input"},
		{"add-inp", []string{"add"}, verdict.Misaligned, "(inplace)"},
		{"leaks", []string{"exp", "relu"}, "", ""}, // it is started again before it has all memory
		{"refuses", []string{"exp", "relu"}, verdict.Misaligned, "diopiExp returned 1: the device is cold"},
		{"not-implemented", []string{"exp", "relu"}, "", ""},
		{"segfault", []string{"exp", "relu"}, verdict.Crash, "ended by SIGSEGV in diopiExp"},
		{"aborts", []string{"exp", "relu"}, verdict.Crash, "ended by SIGABRT in diopiExp"},
		{"exits", []string{"exp", "relu"}, verdict.Crash, "exit status 0 in diopiExp"},
		{"writes-input", []string{"exp", "relu"}, verdict.Crash, "changed its constant tensor argument"},
		{"beyond", []string{"neg", "relu"}, verdict.Crash, "beyond a tensor's elements"},
		{"before", []string{"neg", "relu"}, verdict.Crash, "wrote before a tensor's elements, at byte -4"},
		{"far", []string{"neg", "relu"}, verdict.Crash, "ended by SIGSEGV in diopiNeg"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Setenv("FAULT", c.fault)
			out, _, err := conformed(t, "run", "--json", "--candidate", lib, "--fname", strings.Join(c.fname, ","))
			found := exitCode(err) == exitFindings
			if !strings.Contains(out, `"verdict":"aligned"`) || found != (c.word != "") || found && !strings.Contains(out, `"verdict":"`+string(c.word)) || !strings.Contains(out, c.says) {
				t.Errorf("%v: want %s, %q in\n%s", err, c.word, c.says, out)
			}
		})
	}
}

// TestLibraryIsNotJudgedByParts: that a library adds and multiplies as it should says
// nothing of its optimizers.
func TestLibraryIsNotJudgedByParts(t *testing.T) {
	lib := toyLibrary(t)
	config := save(t, "c.py", `diopi_configs = {'a': dict(name=['sgd'], interface=['CustomizedTest'], tensor_para=dict(args=[dict(ins=['param', 'param_grad'], shape=((3,),), dtype=[np.float32])]))}`)
	base := filepath.Join(t.TempDir(), "base")
	if out, _, err := conformed(t, "gen", config, "--out", base, "--reference", "native"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, _, err := judged(t, base, "--candidate", lib); exitCode(err) != exitNothing || got[verdict.Unsupported] != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if got, _, err := judged(t, base); err != nil || got[verdict.Aligned] != 1 {
		t.Errorf("Plumb's own: %v, %v", got, err)
	}
	if out, _, err := conformed(t, "list", config, "--candidate", lib); err != nil || !strings.Contains(out, conform.Uncalled) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestHangingLibraryInC ends a call that does not return.
func TestHangingLibraryInC(t *testing.T) {
	lib := toyLibrary(t)
	config := save(t, "c.py", `diopi_configs = {'a': dict(name=['tanh', 'relu'], interface=['torch'], tensor_para=dict(args=[dict(ins=['input'], shape=((3,),), dtype=[np.float32])]))}`)
	base := filepath.Join(t.TempDir(), "base")
	if out, _, err := conformed(t, "gen", config, "--out", base, "--reference", "native"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("FAULT", "hangs")
	got, _, err := judged(t, base, "--candidate", lib, "--timeout", "500ms")
	if exitCode(err) != exitFindings || got[verdict.Timeout] != 1 || got[verdict.Aligned] != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestLibraryInCBySuites draws cases for a library, edge values among them.
func TestLibraryInCBySuites(t *testing.T) {
	lib := toyLibrary(t)
	views := save(t, "test_views.py", `
def test_view_changed_in_place():
    x = random_tensor(2, 3, 4)
    y = torch.exp(x)
    y.permute(1, 0).sqrt_()
    return y
`)
	for _, c := range []struct {
		fault string
		args  []string
		says  string
	}{
		{"", []string{"ops", "run", "relu", "conv2d"}, "aligned"},
		{"relu-nan", []string{"ops", "run", "relu"}, "misaligned"},
		{"conv-dilation", []string{"ops", "run", "conv2d"}, "misaligned"},
		{"", []string{"run", filepath.Join(root, "suites", "activation.py"), "-k", "relu"}, "aligned"},
		{"", []string{"run", views}, "aligned"},
	} {
		t.Setenv("FAULT", c.fault)
		var text strings.Builder
		cmd := newRoot()
		cmd.SetArgs(append(c.args, "--reference", "native", "--candidate", lib, "-n", "40", "--seed", "1", "--set", "shrink.runs=0"))
		cmd.SetOut(&text)
		cmd.SetErr(&text)
		err, out := cmd.ExecuteContext(t.Context()), text.String()
		if found := strings.Contains(out, "misaligned"); found != (c.says == "misaligned") || !strings.Contains(out, c.says) {
			t.Errorf("%v %v: %v\n%s", c.fault, c.args, err, out)
		}
	}
}

// TestLibraryNeedsACompiler says what is missing.
func TestLibraryNeedsACompiler(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("CC", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := save(t, "device.so", "")
	_, _, err := conformed(t, "run", "--candidate", "diopi:"+lib, "--fname", "relu")
	if err == nil || !strings.Contains(err.Error(), "needs a C compiler") {
		t.Errorf("%v", err)
	}
	if _, _, err := conformed(t, "run", "--candidate", "diopi:"+filepath.Join(os.TempDir(), "no-such.so")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}
