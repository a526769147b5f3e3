package command

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// TestSlowerRows tells what lies beyond the intervals of both runs and a
// twentieth, relative to the reference: a machine that is slower in all makes no
// row slower.
func TestSlowerRows(t *testing.T) {
	row := func(function string, low, ratio, high float64) profileRow {
		return profileRow{Function: function, Subject: "native", Pass: forwardPass, Threads: 1, Median: 10 * ratio, Ratio: ratio, RatioLow: low, RatioHigh: high}
	}
	before := []profileRow{row("p.py::a", 0.9, 1, 1.1), row("p.py::b", 0.9, 1, 1.1), row("p.py::c", 0.9, 1, 1.01), row("p.py::d", 0.9, 1, 1.1), row("p.py::e", 0.9, 1, 1.1)}
	now := []profileRow{row("there/p.py::a", 1.2, 1.3, 1.4), row("p.py::b", 1.05, 1.3, 1.4), row("p.py::c", 1.02, 1.03, 1.04), row("p.py::new", 9, 10, 11)}
	now = append(now, profileRow{Function: "p.py::d", Subject: "native", Pass: forwardPass, Threads: 1, Failed: "raised: no"})
	slow := row("p.py::e", 0.9, 1, 1.1) // the reference became slower alike
	slow.Median = 1e3
	got := slowerRows(before, append(now, slow))
	want := []string{"slower: p.py::a, , forward, 1 thread, native: 1.30 times the reference's time, 1.00 before (13.00 and 10.00 µs)", "fails now: p.py::d, , forward, 1 thread, native: raised: no"}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestCorpusProfiles measures the functions with @profile of the corpus: each
// has rows, on both sides.
func TestCorpusProfiles(t *testing.T) {
	slow(t)
	needTorch(t)
	p := &profileCommand{subjects: newSubjects(), rounds: 1, threads: []int{1}}
	if err := p.run(t.Context(), []string{"../../suites/corpus"}, io.Discard, t.Output()); err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{}
	for _, r := range p.report.Rows {
		functions[r.Function] = true
		if r.Failed != "" || r.Median <= 0 || r.Low > r.Median || r.High < r.Median || (r.Subject == "native") != (r.Ratio > 0) {
			t.Errorf("%+v", r)
		}
	}
	for _, s := range p.report.Skipped {
		t.Errorf("%s: %s", s.Function, s.Why)
	}
	if len(functions) < 28 {
		t.Errorf("%d functions are measured, want at least 28", len(functions))
	}
}
