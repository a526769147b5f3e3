package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestFresh regenerates the files of package kernel elsewhere and wants the bytes that are checked in.
func TestFresh(t *testing.T) {
	root := t.TempDir()
	here, kernel := filepath.Join(root, "internal", "asmgen"), filepath.Join(root, "kernel")
	for _, dir := range []string{here, kernel} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(root, "pointwise")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, "-out", "../../kernel/pointwise_amd64.s", "-stubs", "../../kernel/pointwise_stub_amd64.go", "-pkg", "kernel", "-lanes", "../../kernel/pointwise_lanes.go")
	run.Dir = here
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(kernel, "pointwise_amd64.s"))
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`\b[XY](1[6-9]|2\d|3[01])\b`).Find(text); found != nil {
		t.Errorf("%s is a register of AVX-512: a function holds too many numbers at once", found)
	}
	for _, name := range []string{"pointwise_amd64.s", "pointwise_stub_amd64.go", "pointwise_lanes.go"} {
		got, err := os.ReadFile(filepath.Join(kernel, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", "..", "..", "kernel", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("kernel/%s is stale: run go generate ./kernel", name)
		}
	}
}
