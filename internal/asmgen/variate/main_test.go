package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFresh regenerates the files of package variate elsewhere and wants the bytes that are checked in.
func TestFresh(t *testing.T) {
	root := t.TempDir()
	here, target := filepath.Join(root, "internal", "asmgen"), filepath.Join(root, "internal", "variate")
	for _, dir := range []string{here, target} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(root, "generate")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, "-out", "../../internal/variate/variate_amd64.s", "-stubs", "../../internal/variate/variate_stub_amd64.go", "-pkg", "variate")
	run.Dir = here
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"variate_amd64.s", "variate_stub_amd64.go"} {
		got, err := os.ReadFile(filepath.Join(target, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", "..", "variate", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("internal/variate/%s is stale: run go generate ./internal/variate", name)
		}
	}
}
