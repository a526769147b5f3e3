package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/internal/campaign/report"
	"plumb/internal/judge/verdict"
)

const modesConfig = `import numpy as np
diopi_configs = {
    'relu': dict(name=['relu'], tensor_para=dict(args=[dict(shape=[(2, 3), (4,)], dtype=[np.float32, np.float64], requires_grad=[True])])),
    'pool': dict(name=['max_pool2d'], para=dict(kernel_size=[2, 2]),
                 tensor_para=dict(args=[dict(shape=[(2, 3, 4, 4), (3, 4, 4)], dtype=[np.float32], requires_grad=[True])])),
    'pick': dict(name=['index_select'], interface=['torch'], para=dict(dim=[0]),
                 tensor_para=dict(args=[dict(shape=[(5,)], dtype=[np.float32]),
                                        dict(ins=['index'], shape=[(7,)], dtype=[np.int64], gen_fn=dict(fn='Genfunc.randint', high=5))])),
    'top': dict(name=['argmax'], interface=['torch'], tensor_para=dict(args=[dict(shape=[(9,)], dtype=[np.float32])])),
    'add': dict(name=['add'], interface=['torch'], is_inplace=True, tensor_para=dict(args=[dict(ins=['input', 'other'], shape=[(3,)], dtype=[np.float32])])),
}
`

// recordedModes is a baseline of modesConfig by our own operators: these tests
// are about the modes, not about who is right.
func recordedModes(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "baseline")
	if out, errs, err := conformed(t, "gen", save(t, "modes.py", modesConfig), "--out", dir, "--reference", "native"); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	return dir
}

func TestConformModes(t *testing.T) {
	dir := recordedModes(t)
	models := save(t, "models.py", "m = {'net': ['relu', 'conv2d']}")
	device := save(t, "device.py", "from skip import Skip\nimport numpy as np\nd = {'relu': dict(name=['relu'], tensor_para=dict(args=[dict(ins=['input'], shape=[Skip((4,))])])), 'pool': dict(name=['maxpool'])}")
	for _, c := range []struct {
		args  []string
		wants []string
	}{
		{nil, []string{"== 16 aligned in", "functions   5 of 5 implemented (100.0%)"}},
		{[]string{"--filter-dtype", "float64"}, []string{"== 12 aligned in", "12 of 12 passed (100.0%), 0 unsupported, 2 skipped"}},
		{[]string{"--fname", "relu,add"}, []string{"== 10 aligned in"}},
		{[]string{"--nhwc"}, []string{"== 16 aligned in"}},
		{[]string{"--nhwc", "--nhwc-min-dim", "4"}, []string{"== 14 aligned in", "1 skipped"}},
		{[]string{"--filter_dtype", "float64", "--backend", "native:graph"}, []string{"== 12 aligned in", "native:graph against native"}},
		{[]string{"--forward"}, []string{"== 10 aligned in"}},
		{[]string{"--model", "net", "--model-file", models}, []string{"== 8 aligned in", "  net       8       0  100.0%"}},
		{[]string{"--device-config", device}, []string{"== 12 aligned in", "2 skipped", "device.py:3:109: pool: the rule meets no case"}},
		// native takes no int32 for an index, as PyTorch 1.13 takes none for gather.
		{[]string{"--four-bytes", "--fname", "argmax"}, []string{"== 1 aligned in"}},
	} {
		out, errs, err := conformed(t, append([]string{"run", "--baseline", dir}, c.args...)...)
		for _, want := range c.wants {
			if err != nil || !strings.Contains(out+errs, want) {
				t.Errorf("%q: %v, want %q in\n%s%s", c.args, err, want, out, errs)
			}
		}
	}
}

