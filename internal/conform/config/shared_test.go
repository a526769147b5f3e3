package config

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/suites"
)

const shared = "../../../../shared/data/"

// TestDevConfig expands the dev config and compares every case, whole and byte
// for byte, with what DIOPI's own parser makes of it.
func TestDevConfig(t *testing.T) {
	src, err := os.ReadFile(shared + "conformance_dev.py")
	if err != nil {
		t.Skip("no dev config: ", err)
	}
	c, err := Load("conformance_dev.py", src)
	if err != nil {
		t.Fatal(err)
	}
	want := devCases(t)
	n := 0
	for got := range c.Cases() {
		line := string(got.AppendJSON(nil))
		if n >= len(want) {
			t.Fatalf("one case too many: %s", line)
		}
		if line != want[n] {
			t.Fatalf("case %d:\ngot  %s\nwant %s", n, line, want[n])
		}
		n++
	}
	if n != len(want) || n < 8000 {
		t.Errorf("%d cases, want %d", n, len(want))
	}
}

// TestModelsAreDIOPIs compares the models that Plumb ships with DIOPI's lists.
func TestModelsAreDIOPIs(t *testing.T) {
	src, err := os.ReadFile(shared + "diopi_models.json")
	if err != nil {
		t.Skip("no lists of models: ", err)
	}
	var want map[string][]string
	if err := json.Unmarshal(src, &want); err != nil {
		t.Fatal(err)
	}
	models, err := LoadModels("models.json", suites.Models)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, m := range models {
		got[m.Name] = m.Functions
	}
	for name := range want {
		slices.Sort(want[name])
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 43 {
		t.Errorf("%d models (-want +got):\n%s", len(got), diff)
	}
}

// devCases are the dev cases without their derived flags.
func devCases(t *testing.T) []string {
	f, err := os.Open(shared + "conformance_dev_cases.json.gz")
	if err != nil {
		t.Skip("no dev cases: ", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	var out []string
	for lines.Scan() {
		line := bytes.TrimRight(lines.Bytes(), ",")
		if !bytes.HasPrefix(line, []byte(`{"index"`)) {
			continue
		}
		at, end := bytes.Index(line, []byte(`, "flags": {`)), bytes.Index(line, []byte(`, "item": `))
		if at < 0 || end < at || !json.Valid(line) {
			t.Fatalf("not a case: %.200s", line)
		}
		out = append(out, string(line[:at])+string(line[end:]))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
