package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/internal/campaign/report"
)

// TestConformReport: a device maker's report of a worker whose relu is broken
// says what fails, with the smallest case, what networks lack, and what has
// changed since the run before.
func TestConformReport(t *testing.T) {
	dir := recordedModes(t)
	store := filepath.Join(t.TempDir(), "results.db")
	broken := ownWorkerBinary(t, "relu_of(double x) { return x < 0 ? 0 : x; }", "relu_of(double x) { return x < 0 ? 0 : x * 1.5; }")
	sound := ownWorkerBinary(t)
	files := map[string]string{}
	for _, name := range []string{"html", "markdown", "summary", "dropped"} {
		files[name] = filepath.Join(t.TempDir(), name)
	}
	if _, _, err := conformed(t, "run", "--baseline", dir, "--candidate", sound, "--summary", files["summary"]); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--baseline", dir, "--candidate", broken, "--before", files["summary"], "--html", files["html"], "--markdown", files["markdown"], "--dropped", files["dropped"], "--store", store}
	if _, _, err := conformed(t, args...); exitCode(err) != exitFindings {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"markdown": {
			"# Conformance of " + broken, "| float32 | ", "| relu | forward | misaligned (value) | 4 | `relu::relu_", "## Slowest functions",
			"| resnet50 | no | 1 of 20 | argmax max_pool2d | relu | adaptive_avg_pool2d ", "| newly failing | relu |", "| baseline | recorded by plumb ",
		},
		"html":    {"<h2>Failures that are alike</h2>", "<h2>Networks</h2>", "<td>newly failing</td><td class=\"text\">relu</td>"},
		"dropped": {"unsupported\tpool::max_pool2d_0.pth\tthe candidate does not support this program: "},
	} {
		text, err := os.ReadFile(files[name])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
	}
	if _, _, err := conformed(t, "run", "--baseline", dir, "--candidate", broken, "--summary", files["summary"], "--store", store); exitCode(err) != exitFindings {
		t.Fatal(err)
	}
	var c report.Conformance
	text, err := os.ReadFile(files["summary"])
	if err != nil || json.Unmarshal(text, &c) != nil || c.Before == nil || !strings.HasPrefix(c.Before.Run, "run 1 of ") || len(c.Before.NewlyFailing) != 0 {
		t.Errorf("%v: %+v", err, c.Before)
	}
	if _, _, err := conformed(t, "run", "--baseline", dir, "--before", files["html"], "--summary", files["summary"]); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "is no --summary of a run") {
		t.Errorf("%v", err)
	}
}

// TestConformSeeded: a recording without results is made again with the same bits.
func TestConformSeeded(t *testing.T) {
	config := save(t, "modes.py", modesConfig)
	seeded, full := filepath.Join(t.TempDir(), "seeded"), filepath.Join(t.TempDir(), "full")
	out, _, err := conformed(t, "gen", config, "--out", seeded, "--reference", "native", "--seeded", "--seed", "7")
	if err != nil || !strings.Contains(out, "next: plumb conform gen --from "+seeded) {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, _, err := conformed(t, "run", "--baseline", seeded); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "holds no results") {
		t.Errorf("%v", err)
	}
	out, _, err = conformed(t, "gen", "--from", seeded, "--out", full, "--reference", "native")
	if err != nil || !strings.Contains(out, "all bits are those of "+seeded) {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, _, err := conformed(t, "run", "--baseline", full); err != nil || !strings.Contains(out, "== 16 aligned") {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(seeded, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), `"seed": 7`, `"seed": 8`, 1)
	if err := os.WriteFile(filepath.Join(seeded, "manifest.json"), []byte(other), 0o644); err != nil || other == string(text) {
		t.Fatal(err)
	}
	_, _, err = conformed(t, "gen", "--from", seeded, "--out", filepath.Join(t.TempDir(), "again"), "--reference", "native")
	if exitCode(err) != exitFault || !strings.Contains(err.Error(), "1 of 1 shards have other bits") {
		t.Errorf("%v", err)
	}
}
