package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
)

// judgedConfig has cases that both sides compute, one that both refuse, and one
// that no one knows; large results are among them.
const judgedConfig = `
diopi_configs = {
    'act': dict(name=['relu', 'tanh'], interface=['torch'], is_inplace=True, tensor_para=dict(
        args=[dict(ins=['input'], shape=((3,), (40, 900), (0, 2)), dtype=[np.float32, np.float64], requires_grad=[True])])),
    'bad': dict(name=['matmul'], interface=['torch'], tensor_para=dict(
        args=[dict(ins=['input'], shape=((2, 3),), dtype=[np.float32]), dict(ins=['other'], shape=((2, 3),), dtype=[np.float32])])),
    'unknown': dict(name=['frobnicate'], interface=['torch'], tensor_para=dict(
        args=[dict(ins=['input'], shape=((2,),), dtype=[np.float32])])),
    'many': dict(name=['neg'], interface=['torch'], tensor_para=dict(
        args=[dict(ins=['input'], shape=[(2,)] * 520, dtype=[np.float32])])),
}
`

// generated records judgedConfig by native.
func generated(t *testing.T, flags ...string) (config, dir string) {
	t.Helper()
	config, dir = save(t, "judged.py", judgedConfig), filepath.Join(t.TempDir(), "base")
	args := append([]string{"gen", config, "--out", dir, "--reference", "native", "--seed", "3", "--jobs", "1"}, flags...)
	out, _, err := conformed(t, args...)
	if err != nil || !strings.Contains(out, "534 cases") || !strings.Contains(out, "next: plumb conform run --baseline "+dir) {
		t.Fatalf("%v\n%s", err, out)
	}
	return config, dir
}

// judged are the verdicts of a run by a baseline, the shipped one for "", and the reasons of those that are faults.
func judged(t *testing.T, dir string, args ...string) (map[verdict.Word]int, []string, error) {
	t.Helper()
	args = append([]string{"run", "--json"}, args...)
	if dir != "" {
		args = append(args, "--baseline", dir)
	}
	out, _, err := conformed(t, args...)
	counts := map[verdict.Word]int{}
	var reasons []string
	for line := range strings.Lines(out) {
		var r struct {
			Verdict verdict.Word
			Reason  string
		}
		if jsonErr := json.Unmarshal([]byte(line), &r); jsonErr != nil {
			t.Fatal(jsonErr)
		}
		if r.Verdict == "" {
			continue
		}
		counts[r.Verdict]++
		if r.Verdict == verdict.Fault {
			reasons = append(reasons, r.Reason)
		}
	}
	return counts, reasons, err
}

func exitCode(err error) int {
	if e, ok := err.(*exitError); ok {
		return e.code
	}
	return exitAligned
}

