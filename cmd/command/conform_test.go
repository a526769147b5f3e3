package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/baselines"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/suites"
)

// conformed runs a conform command.
func conformed(t *testing.T, args ...string) (out, warnings string, err error) {
	return executed(t, append([]string{"conform"}, args...)...)
}

func executed(t *testing.T, args ...string) (out, warnings string, err error) {
	var stdout, stderr strings.Builder
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestConformExpand(t *testing.T) {
	dir := filepath.Join(root, "conform", "testdata")
	want, err := os.ReadFile(filepath.Join(dir, "small.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out, warnings, err := conformed(t, "expand", filepath.Join(dir, "small.py"), "--json")
	if err != nil || out != string(want) {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(warnings, `small.py:36:5: the key "relu" is in line 8 too`) {
		t.Errorf("warnings: %s", warnings)
	}
	out, _, err = conformed(t, "expand", filepath.Join(dir, "small.yaml"))
	if err != nil || !strings.HasPrefix(out, "relu::relu_0.pth\nrelu::relu_1.pth\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestConformList(t *testing.T) {
	out, _, err := conformed(t, "list", filepath.Join(root, "conform", "testdata", "small.yaml"))
	if err != nil || !strings.Contains(out, "spmm        8      1\n") || !strings.HasSuffix(out, "6 functions, 22 cases of 5 entries\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestConformListImplemented asks native for what it has: spmm is no function
// that Plumb has a program for.
func TestConformListImplemented(t *testing.T) {
	name := save(t, "c.py", `d = {'a': dict(name=['relu', 'nonsense'], interface=['torch'], tensor_para=dict(args=[dict(shape=[(2,)], dtype=[np.float32])])),
 'b': dict(name=['unheard'], interface=['CustomizedTest'], tensor_para=dict(args=[dict(shape=[(2,)])]))}`)
	out, _, err := conformed(t, "list", name, "--candidate", "native")
	for _, want := range []string{
		"relu      1      1        yes\n", "nonsense  1      1        no: unknown operator torch.nonsense\n",
		"unheard   5      1        unknown: ", "3 functions, 7 cases of 2 entries\nnative implements 1 of 3 functions\n",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: no %q in\n%s", err, want, out)
		}
	}
}

func TestConformListModels(t *testing.T) {
	models := save(t, "models.py", "m = {'net': ['relu', 'conv2d', 'unheard_of'], 'other': ['add']}")
	out, _, err := conformed(t, "list", "--models", "--model-file", models, "--json")
	if err != nil || !strings.Contains(out, `{"model":"net","functions":3,`) || !strings.Contains(out, `"absent":["unheard_of"]`) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err = conformed(t, "list", "--model", "nett", "--model-file", models); err == nil || !strings.Contains(err.Error(), "--model nett: "+models+" has net other") {
		t.Errorf("%v", err)
	}
	out, _, err = conformed(t, "list", "--model", "net", "--model-file", models)
	if err != nil || !strings.Contains(out, "2 functions, ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestShippedBaselineIsOfTheConfig: a change of the operators that changes the
// config asks for another recording.
func TestShippedBaselineIsOfTheConfig(t *testing.T) {
	var manifest struct{ Config baseline.File }
	if err := json.Unmarshal([]byte(document(t, "baselines/conformance/manifest.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(baselines.ConformanceConfig); hex.EncodeToString(sum[:]) != manifest.Config.SHA256 {
		t.Error("the shipped baseline is of another config: plumb conform gen baselines/conformance/config.py --out NEW --truth contested, and move it here")
	}
}

// TestShippedModels: each function that a network calls is one of the shipped
// config or of DIOPI's.
func TestShippedModels(t *testing.T) {
	models, err := config.LoadModels("models.json", suites.Models)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range diopis {
		known[f] = true
	}
	c, err := config.Load("plumb.py", baselines.ConformanceConfig)
	if err != nil {
		t.Fatal(err)
	}
	for one := range c.Cases() {
		known[one.Function] = true
	}
	if len(models) != 43 {
		t.Errorf("%d models", len(models))
	}
	for _, m := range models {
		for _, f := range m.Functions {
			if !known[f] {
				t.Errorf("%s: no config has %s", m.Name, f)
			}
		}
	}
}

// diopis are functions of DIOPI's config that the shipped one lacks or has by
// other names, and dipu_fallback, of which no config has a case.
var diopis = strings.Fields(`adadelta adam adamw apply_penalty cast_dtype clip_grad_norm_ col2im context_attention copy_
	destindex_copy_kv dipu_fallback im2col fill_ flash_attention index index_put meshgrid nll_loss2d nms normal_ rms_norm roi_align
	rotary_emb sgd sigmoid_focal_loss slice_op token_attention token_softmax_reducev uniform`)

func TestConformMistake(t *testing.T) {
	name := save(t, "c.py", "diopi_configs = {'e': dict(nam=['f'])}")
	_, _, err := conformed(t, "expand", name)
	e, ok := err.(*exitError)
	if !ok || e.code != exitUsage || !strings.Contains(err.Error(), "c.py:1:23: e: name is missing") {
		t.Errorf("%v", err)
	}
}

// TestConformancePageRuns runs the commands of the page.
func TestConformancePageRuns(t *testing.T) {
	slow(t)
	blocks := shellBlock.FindAllStringSubmatch(document(t, "docs/conformance.md"), -1)
	t.Chdir(root)
	_, noTorch := findTorch()
	dir := filepath.Join(t.TempDir(), "baseline")
	seen := 0
	for _, b := range blocks {
		t.Setenv("PLUMB_STORE", filepath.Join(t.TempDir(), "plumb.db"))
		for line := range strings.Lines(b[1]) {
			seen++
			args, _ := strings.CutPrefix(strings.TrimSpace(line), "plumb ")
			if strings.Contains(args, " baseline") {
				if noTorch != nil {
					continue
				}
				args = strings.Replace(args, " baseline", " "+dir, 1)
			}
			if out, _, err := executed(t, strings.Fields(args)...); err != nil || out == "" {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if seen != 15 {
		t.Errorf("the page shows %d commands", seen)
	}
}
