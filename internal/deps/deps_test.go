package deps

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "plumb"

func lattice(t *testing.T) map[string][]string {
	allowed := map[string][]string{}
	for line := range strings.Lines(Lattice) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		pkg, deps, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("lattice line %q has no colon", line)
		}
		allowed[pkg] = strings.Fields(deps)
	}
	return allowed
}

// imports returns the packages of this module that the non-test files of each
// package import.
func imports(t *testing.T) map[string][]string {
	found := map[string][]string{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := fs.Stat(root, filepath.Join(path, "go.mod")); path != "." && err == nil {
				return fs.SkipDir
			}
			if strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		found[pkg] = append(found[pkg], "")
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if rest, ok := strings.CutPrefix(name, module+"/"); ok {
				found[pkg] = append(found[pkg], rest)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLattice(t *testing.T) {
	allowed, found := lattice(t), imports(t)
	for pkg, deps := range found {
		if _, ok := allowed[pkg]; !ok {
			t.Errorf("package %s is not in the lattice", pkg)
			continue
		}
		for _, d := range deps {
			if d != "" && !slices.Contains(allowed[pkg], d) {
				t.Errorf("package %s imports %s, which the lattice does not allow", pkg, d)
			}
		}
	}
	for pkg, deps := range allowed {
		if found[pkg] == nil {
			t.Errorf("the lattice lists %s, which has no Go file", pkg)
		}
		for _, d := range deps {
			if _, ok := allowed[d]; !ok {
				t.Errorf("the lattice lets %s import %s, which it does not list", pkg, d)
			}
		}
	}
}

// TestLatticeHasNoCycle orders the packages; Go itself forbids cycles among
// imports, this forbids them among what is allowed.
func TestLatticeHasNoCycle(t *testing.T) {
	allowed := lattice(t)
	state := map[string]int{}
	var visit func(string, []string)
	visit = func(pkg string, path []string) {
		switch state[pkg] {
		case 1:
			t.Fatalf("cycle: %s", strings.Join(append(path, pkg), " → "))
		case 2:
			return
		}
		state[pkg] = 1
		for _, d := range allowed[pkg] {
			visit(d, append(path, pkg))
		}
		state[pkg] = 2
	}
	for pkg := range allowed {
		visit(pkg, nil)
	}
}
