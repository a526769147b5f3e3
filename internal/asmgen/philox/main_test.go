package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFresh regenerates the files of package choice elsewhere and wants the bytes that are checked in.
func TestFresh(t *testing.T) {
	root := t.TempDir()
	here, target := filepath.Join(root, "internal", "asmgen"), filepath.Join(root, "choice")
	for _, dir := range []string{here, target} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(root, "generate")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, "-out", "../../choice/philox_amd64.s", "-stubs", "../../choice/philox_stub_amd64.go", "-pkg", "choice")
	run.Dir = here
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"philox_amd64.s", "philox_stub_amd64.go"} {
		got, err := os.ReadFile(filepath.Join(target, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", "..", "..", "choice", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("choice/%s is stale: run go generate ./choice", name)
		}
	}
}
