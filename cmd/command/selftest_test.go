package command

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"plumb/internal/mutants"
	"plumb/op"
)

// selftestOf runs mutants on the recorded cases whose test has a name that
// contains filter.
func selftestOf(t *testing.T, filter string, ms ...mutants.Mutant) (*selftest, string, error) {
	t.Helper()
	var out bytes.Buffer
	s, seed := newSelftestOf(), uint64(1)
	s.out, s.err, s.proofs, s.subjects.reference, s.cases.given = &out, io.Discard, 0, "recorded", &seed
	s.matches = func(name string) bool { return strings.Contains(name, filter) }
	for _, m := range ms {
		s.mutants = append(s.mutants, &mutantRun{Mutant: m})
	}
	err := s.run(t.Context())
	return s, out.String(), err
}

// mutantsNamed returns the mutants of these names.
func mutantsNamed(t *testing.T, names ...string) []mutants.Mutant {
	t.Helper()
	var ms []mutants.Mutant
	all := mutants.All()
	for _, name := range names {
		at := slices.IndexFunc(all, func(m mutants.Mutant) bool { return m.Name == name })
		if at < 0 {
			t.Fatalf("there is no mutant %q", name)
		}
		ms = append(ms, all[at])
	}
	return ms
}

// TestSelftestFindsMutants runs a handful against the recorded baseline: each
// is found, made as small as a person would write it, and nothing else is found.
func TestSelftestFindsMutants(t *testing.T) {
	s, log, err := selftestOf(t, "reduce.py", mutantsNamed(t,
		"sum ignores keepdim",
		"mean divides by one less",
		"mean's gradient is that of sum",
		"max along a dimension finds the last of equal elements",
	)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for _, m := range s.mutants {
		switch {
		case m.found == nil:
			t.Errorf("%s: missed in %d runs", m.Name, m.runs)
		case !mutants.Of(m.small.Record.Program).Reaches(m.Minimal):
			t.Errorf("%s: not minimal, want %+v\n%s", m.Name, m.Minimal, m.small.Record.Program)
		}
	}
	if len(s.control) > 0 || s.judged == 0 {
		t.Errorf("%d false findings in %d cases", len(s.control), s.judged)
	}
	if !strings.Contains(log, "4 of 4 mutants found") {
		t.Errorf("the report does not say so:\n%s", log)
	}
}

// TestSelftestMissesWhatIsNoFault: what changes nothing is not found, and then
// the command fails.
func TestSelftestMissesWhatIsNoFault(t *testing.T) {
	harmless := mutants.Mutant{Name: "no fault", In: "sum", Kind: mutants.Attribute, Op: func(*op.Def) {}}
	s, log, err := selftestOf(t, "reduce.py", harmless)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitFindings {
		t.Errorf("the error is %v, want exit code %d", err, exitFindings)
	}
	if m := s.mutants[0]; m.found != nil || m.runs == 0 {
		t.Errorf("found %v after %d runs", m.found, m.runs)
	}
	if !strings.Contains(log, "missed  no fault") {
		t.Errorf("the report does not name it:\n%s", log)
	}
}

// TestSelftestRunsWhatTouchesTheOperator: a mutant of an operator that a test
// reaches only through a gradient is run on its cases too.
func TestSelftestRunsWhatTouchesTheOperator(t *testing.T) {
	slow(t)
	s, _, _ := selftestOf(t, "test_max_dim", mutantsNamed(t, "scatter_add overwrites", "sort ignores descending")...)
	if s.mutants[1].runs != 0 {
		t.Errorf("sort was run on %d cases of max", s.mutants[1].runs)
	}
	scatter := mutants.Mutant{Name: "no fault", In: "scatter", Kind: mutants.Attribute, Op: func(*op.Def) {}}
	s, _, _ = selftestOf(t, "test_max_dim", scatter)
	if s.mutants[0].runs == 0 {
		t.Error("scatter, the gradient of max along a dimension, was not run")
	}
}
