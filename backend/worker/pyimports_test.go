package worker

import (
	"cmp"
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

var (
	fromLine   = regexp.MustCompile(`^from (plumb_\w+) import (.+)`)
	classLine  = regexp.MustCompile(`^class (\w+)(?:\(([\w., ]*)\))?:`)
	methodLine = regexp.MustCompile(`^    def (\w+)\(`)
	attributes = regexp.MustCompile(`self\.(\w+)(?:, self\.\w+)* = `)
)

// TestNoAttributeHidesAMethod: what a class of the Python worker keeps in itself has the
// name of no method of a class below it, which would be hidden there.
func TestNoAttributeHidesAMethod(t *testing.T) {
	files, err := fs.Glob(sources, "py/*.py")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	// Classes are known by file and name, such as plumb_subject.Run.
	bases, methods, kept := map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, file := range files {
		text, err := fs.ReadFile(sources, file)
		if err != nil {
			t.Fatal(err)
		}
		module, from, class := strings.TrimSuffix(path.Base(file), ".py"), map[string]string{}, ""
		for line := range strings.Lines(string(text)) {
			if m := classLine.FindStringSubmatch(line); m != nil {
				class = module + "." + m[1]
				bases[class] = nil
				for base := range strings.SplitSeq(m[2], ",") {
					if base = strings.TrimSpace(base); !strings.Contains(base, ".") {
						base = cmp.Or(from[base], module) + "." + base
					}
					bases[class] = append(bases[class], base)
				}
			} else if m := fromLine.FindStringSubmatch(line); m != nil {
				for name := range strings.SplitSeq(m[2], ", ") {
					from[strings.TrimSpace(name)] = m[1]
				}
			} else if line[0] > ' ' {
				class = ""
			}
			if m := methodLine.FindStringSubmatch(line); m != nil && class != "" {
				methods[class] = append(methods[class], m[1])
			}
			for _, m := range attributes.FindAllStringSubmatch(line, -1) {
				kept[class] = append(kept[class], m[1])
			}
		}
	}
	if len(bases) < 10 || len(kept) < 10 {
		t.Fatalf("%d classes, of which %d keep something", len(bases), len(kept))
	}
	var above func(class string) []string
	above = func(class string) []string {
		all := []string{class}
		for _, base := range bases[class] {
			all = append(all, above(base)...)
		}
		return all
	}
	for class := range bases {
		for _, over := range above(class)[1:] {
			for _, name := range kept[over] {
				if slices.Contains(methods[class], name) {
					t.Errorf("%s keeps %s, which is a method of %s", over, name, class)
				}
			}
		}
	}
}