func TestConformGenRun(t *testing.T) {
	for _, flags := range [][]string{nil, {"--self-contained"}} {
		config, dir := generated(t, flags...)
		for _, args := range [][]string{nil, {config}, {"--candidate", "native:graph"}} {
			got, _, err := judged(t, dir, args...)
			if err != nil || got[verdict.Aligned] != 36+520 || got[verdict.Rejected] != 1 || got[verdict.Unsupported] != 1 {
				t.Errorf("%v %v: %v, %v", flags, args, got, err)
			}
		}
		if got, _, err := judged(t, dir, "--fname", "relu"); err != nil || got[verdict.Aligned] != 18 || len(got) != 1 {
			t.Errorf("--fname relu: %v, %v", got, err)
		}
		out, _, err := conformed(t, "run", "--baseline", dir)
		if err != nil || !strings.Contains(out, "relu        18 aligned") || !strings.Contains(out, "== 556 aligned, 1 unsupported, 1 rejected") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestConformOtherConfig judges by a config that is not the recorded one.
func TestConformOtherConfig(t *testing.T) {
	_, dir := generated(t)
	other := save(t, "judged.py", strings.ReplaceAll(judgedConfig, "(40, 900)", "(40, 901)"))
	got, reasons, err := judged(t, dir, other)
	if exitCode(err) != exitFault || got[verdict.Fault] != 8 || got[verdict.Aligned] != 24+520 || !strings.Contains(reasons[0], "was recorded with another program for this case") {
		t.Errorf("%v %v\n%s", err, got, strings.Join(reasons, "\n"))
	}
	more := save(t, "judged.py", strings.ReplaceAll(judgedConfig, "'relu', 'tanh'", "'relu', 'tanh', 'sin'"))
	_, warnings, err := conformed(t, "run", more, "--baseline", dir)
	if err != nil || !strings.Contains(warnings, "6 of the 540 cases of "+more+" are not in "+dir) {
		t.Errorf("%v\n%s", err, warnings)
	}
}

// TestConformBadBaselines spoils a baseline: what is wrong is said with the file
// and the case, and what is not spoilt is judged.
func TestConformBadBaselines(t *testing.T) {
	const shard = "cases-00000.safetensors.zst"
	edit := func(name string, f func(b []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), f(b), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name, want string
		spoil      func(t *testing.T, dir string)
	}{
		{"truncated shard", shard + " is truncated", edit(shard, func(b []byte) []byte { return b[:len(b)/2] })},
		{"flipped byte", shard + " is corrupt", edit(shard, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })},
		{"missing shard", shard + " is missing", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, shard)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, dir := generated(t)
			tt.spoil(t, dir)
			got, reasons, err := judged(t, dir)
			if exitCode(err) != exitFault || got[verdict.Fault] != 512 || got[verdict.Aligned] != 22 || !strings.Contains(reasons[0], tt.want) {
				t.Errorf("%v %v\n%s", err, got, strings.Join(reasons, "\n"))
			}
		})
	}
	manifests := []struct {
		name, want string
		spoil      func(t *testing.T, dir string)
	}{
		{"newer manifest", "manifest.json: the baseline has version 4 of the format; this Plumb reads 3", edit("manifest.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"format": 3`, `"format": 4`, 1))
		})},
		{"cut manifest", "manifest.json: truncated or corrupt", edit("manifest.json", func(b []byte) []byte { return b[:len(b)/2] })},
		{"no manifest", "plumb conform gen makes one", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "manifest.json")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range manifests {
		t.Run(tt.name, func(t *testing.T) {
			_, dir := generated(t)
			tt.spoil(t, dir)
			if _, _, err := conformed(t, "run", "--baseline", dir); exitCode(err) != exitUsage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestConformConfigDamaged: without the recorded config the cases are judged, and
// what needs it is a mistake that names it.
func TestConformConfigDamaged(t *testing.T) {
	for _, spoil := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.WriteFile(path, []byte("x = {}"), 0o644) },
	} {
		_, dir := generated(t)
		config := filepath.Join(dir, "config.py")
		if err := spoil(config); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := conformed(t, "run", "--baseline", dir, "--fname", "relu")
		if err != nil || !strings.Contains(warnings, config+" is ") {
			t.Errorf("%v\n%s", err, warnings)
		}
		if _, _, err := conformed(t, "run", "--baseline", dir, "--nhwc"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), config+" is ") {
			t.Errorf("--nhwc: %v", err)
		}
	}
}

// TestConformShippedRun judges by the shipped baseline.
func TestConformShippedRun(t *testing.T) {
	got, _, err := judged(t, "", "--fname", "std,conv2d")
	if err != nil || got[verdict.Aligned] < 10 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestConformFlags are mistakes in the flags.
func TestConformFlags(t *testing.T) {
	config, dir := generated(t)
	tests := []struct {
		want string
		args []string
	}{
		{"the config has no such function", []string{"gen", config, "--out", dir, "--fname", "rlu"}},
		{"--jobs 0", []string{"gen", config, "--out", dir, "--jobs", "0"}},
		{"--truth some", []string{"gen", config, "--out", dir, "--truth", "some"}},
		{"--memory lots", []string{"gen", config, "--out", dir, "--memory", "lots"}},
		{"unknown backend", []string{"gen", config, "--out", dir, "--reference", "nosuchframework"}},
		{"the baseline has no such function", []string{"run", "--baseline", dir, "--fname", "rlu"}},
		{"unknown backend", []string{"run", "--baseline", dir, "--candidate", "nosuchframework"}},
		{"is no baseline", []string{"run", "--baseline", t.TempDir()}},
	}
	for _, tt := range tests {
		if _, _, err := conformed(t, tt.args...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.args, err)
		}
	}
}

// TestConformTorch records small.py with PyTorch and judges native by it.
func TestConformTorch(t *testing.T) {
	slow(t)
	if _, err := findTorch(); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(t.TempDir(), "base")
	out, _, err := conformed(t, "gen", filepath.Join(root, "conform", "testdata", "small.py"), "--out", dir, "--jobs", "1")
	if err != nil || !strings.Contains(out, "22 cases") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, candidate := range []string{"native", "torch"} {
		got, _, err := judged(t, dir, "--candidate", candidate)
		if err != nil || got[verdict.Aligned] < 14 || slices.ContainsFunc(verdict.Words, func(w verdict.Word) bool { return w.IsFinding() && got[w] > 0 }) {
			t.Errorf("%s: %v, %v", candidate, got, err)
		}
	}
}
