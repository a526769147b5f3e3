package command

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{
		"64MiB": 64 << 20, "4KiB": 4096, "1GiB": 1 << 30, "8001": 8000,
		"": 0, "64MB": 0, "-1MiB": 0, "0": 0, "17GiB": 0, "1KiB": 0, "99999999999999GiB": 0,
	} {
		got, ok := parseSize(text)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q is %d bytes (%v), want %d", text, got, ok, want)
		}
	}
}

// TestBenchCompareAlone measures without Python: the peers are named as missing.
func TestBenchCompareAlone(t *testing.T) {
	cmd := newBenchCompare()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--size", "64KiB", "--count", "1", "--python", "/nowhere/python", "--json"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	var b compareBench
	if err := json.Unmarshal([]byte(out.String()), &b); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range b.Rows {
		names = append(names, r.Name)
		if !(r.GBs > 0) || !(r.PerMemory > 0) || r.PerNumpy != 0 {
			t.Errorf("row %+v", r)
		}
	}
	if got, want := strings.Join(names, ", "), "memory read, bit-identical, all statistics, rules alone"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	if len(b.Skipped) != 1 || !strings.Contains(b.Skipped[0], "numpy.allclose and torch.allclose") || !strings.Contains(b.Skipped[0], "/nowhere/python") {
		t.Errorf("skipped %q", b.Skipped)
	}
}