func TestConformModeMistakes(t *testing.T) {
	dir := recordedModes(t)
	for want, args := range map[string][]string{
		"no dtype is named f32":        {"--filter-dtype", "f32"},
		"--compat oneflow: want diopi": {"--compat", "oneflow"},
		"--nhwc-min-dim needs --nhwc":  {"--nhwc-min-dim", "4"},
		"--failure-debug-level 3":      {"--failure-debug-level", "3"},
		"--model resnet51: suites/":    {"--model", "resnet51"},
		"no such file":                 {"--device-config", "/nowhere/device.py"},
		"want a dict":                  {"--device-config", save(t, "bad.py", "d = {'relu': 3}")},
	} {
		_, _, err := conformed(t, append([]string{"run", "--baseline", dir}, args...)...)
		if e, ok := err.(*exitError); !ok || e.code != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestConformTellsOfFailures judges native by a baseline of other results: relu
// with the sign of its input changed in the config of the seed.
func TestConformTellsOfFailures(t *testing.T) {
	worker := ownWorkerBinary(t, "relu_of(double x) { return x < 0 ? 0 : x; }", "relu_of(double x) { return x < 0 ? 0 : x * 1.000001; }")
	dir := recordedModes(t)
	page, summary := filepath.Join(t.TempDir(), "page.html"), filepath.Join(t.TempDir(), "summary.json")
	out, _, err := conformed(t, "run", "--baseline", dir, "--candidate", worker, "--forward", "--compat", "diopi", "--failure-debug-level", "2", "--html", page, "--summary", summary)
	if e, ok := err.(*exitError); !ok || e.code != exitFindings {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"misaligned relu::relu_0.pth", "(DIOPI's comparison passes)", `case        {"index": 0, "case": "relu::relu_0.pth"`, "want      float32 [2, 3], strides [3 1], sum "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(summary)
	var s report.Conformance
	if err != nil || json.Unmarshal(text, &s) != nil || s.Total.Failed != 4 || s.Total.Lenient != 4 || s.Total.Unsupported == 0 {
		t.Errorf("%v, summary %s", err, text)
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "relu::relu_1.pth") {
		t.Errorf("%v, page\n%s", err, html)
	}
}

// TestConformOwnWorker: the worker in C passes the part of the kit that it implements.
func TestConformOwnWorker(t *testing.T) {
	worker := ownWorkerBinary(t)
	out, _, err := conformed(t, "run", "--baseline", recordedModes(t), "--candidate", worker, "--forward")
	if err != nil || !strings.Contains(out, "6 of 6 passed (100.0%)") || !strings.Contains(out, "functions   2 of 5 implemented") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestConformOwnWorkerShipped: without a flag the worker in C, which has no
// gradients, is judged by the forward cases of the shipped config, and one whose
// relu is broken is found out.
func TestConformOwnWorkerShipped(t *testing.T) {
	t.Parallel()
	got, _, err := judged(t, "", "--candidate", ownWorkerBinary(t))
	if err != nil || got[verdict.Aligned] < 800 || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	broken := ownWorkerBinary(t, "relu_of(double x) { return x < 0 ? 0 : x; }", "relu_of(double x) { return x < 0.25 ? 0 : x; }")
	got, _, err = judged(t, "", "--candidate", broken, "--fname", "relu")
	if exitCode(err) != exitFindings || got[verdict.Misaligned] < 4 {
		t.Errorf("a broken relu: %v, %v", got, err)
	}
}

// TestConformCrash: a worker that aborts, or never ends, on a case is judged so,
// and goes on with the rest.
func TestConformCrash(t *testing.T) {
	slow(t)
	t.Parallel()
	for _, tt := range []struct {
		word verdict.Word
		does string
	}{{verdict.Crash, "abort()"}, {verdict.Timeout, "while (!plumb_failed(c)) sleep(1)"}} {
		const table = "static const plumb_function functions[]"
		worker := ownWorkerBinary(t, table, "#include <stdlib.h>\n#include <unistd.h>\nstatic void bad(plumb_call *c) { (void)c; "+tt.does+"; }\n"+table, `{"torch.add", add, 0}`, `{"torch.add", bad, 0}`)
		got, _, err := judged(t, recordedModes(t), "--candidate", worker, "--forward", "--fname", "relu,add", "--timeout", "2s", "--jobs", "1")
		if exitCode(err) != exitFindings || got[tt.word] != 2 || got[verdict.Aligned] != 4 {
			t.Errorf("%s: %v, %v", tt.word, got, err)
		}
	}
}
