package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	f, err := Parse("plumb.toml", []byte(`# ours
sources = [
  "tests/", # a folder
  'ops:conv*',
]
number = 1_000
check-graph = true

[set]
shrink.runs = 0
"tensor.max" = "1MB"

[ops.run]
dtype = ["float16"]
limits = { rtol = 1e-3 }
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{[]string{"sources"}, []string{"tests/", "ops:conv*"}, true, 2},
		{[]string{"number"}, []string{"1000"}, false, 6},
		{[]string{"check-graph"}, []string{"true"}, false, 7},
		{[]string{"set", "shrink", "runs"}, []string{"0"}, false, 10},
		{[]string{"set", "tensor.max"}, []string{"1MB"}, false, 11},
		{[]string{"ops", "run", "dtype"}, []string{"float16"}, true, 14},
		{[]string{"ops", "run", "limits", "rtol"}, []string{"1e-3"}, false, 15},
	}
	if d := cmp.Diff(want, f.Entries); d != "" {
		t.Error(d)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\na = 2":      "plumb.toml:2",
		"\nx = [":           "plumb.toml:2",
		"[[a]]\nb = 1":      "plumb.toml:1: [[a]]: Plumb has no arrays of tables",
		"\n\nx = [[1]]":     "plumb.toml:3: x: want a string",
		"x = 1979-05-27":    "plumb.toml:1: x: want a string",
		"x = [{a = 1}]":     "plumb.toml:1: x: want a string",
		"\n= 3":             "plumb.toml:2",
		"x = \"\xff\"":      "plumb.toml:1",
		"x = 1 # \x00 in a": "plumb.toml:1",
	} {
		if _, err := Parse("plumb.toml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
}

// TestFind: the nearest file above counts, and a folder of its name does not.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(filepath.Join(deep, Name), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(deep); err != nil || got != path {
		t.Error(got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a = 1\n[b.c]\nd = ['x', 2.5, true]\ne = {f = 1}"))
	f.Add([]byte("a = 0x1F # c\n[[b]]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("x", text)
		if err != nil {
			return
		}
		for _, e := range file.Entries {
			if len(e.Key) == 0 || e.Line < 1 || !e.List && len(e.Values) != 1 {
				t.Errorf("%q: %+v", text, e)
			}
		}
	})
}
