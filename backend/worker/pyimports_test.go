package worker

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var importLine = regexp.MustCompile(`(?m)^\s*(?:import|from) (plumb_\w+)`)

// TestPythonImportsHaveNoCycle: the files of the Python worker import one
// another in one direction, those within functions included.
func TestPythonImportsHaveNoCycle(t *testing.T) {
	files, err := fs.Glob(sources, "py/*.py")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	imports := map[string][]string{}
	for _, file := range files {
		text, err := fs.ReadFile(sources, file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(path.Base(file), ".py")
		for _, m := range importLine.FindAllStringSubmatch(string(text), -1) {
			imports[name] = append(imports[name], m[1])
		}
	}
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if slices.Contains(above, name) {
			t.Fatalf("cycle: %s", strings.Join(append(above, name), " → "))
		}
		for _, next := range imports[name] {
			visit(next, append(slices.Clone(above), name))
		}
	}
	for name := range imports {
		visit(name, nil)
	}
}
