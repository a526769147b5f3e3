package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// userop is the operator of the guide, and elsewhere what other frameworks want of it.
const userop = root + "/examples/userop/"

// TestComparisonIsCounted: the files and lines in the guide's table are those of the
// code beside it, and the operators of the guide as short as it says.
func TestComparisonIsCounted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/write-an-operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]string{
		"Plumb":                   {"leaky.go", "leaky_test.go", "table.go", "plumb/main.go"},
		"OneFlow":                 below(t, "elsewhere/oneflow"),
		"PyTorch `torch.library`": below(t, "elsewhere/torch"),
		"JAX":                     below(t, "elsewhere/jax"),
	} {
		row := fmt.Sprintf("| %s | %d | %d |", name, len(files), lines(t, files...))
		if !strings.Contains(string(text), row) {
			t.Errorf("the table lacks %s", row)
		}
	}
	if n := lines(t, "leaky.go", "leaky_test.go"); n >= 60 {
		t.Errorf("leaky_relu_yzh has %d lines", n)
	}
	if n := lines(t, "peaks.go"); n >= 120 {
		t.Errorf("peaks has %d lines", n)
	}
}

// below returns the files below a folder of userop that are written, not made.
func below(t *testing.T, folder string) (files []string) {
	err := filepath.WalkDir(userop+folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && regexp.MustCompile(`\.(cpp|cc|py|td|yaml)$`).MatchString(path) {
			files = append(files, strings.TrimPrefix(path, userop))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var comment = regexp.MustCompile(`^\s*(//|#($|[^\w]))`)

// lines counts those that are neither blank nor a comment.
func lines(t *testing.T, files ...string) (n int) {
	for _, file := range files {
		text, err := os.ReadFile(userop + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.TrimSpace(line) != "" && !comment.MatchString(line) {
				n++
			}
		}
	}
	return n
}
