package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
)

// TestMatrixCounts: each verdict counts where it belongs, and only that of the
// subject, for the operator that its test is about.
func TestMatrixCounts(t *testing.T) {
	m := NewMatrix("a", "b")
	for i, c := range []matrixCase{
		{Test: "ops::relu[float32]", Verdict: verdict.Aligned, Worst: 0.5, Seconds: 3, ReferenceSeconds: 1},
		{Test: "ops::relu[float32]", Verdict: verdict.Aligned, Worst: 0.25, Seconds: 1, ReferenceSeconds: 1, ForwardOnly: true},
		{Test: "ops::relu[float32]", Verdict: verdict.Aligned, Seconds: 2, ReferenceSeconds: 1},
		{Test: "ops::relu[float32]", Verdict: verdict.Rejected},                                  // another draw stands for it
		{Test: "ops::relu[float32]", Verdict: verdict.Unsupported, OfReference: true},            // nobody's
		{Test: "ops::relu[float32]", Verdict: verdict.Skipped},                                   // too large
		{Test: "ops::relu[float32]", Verdict: verdict.Known, Worst: compare.Number(math.Inf(1))}, // the reference's fault
		{Test: "ops::relu[float32]", Verdict: verdict.Unsupported, Reason: "no kernel"},
		{Test: "ops::relu[float16]", Verdict: verdict.Misaligned, Worst: 3, Reason: "differs\nthere"},
		{Test: "ops::relu[illegal]", Verdict: verdict.Rejected},
		{Test: "ops::abs[float32]", Verdict: verdict.Unsupported, Reason: "none"},
		{Test: "ops::abs[illegal]", Verdict: verdict.Misaligned, Reason: "not refused"},
		{Test: "suite.py::test_relu", Verdict: verdict.Aligned},
	} {
		c.Candidate, c.Case = "a", i
		m.add(&c)
		if c.Verdict == verdict.Misaligned {
			m.add(&c) // in another mode
		}
	}
	m.Summary(&Summary{Reference: "torch", Seed: 7})

	relu, abs := m.Operators[1].Cells[0], m.Operators[0].Cells[0]
	got := relu.MatrixCounts
	if got.Cases != 7 || got.Aligned != 3 || got.Refused != 1 || got.Known != 1 || got.Findings != 1 || got.Unsupported != 1 || got.ForwardOnly != 1 {
		t.Errorf("relu: %+v", got)
	}
	if *got.Share != 5./6 || got.Worst != 3 || *got.Time != 2 || relu.Reason != "differs" {
		t.Errorf("relu: share %v, worst %v, time %v, %q", *got.Share, got.Worst, *got.Time, relu.Reason)
	}
	if abs.Has || !relu.Has || m.Operators[1].Cells[1].Has || m.Elsewhere != 1 {
		t.Errorf("abs is there: %v; relu: %v; relu of b: %v; elsewhere %d", abs.Has, relu.Has, m.Operators[1].Cells[1].Has, m.Elsewhere)
	}
	if s := m.Subjects[0]; s.Has != 1 || s.Operators != 2 || s.Findings != 1 || s.Unsupported != 2 {
		t.Errorf("the column: %+v", s)
	}
}

// TestMatrixFits: tables are no wider than the screen, whatever the numbers.
func TestMatrixFits(t *testing.T) {
	m := NewMatrix("native", "oneflow:/a/very/long/path/to/some/bin/python", "c", "d")
	for _, s := range m.Subjects {
		for i, worst := range []float64{math.Inf(1), 123456, 1e-300, 0.12345, 999.9} {
			m.add(&matrixCase{Test: "ops::an_operator_with_a_rather_long_name_of_its_own[float32]", Case: i, Candidate: s.Subject, Verdict: verdict.Misaligned, Worst: compare.Number(worst)})
			m.add(&matrixCase{Test: "ops::an_operator_with_a_rather_long_name_of_its_own[float64]", Case: i, Candidate: s.Subject, Verdict: verdict.Aligned, Seconds: worst, ReferenceSeconds: 1})
			m.add(&matrixCase{Test: "ops::an_operator_with_a_rather_long_name_of_its_own[int64]", Case: i, Candidate: s.Subject, Verdict: verdict.Unsupported})
		}
	}
	m.Summary(&Summary{Reference: "torch"})
	var b bytes.Buffer
	m.Text(&b, 80, []string{"native", m.Subjects[1].Subject, "c", "d"})
	tables, _, _ := strings.Cut(b.String(), "reference ")
	for line := range strings.Lines(tables) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if strings.Count(tables, "operator ") != 2 || !strings.Contains(tables, "— not there") || !strings.Contains(tables, "— nothing compared") {
		t.Errorf("four subjects are no two tables:\n%s", tables)
	}
}
