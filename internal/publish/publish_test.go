package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plumb/internal/module"
)

const published = "example.com/team/plumb"

func TestRenameImports(t *testing.T) {
	for _, c := range [][2]string{
		{"package a\n\nimport \"plumb\"\n", "package a\n\nimport \"example.com/team/plumb\"\n"},
		{"package a\n\nimport (\n\t\"plumb/op\"\n\to \"plumb/ops\"\n)\n", "package a\n\nimport (\n\t\"example.com/team/plumb/op\"\n\to \"example.com/team/plumb/ops\"\n)\n"},
		{"package a\n\nimport \"plumber\"\n", "package a\n\nimport \"plumber\"\n"},
		{"package a\n\n//go:generate go run plumb/internal/opgen\n", "package a\n\n//go:generate go run example.com/team/plumb/internal/opgen\n"},
		{"package a\n\nconst name = \"plumb\"\n", "package a\n\nconst name = \"plumb\"\n"},
	} {
		if got, err := renameImports("a.go", []byte(c[0]), "plumb", published); err != nil || string(got) != c[1] {
			t.Errorf("%s\nis renamed to\n%s\nwith error %v", c[0], got, err)
		}
	}
}

func TestPublishWantsAPathWithADot(t *testing.T) {
	if err := publish(t.TempDir(), module.Path, "plumb2"); err == nil || !strings.Contains(err.Error(), "dot") {
		t.Errorf("the error is %v", err)
	}
}

// TestPublishedBuilds renames a copy of this module, compiles a few packages of it (what
// changes is imports alone), and wants every import of all and of the examples to be there
// and none of the old path.
func TestPublishedBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything under another path")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, visible(t)); err != nil {
		t.Fatal(err)
	}
	if err := publish(dir, module.Path, published); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ folder, command string }{
		{".", "go list -test -deps ./..."},
		{".", "go vet ./internal/module ./program"},
		{"examples/gotest", "go list -test -deps ./..."},
		{"examples/userop", "go list -test -deps ./..."},
		{"examples/conformkit", "go list -test -deps ./..."},
		{"internal/asmgen", "go list -test -deps ./..."},
	} {
		argv := strings.Fields(c.command)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = filepath.Join(dir, c.folder), append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s in %s: %v\n%s", c.command, c.folder, err, out)
		}
	}
	list := exec.Command("go", "list", "-deps", "./...")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.Lines(string(out)) {
		if _, ok := renamed(strings.TrimSpace(pkg), module.Path, published); ok {
			t.Errorf("still %s", pkg)
		}
	}
}

// visible is the module's tree without what begins with a dot.
func visible(t *testing.T) fs.FS {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	return undotted{os.DirFS(dir)}
}

type undotted struct{ fs.FS }

// ReadDir lists a folder's entries that do not begin with a dot.
func (u undotted) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(u.FS, name)
	var list []fs.DirEntry
	for _, d := range all {
		if !strings.HasPrefix(d.Name(), ".") {
			list = append(list, d)
		}
	}
	return list, err
}
