package command

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"plumb/internal/mutants"
)

// TestSuiteCoversRanges: the cases of all sizes alone find what is wrong in a
// part of its range, and nothing in the operators without a fault.
func TestSuiteCoversRanges(t *testing.T) {
	var out bytes.Buffer
	s := newSelftestOf()
	s.out, s.err, s.conform = &out, io.Discard, true
	s.matches = func(name string) bool { return strings.Contains(name, "_wide") }
	for _, m := range mutants.Ranges() {
		if !strings.Contains(m.Name, "sign of zero") { // that of edge values
			s.mutants = append(s.mutants, &mutantRun{Mutant: m})
		}
	}
	if err := s.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if n := len(s.found()); n < len(s.mutants)*97/100 || s.judged == 0 {
		t.Errorf("%d of %d are found\n%s", n, len(s.mutants), out.String())
	}
}
