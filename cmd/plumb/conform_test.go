package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// conformed runs a conform command.
func conformed(t *testing.T, args ...string) (out, warnings string, err error) {
	var stdout, stderr strings.Builder
	cmd := newRoot()
	cmd.SetArgs(append([]string{"conform"}, args...))
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
	blocks := shellBlock.FindAllStringSubmatch(document(t, "docs/conformance.md"), -1)
	t.Chdir(root)
	_, noTorch := findTorch()
	dir := filepath.Join(t.TempDir(), "baseline")
	seen := 0
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			seen++
			args, _ := strings.CutPrefix(strings.TrimSpace(line), "plumb conform ")
			if strings.Contains(args, " baseline") {
				if noTorch != nil {
					continue
				}
				args = strings.Replace(args, " baseline", " "+dir, 1)
			}
			if out, _, err := conformed(t, strings.Fields(args)...); err != nil || out == "" {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if seen != 6 {
		t.Errorf("the page shows %d commands", seen)
	}
}
