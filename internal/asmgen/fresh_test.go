// Package asmgen is the module of the programs that write assembly.
package asmgen

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// arguments are those of go generate, by program.
var arguments = map[string]string{
	"compare":   "-out ../judge/compare/simd_amd64.s -stubs ../judge/compare/simd_stub_amd64.go -pkg compare",
	"gemm":      "-out ../kernel/gemm_amd64.s -stubs ../kernel/gemm_stub_amd64.go -pkg kernel",
	"half":      "-out ../../tensor/floats_amd64.s -stubs ../../tensor/floats_stub_amd64.go -pkg tensor",
	"philox":    "-out ../draw/choice/philox_amd64.s -stubs ../draw/choice/philox_stub_amd64.go -pkg choice",
	"pointwise": "-out ../kernel/pointwise_amd64.s -stubs ../kernel/pointwise_stub_amd64.go -pkg kernel -lanes ../kernel/pointwise_lanes.go",
	"variate":   "-out ../variate/variate_amd64.s -stubs ../variate/variate_stub_amd64.go -pkg variate",
}

// wide are the vector registers that AVX2 does not have.
var wide = regexp.MustCompile(`\b([XY](1[6-9]|2\d|3[01])|Z\d+)\b`)

// TestFresh runs each program elsewhere and wants the bytes that are checked in.
func TestFresh(t *testing.T) {
	programs := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", programs, "./...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range arguments {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(text)
			root := t.TempDir()
			here := filepath.Join(root, "internal", "asmgen")
			for _, dir := range []string{here, filepath.Dir(filepath.Join(here, args[1]))} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.Command(filepath.Join(programs, name), args...)
			run.Dir = here
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, arg := range args {
				if strings.HasPrefix(arg, "../") {
					fresh(t, here, arg)
				}
			}
		})
	}
}

// fresh wants the same file below two folders, without registers of AVX-512.
func fresh(t *testing.T, here, file string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(here, file))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run go generate in its folder", file)
	}
	if found := wide.Find(got); found != nil && strings.HasSuffix(file, ".s") {
		t.Errorf("%s: %s is a register of AVX-512: a function holds too many numbers at once", file, found)
	}
}
