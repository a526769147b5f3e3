package command

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/internal/module"
	"plumb/ops"
)

// exampleOp is a module with operators of its own.
const exampleOp = "../../examples/userop"

// TestFunctionsOf: a literal's functions are found, those of its kernels too.
func TestFunctionsOf(t *testing.T) {
	var names []string
	for _, f := range functionsOf(ops.Table().Def("linear")) {
		names = append(names, packageOfFunction(f.Name()))
	}
	if len(names) < 4 || !slices.Contains(names, module.Join("ops")) {
		t.Errorf("%d functions, of %v", len(names), names)
	}
}

// TestCoverOfExample builds the example's program with coverage: what the environment
// asks for, as it takes half a minute.
func TestCoverOfExample(t *testing.T) {
	if os.Getenv("PLUMB_COVER") == "" {
		t.Skip("PLUMB_COVER is not set")
	}
	cmd := exec.Command("go", "run", "./plumb", "ops", "check", "peaks", "--cover")
	cmd.Dir = exampleOp
	out, err := cmd.CombinedOutput()
	if want := "NOT REACHED by any check\n  peaks.go:"; err != nil || strings.Count(string(out), "peaks.go:") != 1 || !strings.Contains(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestUnreached: of a profile those blocks are told that no check ran, in the literal,
// in functions that it names, and in those that these name; nobody else's.
func TestUnreached(t *testing.T) {
	path, err := filepath.Abs(filepath.Join(exampleOp, "peaks.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := func(part string) int { return 1 + strings.Count(string(text[:bytes.Index(text, []byte(part))]), "\n") }
	s := &source{starts: map[string][]int{path: {at("Infer: func"), at("Sample: func")}}}
	if err := s.parse(); err != nil {
		t.Fatal(err)
	}
	profile := "mode: set\n"
	want := []int{}
	for _, b := range []struct {
		file, part, count string
		told              bool
	}{
		{"peaks.go", "shape[dim] -= a.Int", "0", true},    // of the literal
		{"peaks.go", "queue.SetInt(tail", "0", true},      // of slide, which it names
		{"peaks.go", "return v > w", "0", true},           // of beats, which slide names
		{"peaks.go", "return dim, shape, nil", "0", true}, // of windows
		{"peaks.go", "return err", "1", false},            // reached
	} {
		line := at(b.part)
		profile += fmt.Sprintf("userop/%s:%d.2,%d.30 1 %s\n", b.file, line, line, b.count)
		if b.told {
			want = append(want, line)
		}
	}
	profile += "userop/bent.go:12.2,12.30 1 0\nother/peaks.go:1.2,1.30 1 0\n"
	var told []int
	for _, b := range unreached(profile, "userop") {
		if file, _ := s.within(b); file != "" {
			told = append(told, b.from)
		}
	}
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("lines %v are told of, want %v", told, want)
	}
}
