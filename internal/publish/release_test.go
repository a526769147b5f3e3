package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestReleaseIsStatic builds the command as README says releases are built: the
// binary asks for no loader and no shared library, and runs.
func TestReleaseIsStatic(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds the command; looks at an ELF file")
	}
	binary := filepath.Join(t.TempDir(), "plumb")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/plumb")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary asks for a loader")
		}
	}
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the binary needs %v, %v", libraries, err)
	}
	if out, err := exec.Command(binary, "--help").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
