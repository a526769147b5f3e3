package deps

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// drawing are the packages whose results are part of what a seed means.
var drawing = []string{"./internal/draw/choice", "./internal/draw/gen", "./program", "./internal/draw/script"}

var fused = regexp.MustCompile(`\((\S+/(?:choice|gen|program|script)/\S+\.go:\d+)\)\s+(FN?M(?:ADD|SUB)[SD])\b`)

// TestDrawingFusesNothing compiles what draws cases for a machine whose
// compiler joins x*y + z into one operation, and holds the code to conversions
// that forbid it: the same seed means the same bits everywhere.
func TestDrawingFusesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for arm64")
	}
	readAll(t) // a cached result of this test is as old as they are
	// The operators draw nothing, and half of their compilation is optimisation.
	cmd := exec.Command("go", append([]string{"build", "-gcflags=plumb/ops=-N -l", "-gcflags=-S"}, drawing...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	listing, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("cannot compile for arm64: %v", err)
	}
	if !strings.Contains(string(listing), "plumb/program.(*Fill).value") {
		t.Fatal("the listing does not show Fill.value")
	}
	for _, m := range fused.FindAllStringSubmatch(string(listing), -1) {
		t.Errorf("%s: %s; write float64(x*y) + z", m[1], m[2])
	}
}

func readAll(t *testing.T) {
	for _, dir := range drawing {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no source in %s: %v", dir, err)
		}
		for _, f := range files {
			if _, err := os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}
