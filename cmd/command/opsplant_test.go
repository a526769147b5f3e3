package command

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/op"
)

// plantedPeaks finds the faults of the example's operator of windows.
func plantedPeaks(t *testing.T, limit int) (*planting, int) {
	t.Helper()
	dir, err := filepath.Abs(exampleOp)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlanting()
	files, err := p.parse(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := &op.Def{Sig: "peaks(Tensor x, Tensor seen, int size, int dim=-1) -> (Tensor values, Tensor indices)"}
	return p, p.find(d, files, limit)
}

// TestPlant: faults are planted in the kernel, in functions that it names and that these
// name, and in the gradient; not in other fields, operators or messages.
func TestPlant(t *testing.T) {
	p, all := plantedPeaks(t, 1000)
	for _, decl := range p.named["onSim"] { // which names another operator
		p.within(decl, "Kernels")
	}
	where := map[string]bool{}
	for _, f := range p.faults[1:] {
		where[f.field+": "+f.what[strings.Index(f.what, ", in ")+5:]] = true
		for _, never := range []string{"Sample:", "Error(", "return err", "alpha", "FullLike(x, 0)\n"} {
			if strings.Contains(f.what, never) {
				t.Errorf("a fault in %s", f.what)
			}
		}
	}
	for _, want := range []string{
		"Kernels: i := k - c.Int(\"size\") + 1",                                                      // of slide
		"Kernels: func beats(v, w float64) bool { return v > w || math.IsNaN(v) && !math.IsNaN(w) }", // that slide names
		"Kernels: if len(shape) == 0 || a.Int(\"size\") < 1 || a.Int(\"size\") > shape[dim] {",       // of windows
		"Grad: g.To(\"x\", func() op.Value { return g.Op(\"scatter_add\", g.FullLike(x, 0), g.Int(\"dim\"), g.Out[1], g.G()) })",
	} {
		if !where[want] {
			t.Errorf("no fault in %s; there are %d", want, all)
		}
	}
	few, of := plantedPeaks(t, 10)
	left := slices.DeleteFunc(few.faults, func(f *sourceFault) bool { return f == nil })
	if of != all || len(left) != 10 {
		t.Errorf("%d of %d faults are left of a limit of 10", len(left), of)
	}
}

// TestPlantedSource: what is written is Go, has each fault once, within the lines that
// are told, and is without them where it was.
func TestPlantedSource(t *testing.T) {
	p, all := plantedPeaks(t, 1000)
	found := 0
	for _, f := range p.files {
		text, spans := p.write(f, chosenName)
		if _, err := parser.ParseFile(token.NewFileSet(), f.path, text, 0); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text, "\n")
		for _, in := range spans {
			m, here := p.faults[in.fault], strings.Join(lines[in.from-1:in.to], "\n")
			if !strings.HasPrefix(here, fmt.Sprintf("case %d:", in.fault)) || !strings.Contains(here, f.text[m.from-8:m.from]+m.text+f.text[m.to:m.to+1]) {
				t.Errorf("%s is not in\n%s", m.what, here)
			}
			found++
		}
	}
	if found != all {
		t.Errorf("%d of %d faults are written", found, all)
	}
}

// TestDrop: a fault in whose lines the compiler complains is dropped, no other.
func TestDrop(t *testing.T) {
	s := &plantedSource{planting: &planting{faults: []*sourceFault{nil, {}, {}, {}}}}
	spans := map[string][]span{"0.go": {{1, 3, 8}, {2, 8, 12}}, "1.go": {{3, 3, 8}}}
	if !s.drop("# mylib\n/tmp/plumb-planted-1/0.go:9:2: declared and not used: v\n", spans) || s.faults[1] == nil || s.faults[2] != nil || s.faults[3] == nil {
		t.Errorf("left are %v", s.faults)
	}
	if s.drop("go: cannot find main module\n", spans) {
		t.Error("something is dropped where the compiler says nothing")
	}
}

// TestGradeOfExample builds the example's program with faults in its source: what the
// environment asks for, as it takes half a minute.
func TestGradeOfExample(t *testing.T) {
	if os.Getenv("PLUMB_COVER") == "" {
		t.Skip("PLUMB_COVER is not set")
	}
	cmd := exec.Command("go", "run", "./plumb", "ops", "check", "leaky_relu_yzh", "--grade", "--alone")
	cmd.Dir = exampleOp
	out, _ := cmd.CombinedOutput() // which has findings: at 0 both sides of the kink are 0
	if text := string(out); strings.Count(text, "missed: ") > 2 || !strings.Contains(text, "missed: Kernels: leaky.go:25: > is >=, in if !(v > 0) {") || strings.Contains(text, "in the source") {
		t.Error(text)
	}
}
