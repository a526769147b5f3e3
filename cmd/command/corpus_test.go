package command

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
)

// TestCorpus runs test files as users of PyTorch write them, on PyTorch. Those
// that do not run clean are listed with what is said of them.
func TestCorpus(t *testing.T) {
	slow(t)
	needTorch(t)
	t.Parallel() // half of the time one side waits for the other
	const dir = "../../suites/corpus"
	w, _ := play(t, nil, []string{dir}, "--reference", "torch", "--seed", "7")
	said := map[string]string{}
	for _, r := range w.records {
		if word := r.Verdict.Word; !slices.Contains([]verdict.Word{verdict.Aligned, verdict.Rejected, verdict.Known}, word) && said[r.Test] == "" {
			said[r.Test] = r.Verdict.Text()
		}
	}
	for _, e := range w.ends {
		if e.Err != nil {
			said[e.Test] = e.Err.Error()
		}
	}
	listed := openTests(t, filepath.Join(dir, "open.txt"))
	for test, text := range said {
		id := filepath.Base(test)
		if !listed[id] {
			t.Errorf("%s does not run clean: %s", id, text)
		}
		delete(listed, id)
	}
	for _, id := range slices.Sorted(maps.Keys(listed)) {
		t.Errorf("open.txt lists %s, which runs clean", id)
	}
	if clean := len(w.ends) - len(said); clean < 300 {
		t.Errorf("%d functions run clean, want at least 300", clean)
	}
}

// openTests returns the ids that a list of open tests begins its lines with.
func openTests(t *testing.T, file string) map[string]bool {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if id, _, listed := strings.Cut(line, "  "); listed && !strings.HasPrefix(line, "#") {
			ids[id] = true
		}
	}
	return ids
}
