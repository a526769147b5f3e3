package accepted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

const example = `
version: 1
known:
  - operator: conv_transpose2d
    kind: shape
    dtype: bfloat16
    reason: the shape of conv2d is given
    link: https://example.org/1
    owner: ada
    until: 2027-01-31
`

func read(t *testing.T, text string) *List {
	t.Helper()
	l, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func record(target string, d tensor.DType, kind verdict.Kind) *verdict.Record {
	p := &program.Program{
		Inputs: []program.Input{{Name: "x", DType: d, Shape: []int{2}, Fill: program.Fill{Dist: program.Uniform, Hi: 1}}},
		Calls:  []program.Call{{Result: "y", Target: target, Args: []any{program.Ref("x")}}},
	}
	v := &verdict.Verdict{Word: verdict.Aligned}
	if kind != "" {
		v = &verdict.Verdict{Word: verdict.Misaligned, Kind: kind, Reason: "why", Where: &verdict.Where{Part: backend.PartValue, Target: target, Name: "y"}}
	}
	return &verdict.Record{Candidate: "native", Program: p, Verdict: v, Reference: &backend.Outcome{}}
}

var day = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestExcuse(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Entry)
		r    *verdict.Record
		want verdict.Word
	}{
		{"in scope", nil, record("torch.nn.functional.conv_transpose2d", tensor.BF16, "shape"), verdict.Known},
		{"the module too", nil, record("torch.nn.ConvTranspose2d", tensor.BF16, "shape"), verdict.Known},
		{"another kind at the same place", nil, record("torch.conv_transpose2d", tensor.BF16, "value"), verdict.Misaligned},
		{"another dtype", nil, record("torch.conv_transpose2d", tensor.F32, "shape"), verdict.Misaligned},
		{"another operator", nil, record("torch.conv2d", tensor.BF16, "shape"), verdict.Misaligned},
		{"another candidate", func(e *Entry) { e.Candidate = "mine" }, record("torch.conv_transpose2d", tensor.BF16, "shape"), verdict.Misaligned},
		{"another signature", func(e *Entry) { e.Signature = "misaligned shape of conv_transpose2d (int)" }, record("torch.conv_transpose2d", tensor.BF16, "shape"), verdict.Misaligned},
		{"its signature", func(e *Entry) { e.Signature = "misaligned shape of conv_transpose2d" }, record("torch.conv_transpose2d", tensor.BF16, "shape"), verdict.Known},
		{"another layout", func(e *Entry) { e.Layout = "expanded" }, record("torch.conv_transpose2d", tensor.BF16, "shape"), verdict.Misaligned},
		{"expired", func(e *Entry) { e.Until = "2026-11-20" }, record("torch.conv_transpose2d", tensor.BF16, "shape"), verdict.Misaligned},
		{"on its last day", func(e *Entry) { e.Until = "2026-11-21" }, record("torch.conv_transpose2d", tensor.BF16, "shape"), verdict.Known},
		{"aligned stays", nil, record("torch.conv_transpose2d", tensor.BF16, ""), verdict.Aligned},
	} {
		l := read(t, example)
		if c.edit != nil {
			c.edit(&l.Known[0])
		}
		NewWatch(l, day).Excuse(c.r)
		if c.r.Verdict.Word != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.r.Verdict.Word, c.want)
		}
	}
}

func TestReadNamesTheMistake(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"    reason: the shape of conv2d is given\n", "", "entry 1: reason is missing"},
		{"2027-01-31", "soon", "until: \"soon\" is not a day"},
		{"    owner: ada\n", "", "owner is missing"},
		{"bfloat16", "float12", "dtype"},
		{"    link:", "    lnik:", "lnik"},
		{"version: 1", "version: 2", "version 2"},
		{"kind: shape", "kind: shape\n    layout: odd", "layout"},
	} {
		_, err := Read(strings.NewReader(strings.Replace(example, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: error %v, want one with %q", c.to, c.from, err, c.want)
		}
	}
	if _, err := Read(strings.NewReader(strings.Repeat("#", maxFile+2))); err == nil {
		t.Error("a list of any size is read")
	}
}

func TestWritesWhatItReads(t *testing.T) {
	l := read(t, example)
	b, err := l.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again := read(t, string(b))
	if again.Known[0] != l.Known[0] {
		t.Errorf("got %+v, want %+v", again.Known[0], l.Known[0])
	}
}

// TestFixed: an entry is fixed after some clean runs on end; a failure between
// them begins the count again, and a run without cases in scope says nothing.
func TestFixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "history.json")
	l := read(t, example)
	play := func(kinds ...verdict.Kind) int {
		h, err := OpenHistory(path)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWatch(l, day)
		for _, k := range kinds {
			for range enough {
				w.Excuse(record("torch.conv_transpose2d", tensor.BF16, k))
			}
		}
		fixed, err := h.Note(w, 3)
		if err != nil {
			t.Fatal(err)
		}
		return len(fixed)
	}
	for i, c := range []struct {
		kinds []verdict.Kind
		want  int
	}{{[]verdict.Kind{""}, 0}, {[]verdict.Kind{""}, 0}, {[]verdict.Kind{"", "shape"}, 0}, {[]verdict.Kind{""}, 0}, {nil, 0}, {[]verdict.Kind{""}, 0}, {[]verdict.Kind{""}, 1}} {
		if got := play(c.kinds...); got != c.want {
			t.Errorf("run %d: %d fixed, want %d", i, got, c.want)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if h, err := OpenHistory(path); err == nil || h == nil || len(h.Clean) != 0 {
		t.Errorf("a broken history: %v, %v", h, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(example)
	f.Add("version: 1\nknown: [{}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		if _, err := l.Bytes(); err != nil {
			t.Errorf("cannot write what was read: %v", err)
		}
	})
}
