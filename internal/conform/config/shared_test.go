package config

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
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
