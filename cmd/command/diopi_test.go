package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// TestLibraryHasFunctionsOfItsOwn asks a library for what DIOPI has as one function and
// PyTorch has not: that it adds and multiplies as it should says nothing of its Adam.
func TestLibraryHasFunctionsOfItsOwn(t *testing.T) {
	lib := toyLibrary(t)
	config := save(t, "c.py", `diopi_configs = {
    'adam': dict(name=['adam'], interface=['CustomizedTest'], para=dict(lr=[0.1, 0.2], beta1=[0.9, 0.8], beta2=[0.999, 0.9], eps=[1e-8, 1e-6], weight_decay=[0.1, 0], step=[1, 4], amsgrad=[False, True]), dtype=[np.float32, np.float64], tensor_para=dict(gen_fn='Genfunc.rand', args=[dict(ins=['param', 'param_grad', 'exp_avg', 'exp_avg_sq', 'max_exp_avg_sq'], shape=((3, 4), (5,)))])),
    'rms': dict(name=['rms_norm'], interface=['CustomizedTest'], para=dict(eps=[0.1, 0.1], normalized_shape=[(4,), (3, 4)]), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['input'], shape=((5, 4), (2, 3, 4)), requires_grad=[True]), dict(ins=['weight'], shape=((4,), (3, 4)), requires_grad=[True])])),
    'sgd': dict(name=['sgd'], interface=['CustomizedTest'], tensor_para=dict(args=[dict(ins=['param', 'param_grad'], shape=((3,),), dtype=[np.float32])])),
}`)
	base := filepath.Join(t.TempDir(), "base")
	if out, _, err := conformed(t, "gen", config, "--out", base, "--reference", "native"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		fault               string
		aligned, misaligned int
		says                string
	}{
		{"", 8, 0, "sgd: the library has no diopiSgd"},
		{"adam-step", 4, 4, "judged by what Plumb computes with the numbers in float32"},
		{"rms-eps", 4, 4, "value result"},
		{"rms-grad", 6, 2, "gradient of input"},
		{"rms-refuses", 6, 2, "backward pass: the candidate raised RuntimeError: diopiRMSNormBackward returned 1: the device is cold"},
	} {
		t.Setenv("FAULT", c.fault)
		findings := "none"
		if c.fault == "adam-step" {
			findings = t.TempDir()
		}
		out, _, err := conformed(t, "run", "--baseline", base, "--candidate", lib, "--json", "--findings", findings)
		aligned, misaligned := strings.Count(out, `"verdict":"aligned"`), strings.Count(out, `"verdict":"misaligned"`)
		if aligned != c.aligned || misaligned != c.misaligned || !strings.Contains(out, c.says) || (exitCode(err) == exitFindings) != (c.misaligned > 0) {
			t.Errorf("%s: %v: %d aligned, %d misaligned\n%s", c.fault, err, aligned, misaligned, out)
		}
		if findings != "none" && strings.Count(out, "reproduced 3/3") == 0 {
			t.Errorf("%s: no finding is proved\n%s", c.fault, out)
		}
	}
	t.Setenv("FAULT", "adam-step")
	if out, _, err := conformed(t, "run", "--baseline", base, "--candidate", lib, "--compat", "diopi", "--fname", "adam", "--json"); exitCode(err) != exitFindings || strings.Count(out, "DIOPI's comparison fails: result0") < 4 {
		t.Errorf("%v: DIOPI's comparison does not see the fault\n%s", err, out)
	}
	t.Setenv("FAULT", "rms-refuses")
	if out, _, err := conformed(t, "run", "--baseline", base, "--candidate", lib, "--fname", "rms_norm", "--forward", "--json"); err != nil || strings.Count(out, `"verdict":"aligned"`) != 2 {
		t.Errorf("%v: a gradient that nobody asked for is blamed\n%s", err, out)
	}
	if got, _, err := judged(t, base); err != nil || got[verdict.Aligned] != 9 {
		t.Errorf("Plumb's own: %v, %v", got, err)
	}
	t.Setenv("FAULT", "")
	if out, _, err := conformed(t, "list", config, "--candidate", lib); err != nil || !strings.Contains(out, "the library has no diopiSgd") || strings.Contains(out, "diopiAdam") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryIsAskedByTheCasesName: a case of a function is judged by that function and by
// no other that computes the same.
func TestLibraryIsAskedByTheCasesName(t *testing.T) {
	lib := toyLibrary(t)
	config := save(t, "c.py", `diopi_configs = {
    'copy': dict(name=['copy_'], interface=['torch.Tensor'], dtype=[np.float32, np.int32], tensor_para=dict(args=[dict(ins=['input'], shape=((3, 4),)), dict(ins=['other'], shape=((4,),))])),
    'equal': dict(name=['equal'], interface=['torch'], dtype=[np.float32], tensor_para=dict(args=[dict(ins=['input', 'other'], shape=((3, 4),))])),
    'clip': dict(name=['clip_grad_norm_'], interface=['CustomizedTest'], para=dict(max_norm=[1.0], norm_type=[2.0], error_if_nonfinite=[True]), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['tensors'], shape=((3, 4),), gen_num_range=[2, 4], gen_policy='gen_tensor_list')])),
    'uniform': dict(name=['uniform'], no_output_ref=True, para=dict(start=[0], end=[2]), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['input'], shape=((40, 50),))])),
    'pool': dict(name=['pool1d'], interface=['CustomizedTest'], para=dict(mode=['avg'], kernel_size=[3], stride=[2], padding=[1], count_include_pad=[False]), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3, 9),))])),
    'varlen': dict(name=['flash_attention_varlen'], interface=['CustomizedTest'], para=dict(p_dropout=[0], is_causal=[True], softmax_scale=[None], max_seqlen_q=[4], max_seqlen_kv=[4], cu_seqlens_q=[[0, 3, 7]], cu_seqlens_kv=[[0, 3, 7]]), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['q', 'k', 'v'], shape=((7, 2, 4),))])),
}`)
	base := filepath.Join(t.TempDir(), "base")
	if out, _, err := conformed(t, "gen", config, "--out", base, "--reference", "native"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	findsFaults(t, lib, base, 7, map[string]int{"": 0, "copy": 2, "equal": 1, "clip": 1, "uniform": 1, "pool": 1, "varlen": 1})
}

// findsFaults holds a library with each of several faults to how many of so many verdicts
// tell of it.
func findsFaults(t *testing.T, lib, base string, verdicts int, finds map[string]int) {
	t.Helper()
	for fault, want := range finds {
		t.Setenv("FAULT", fault)
		out, _, err := conformed(t, "run", "--baseline", base, "--candidate", lib, "--json")
		aligned, misaligned := strings.Count(out, `"verdict":"aligned"`), strings.Count(out, `"verdict":"misaligned"`)
		if aligned != verdicts-want || misaligned != want || strings.Contains(out, `"no_gradients"`) {
			t.Errorf("%s: %v: %d aligned, %d misaligned, want %d\n%s", fault, err, aligned, misaligned, want, out)
		}
	}
}

// TestLibrariesHaveRareForms: gradients of pools and dropout, what a library makes for
// itself, sparse matrices, and functions that are called one after the other.
func TestLibrariesHaveRareForms(t *testing.T) {
	lib := toyLibrary(t)
	config := save(t, "c.py", `diopi_configs = {
    'flash': dict(name=['customized_flash_attention'], interface=['CustomizedTest'], saved_args=dict(out=0), para=dict(p_dropout=[0, 0], is_causal=[True, False], softmax_scale=[None, 0.25], window_size_left=[-1, -1], window_size_right=[-1, -1], head_num=[2, 2], input_layout=['BSND', 'BSND']), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['q'], shape=((2, 3, 2, 4), (1, 4, 2, 4)), requires_grad=[True]), dict(ins=['k', 'v'], shape=((2, 5, 2, 4), (1, 4, 2, 4)), requires_grad=[True])])),
    'spmm': dict(name=['spmm'], interface=['CustomizedTest'], sparse_format='csr', dtype=[np.float32, np.float64], tensor_para=dict(args=[dict(ins=['input'], shape=((5, 6),), sparse=[True]), dict(ins=['mat2'], shape=((6, 3),))])),
    'pool': dict(name=['pool1d'], interface=['CustomizedTest'], para=dict(mode=['avg', 'max'], kernel_size=[3, 2], stride=[2, None], count_include_pad=[False, False], adaptive=[False, False]), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3, 9), (3, 8)), requires_grad=[True])])),
    'dropout': dict(name=['dropout'], interface=['torch.nn.functional'], no_output_ref=True, para=dict(p=[0.3, 0], training=[True, True]), dtype=[np.float32], tensor_para=dict(args=[dict(ins=['input'], shape=((40, 50), (3, 4)), requires_grad=[True])])),
    'embedding': dict(name=['embedding'], interface=['torch.nn.functional'], para=dict(max_norm=[1.0, 2.5]), tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3), (4,)), dtype=[np.int64], gen_fn=dict(fn='Genfunc.randint', low=0, high=5)), dict(ins=['weight'], shape=((5, 4), (5, 4)), dtype=[np.float32])])),
}`)
	base := filepath.Join(t.TempDir(), "base")
	if out, _, err := conformed(t, "gen", config, "--out", base, "--reference", "native"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	findsFaults(t, lib, base, 16, map[string]int{"": 0, "ascend-mask": 2, "ascend-grad": 2, "spmm": 2, "pool-grad": 1, "mask": 1, "renorm": 2})
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
		{"", []string{"ops", "run", "relu", "conv2d", "--dtype", "float32"}, "aligned"},
		{"relu-nan", []string{"ops", "run", "relu", "--dtype", "float32"}, "misaligned"},
		{"conv-dilation", []string{"ops", "run", "conv2d", "--dtype", "float32"}, "misaligned"},
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
