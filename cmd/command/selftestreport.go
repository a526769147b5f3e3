package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"plumb/backend/open"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/find/bundle"
	"plumb/internal/mutants"
	"plumb/internal/stopwatch"
)

// enough is the share of mutants that has to be found.
const enough = 0.95

// subjectJSON is what is reported of one mutant.
type subjectJSON struct {
	Name    string          `json:"name"`
	In      string          `json:"in"`
	Kind    mutants.Kind    `json:"kind"`
	Found   bool            `json:"found"`
	Test    string          `json:"test,omitempty"`
	Index   int             `json:"index,omitempty"`
	Word    string          `json:"word,omitempty"`
	What    string          `json:"what,omitempty"` // is misaligned
	Reason  string          `json:"reason,omitempty"`
	Runs    int             `json:"runs"` // of the candidate until it was found
	Seconds float64         `json:"seconds"`
	Small   *smallJSON      `json:"small,omitempty"`
	Minimal mutants.Minimal `json:"minimal"` // as a person would write it
	Proof   string          `json:"proof,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// smallJSON is what a finding was made into.
type smallJSON struct {
	Runs    int             `json:"runs"`
	Seconds float64         `json:"seconds"`
	Size    mutants.Minimal `json:"size"`
	Minimal bool            `json:"minimal"` // no larger than a person's
	Done    bool            `json:"done"`    // within the budget
	Program string          `json:"program"`
}

func (m *mutantRun) json() subjectJSON {
	j := subjectJSON{Name: m.Name, In: m.In, Kind: m.Kind, Found: m.found != nil, Runs: m.runs, Seconds: m.elapsed.Seconds(), Minimal: m.Minimal}
	if m.err != nil {
		j.Error = m.err.Error()
	}
	if r := m.found; r != nil {
		j.Test, j.Index, j.Word, j.What, j.Reason = r.Test, r.Index, string(r.Verdict.Word), string(r.Verdict.Kind), r.Verdict.Reason
	}
	if r := m.small; r != nil {
		size := mutants.Of(r.Record.Program)
		j.Small = &smallJSON{r.Runs, r.Elapsed.Seconds(), size, size.Reaches(m.Minimal), r.Minimal, r.Record.Program.String()}
	}
	if m.proof != nil {
		j.Proof = m.proof.String()
		if m.proof.Reason != "" {
			j.Proof += ": " + m.proof.Reason
		}
	}
	return j
}

// selftestSummary is the last line of --json.
type selftestSummary struct {
	Planted int `json:"planted"`
	Found   int `json:"found"`
	// Kinds are the planted and the found by their kind.
	Kinds map[mutants.Kind][2]int `json:"kinds"`

	Shrunk  int `json:"shrunk"`  // made smaller within the budget
	Minimal int `json:"minimal"` // as small as a person's program
	Proved  int `json:"proved"`  // whose bundles failed in fresh processes
	False   int `json:"false"`   // findings of the table without a fault

	Cases int `json:"cases"` // drawn, and judged without a fault
	// Medians: of the candidate's runs and the seconds that it took.
	FindRuns      float64 `json:"find_runs"`
	FindSeconds   float64 `json:"find_seconds"`
	ShrinkRuns    float64 `json:"shrink_runs"`
	ShrinkSeconds float64 `json:"shrink_seconds"`

	Reference string  `json:"reference"`
	Seed      uint64  `json:"seed"`
	Seconds   float64 `json:"seconds"`
}

func (s *selftest) summarise(elapsed time.Duration) *selftestSummary {
	sum := &selftestSummary{Kinds: map[mutants.Kind][2]int{}, Planted: len(s.mutants), False: len(s.control), Cases: s.judged, Reference: s.referenceName(), Seed: s.cases.seed, Seconds: elapsed.Seconds()}
	var runs, seconds, shrinkRuns, shrinkSeconds []float64
	for _, m := range s.mutants {
		k := sum.Kinds[m.Kind]
		k[0]++
		if m.found != nil {
			k[1]++
		}
		sum.Kinds[m.Kind] = k
	}
	for _, m := range s.found() {
		sum.Found++
		runs, seconds = append(runs, float64(m.runs)), append(seconds, m.elapsed.Seconds())
		if m.proof != nil && m.proof.State == bundle.Reproduced {
			sum.Proved++
		}
		if m.small == nil {
			continue
		}
		if m.small.Minimal {
			sum.Shrunk++
		}
		if mutants.Of(m.small.Record.Program).Reaches(m.Minimal) {
			sum.Minimal++
		}
		shrinkRuns, shrinkSeconds = append(shrinkRuns, float64(m.small.Runs)), append(shrinkSeconds, m.small.Elapsed.Seconds())
	}
	if len(runs) > 0 {
		sum.FindRuns, sum.FindSeconds = stopwatch.Median(runs), stopwatch.Median(seconds)
	}
	if len(shrinkRuns) > 0 {
		sum.ShrinkRuns, sum.ShrinkSeconds = stopwatch.Median(shrinkRuns), stopwatch.Median(shrinkSeconds)
	}
	return sum
}

// found returns the mutants that were found.
func (s *selftest) found() []*mutantRun {
	return slices.DeleteFunc(slices.Clone(s.mutants), func(m *mutantRun) bool { return m.found == nil })
}

// referenceName says what the mutants were compared with.
func (s *selftest) referenceName() string {
	if s.conform {
		return s.subjects.reference
	}
	if name := s.subjects.set.Is(s.subjects.reference); open.IsRecorded(s.subjects.reference) {
		return "recorded " + name
	} else if name != "" {
		return name
	}
	return s.subjects.reference
}

func (s *selftest) report(elapsed time.Duration) error {
	sum := s.summarise(elapsed)
	s.tell(sum)
	if s.json {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		for _, m := range s.mutants {
			if err := enc.Encode(map[string]any{"mutant": m.json()}); err != nil {
				return err
			}
		}
		if err := enc.Encode(map[string]any{"summary": sum}); err != nil {
			return err
		}
	} else {
		s.print(sum)
	}
	return s.verdict(sum)
}

func (s *selftest) verdict(sum *selftestSummary) error {
	var errs []error
	for _, m := range s.mutants {
		if m.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, m.err))
		}
	}
	if errs = append(errs, s.errors...); len(errs) > 0 {
		return &exitError{exitFault, errors.Join(errs...)}
	}
	if sum.False > 0 || float64(sum.Found) < enough*float64(sum.Planted) {
		return &exitError{exitFindings, nil}
	}
	return nil
}

// print tells a person: what was missed, what was falsely found, and the summary.
func (s *selftest) print(sum *selftestSummary) {
	for _, m := range s.mutants {
		j := m.json()
		switch {
		case !j.Found:
			fmt.Fprintf(s.out, "missed  %s (%s, %s; %d runs)\n", m.Name, m.In, m.Kind, m.runs)
		case s.verbose:
			fmt.Fprintf(s.out, "found   %s (%s, %s) after %d runs: %s\n", m.Name, m.In, m.Kind, m.runs, j.Reason)
		}
		if j.Found && j.Proof != "" && (s.verbose || m.proof.State != bundle.Reproduced) {
			fmt.Fprintf(s.out, "proof   %s: %s\n", m.Name, j.Proof)
		}
		if s.verbose && j.Small != nil {
			fmt.Fprintf(s.out, "        %d calls on %d elements after %d runs; %d on %d by hand\n%s\n", j.Small.Size.Calls, j.Small.Size.Elements, j.Small.Runs, m.Minimal.Calls, m.Minimal.Elements, j.Small.Program)
		}
	}
	for _, r := range s.control {
		fmt.Fprintf(s.out, "FALSE   %s case %d: %s\n%s\n", r.Test, r.Index, r.Verdict.Reason, r.Program)
	}
	shrunk := "not shrunk"
	if s.judging.shrink.Runs > 0 {
		shrunk = fmt.Sprintf("%d shrunk to the written minimum", sum.Minimal)
	}
	if s.proofs > 0 {
		shrunk += fmt.Sprintf(", %d proved in fresh processes", sum.Proved)
	}
	out := report.NewScreen(s.out, widthOf(s.out))
	defer out.Flush()
	fmt.Fprintf(out, "== %d of %d mutants found, %s, %d false findings in %d cases of the table without a fault ==\n", sum.Found, sum.Planted, shrunk, sum.False, sum.Cases)
	if k := sum.Kinds[mutants.Range]; k[0] > 0 {
		fmt.Fprintf(out, "%d of the %d that are wrong in a part of their range, %d of the %d others\n", k[1], k[0], sum.Found-k[1], sum.Planted-k[0])
	}
	fmt.Fprintf(out, "medians: %.0f runs and %.3fs to find, %.0f runs and %.2fs to shrink; %.1fs against %s, seed %d\n", sum.FindRuns, sum.FindSeconds, sum.ShrinkRuns, sum.ShrinkSeconds, sum.Seconds, sum.Reference, sum.Seed)
}

// keep keeps the faults and whether each was found; err is how the command ends.
func (s *selftest) keep(err error) {
	s.kept.begin(&store.Run{Command: "plumb selftest", Seed: s.cases.seed, Subjects: []store.Subject{{Name: cmp.Or(s.subjects.reference, "recorded"), Version: s.referenceName()}, {Name: "native, with faults"}}})
	for i, m := range s.mutants {
		c := store.Case{
			Test: "selftest::" + m.In, Name: m.Name, Number: i, Subject: "native, with faults", Operators: []string{operatorOf(m.In)},
			Outcome: report.Failed, Word: "missed", Kind: string(m.Kind), Worst: math.NaN(), Elapsed: m.elapsed,
		}
		switch r := m.found; {
		case m.err != nil:
			c.Word, c.Reason = "error", m.err.Error()
		case r != nil:
			c.Outcome, c.Word, c.Reason = report.Passed, "found", r.Verdict.Reason
		}
		s.kept.add(c)
	}
	for _, r := range s.control {
		s.kept.record(r)
	}
	s.kept.end(codeOf(err) != exitFault, err)
}
