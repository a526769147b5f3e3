// Package gotest judges cases under go test as plumb run does: it has the
// flags, opens the reference, and reports findings as failures of the test.
package gotest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/backend/recorded"
	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
)

// Config says what to judge.
type Config struct {
	Table *op.Table
	Tests []campaign.Test
	Seed  uint64 // from which the tests draw; what fails prints it
	// Candidates are judged; without any, those of -plumb.candidate.
	Candidates []campaign.Candidate
	// OnRecord, which may be nil, is told of every record.
	OnRecord func(*verdict.Record)
	// SameException asks that what both sides raise has the same class.
	SameException bool
}

// run is one call of Run.
type run struct {
	Config
	t         testing.TB
	set       *open.Set
	reference string // its name in flags
	recording bool
	summary   *report.Summary
	collector finding.Collector
	cases     []recorded.Case
	weak      []string
}

// Run judges the cases and reports what is found to t. Without PyTorch it
// skips the test, unless a reference was asked for.
func Run(t testing.TB, c Config) *report.Summary {
	t.Helper()
	r := &run{Config: c, t: t, set: setOf(c.Table), reference: *referenceFlag, recording: *recordFlag != "", summary: report.NewSummary()}
	cfg := campaign.Config{Tests: slices.Clone(c.Tests), Jobs: 1, Batch: 32, OnRecord: r.onRecord, OnEnd: r.onEnd}
	if err := r.open(&cfg); err != nil {
		r.missing(err)
	}
	cfg.Judge = judge.New(judge.Config{
		Table: c.Table, Modules: nn.Modules(), Oracle: judge.OnMismatch, SameException: c.SameException,
		Reference: r.set.Is(r.reference), CanAskReference: !open.IsRecorded(r.reference),
	})
	err := campaign.Run(t.Context(), cfg)
	if err == nil && r.recording {
		err = r.record(cfg.Reference)
	}
	r.collector.End()
	found, fault := r.minimise(&cfg)
	err = errors.Join(err, fault)
	r.conclude(found)
	if err != nil {
		t.Fatalf("plumb: %v", err)
	}
	return r.summary
}

// open resolves the backends by their names, and says what is wrong with flags.
func (r *run) open(cfg *campaign.Config) (err error) {
	switch {
	case *numberFlag < 0:
		return fmt.Errorf("-plumb.n=%d: want a whole number, at least 1 (0: as the test says)", *numberFlag)
	case *shrinkFlag < 0:
		return fmt.Errorf("-plumb.shrink=%d: want a whole number, at least 0", *shrinkFlag)
	case r.recording && (r.reference == "none" || open.IsRecorded(r.reference)):
		return fmt.Errorf("-plumb.record has no effect with -plumb.reference=%s: only a backend that runs can be recorded", r.reference)
	case r.Candidates != nil && given("plumb.candidate"):
		r.t.Log("-plumb.candidate has no effect here: the test names its candidates itself")
	}
	cfg.Candidates = r.Candidates
	if cfg.Candidates == nil {
		for name := range strings.SplitSeq(*candidateFlag, ",") {
			open, err := r.opener(name)
			if err != nil {
				return err
			}
			cfg.Candidates = append(cfg.Candidates, campaign.Candidate{Name: name, Open: open})
		}
		if err := checkGraphs(cfg.Candidates); err != nil {
			return err
		}
	}
	for i := range cfg.Tests {
		cfg.Tests[i].Graph = ChecksGraph(cfg.Tests[i].Graph)
	}
	if r.reference == "none" {
		cfg.Reference = cfg.Candidates[0].Open
		return nil
	}
	if cfg.Reference, err = r.opener(r.reference); err != nil {
		return err
	}
	if path, ok := strings.CutPrefix(r.reference, "recorded:"); ok {
		cfg.Tests, err = recordedTests(path, cfg.Tests)
	}
	return err
}

// checkGraphs refuses -plumb.check-graph where a candidate has no graph mode
// beside the mode in which it runs.
func checkGraphs(candidates []campaign.Candidate) error {
	if !ChecksGraph(false) {
		return nil
	}
	for _, c := range candidates {
		b, err := c.Open()
		if err != nil {
			return err
		}
		err = open.NeedGraphModes("-plumb.check-graph", c.Name, b.Info())
		if err = errors.Join(err, b.Close()); err != nil {
			return err
		}
	}
	return nil
}

// missing ends the test where a backend cannot be opened.
func (r *run) missing(err error) {
	r.t.Helper()
	var fault *backend.Fault
	if errors.As(err, &fault) && !given("plumb.reference") && !given("plumb.candidate") && !given("plumb.python") {
		r.t.Skipf("needs PyTorch as the reference: %v (fix: %s; or give -plumb.reference)", fault.Err, fault.Fix)
	}
	r.t.Fatalf("plumb: %v", err)
}

// recordedTests returns, of each test, the cases that a baseline has.
func recordedTests(path string, tests []campaign.Test) ([]campaign.Test, error) {
	base, err := open.Baseline(path)
	if err != nil {
		return nil, err
	}
	byTest := map[string][]*program.Program{}
	for _, c := range base.Cases() {
		byTest[c.Test] = append(byTest[c.Test], c.Program)
	}
	var out []campaign.Test
	for _, t := range tests {
		if programs := byTest[t.Name]; len(programs) > 0 {
			t.N, t.Fixed = min(t.N, len(programs)), true
			t.Draw = func(i int, _ campaign.Observer) (*program.Program, error) { return programs[i], nil }
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no case of this test; go test -plumb.record=%s records them, where PyTorch is", path, path)
	}
	return out, nil
}

// onRecord counts a record and keeps what is reported.
func (r *run) onRecord(rec *verdict.Record) {
	r.summary.Add(rec)
	if r.Config.OnRecord != nil {
		r.Config.OnRecord(rec)
	}
	r.collector.Record(rec, rec.Verdict.Word.IsFinding())
	if r.recording && rec.Baseline() {
		r.cases = append(r.cases, recorded.Case{Test: rec.Test, Program: rec.Program, Outcome: rec.Reference})
	}
}

func (r *run) onEnd(e *verdict.End) {
	if e.Err != nil {
		r.summary.Errors = append(r.summary.Errors, e.Err)
	}
	fixed := slices.ContainsFunc(r.Tests, func(t campaign.Test) bool { return t.Name == e.Test && t.Fixed })
	if e.Mostly() && !fixed && e.Err == nil {
		r.weak = append(r.weak, fmt.Sprintf("weak: of %s both sides refuse %d draws and take %d", e.Test, e.Rejected, e.Judged))
	}
	r.collector.End()
}

// maxFindings bounds the kinds of failure that are minimised and printed.
const maxFindings = 5

// minimise makes one failing case of each kind smaller.
func (r *run) minimise(cfg *campaign.Config) ([]*finding.Finding, error) {
	groups := r.collector.Groups()
	if len(groups) == 0 {
		return nil, nil
	}
	solo, err := campaign.Open(cfg)
	if err != nil {
		return nil, err
	}
	defer solo.Close()
	var again []campaign.Instance
	threaded, err := r.set.Threaded(context.Background(), r.reference)
	switch {
	case err != nil:
		return nil, err
	case threaded != nil:
		defer threaded.Close()
		again = append(again, campaign.Instance{How: fmt.Sprintf("with one thread and with %d", open.ControlThreads), Backend: threaded})
	}
	budget := shrink.Budget{Runs: *shrinkFlag, Time: shrink.DefaultBudget.Time}
	return solo.Minimise(r.t.Context(), groups[:min(len(groups), maxFindings)], budget, again...)
}

// conclude reports what was found, on the goroutine of the test.
func (r *run) conclude(found []*finding.Finding) {
	r.t.Helper()
	for _, f := range found {
		if f.Unstable != "" {
			r.t.Logf("%s: %s\n%s", f.Groups[0].Test, f.Unstable, f.Result.Record.Program)
			r.acquit(f)
			continue
		}
		r.t.Errorf("%s", r.failure(f))
	}
	if more := len(r.collector.Groups()) - maxFindings; more > 0 {
		r.t.Errorf("%d more kinds of failure", more)
	}
	for _, err := range r.summary.Errors {
		r.t.Errorf("%s", report.ErrorText(err))
	}
	beyond, all := r.summary.Words[verdict.Unsupported], r.summary.Cases()-r.summary.Words[verdict.Rejected]
	if beyond > 0 && beyond == all && !r.t.Failed() {
		r.t.Skipf("nothing was compared: %s", r.summary.Beyond)
	}
	r.t.Logf("%s (seed %d), the worst at %.2g of its limit", r.summary.Counts(), r.Seed, r.summary.Worst)
	for _, w := range r.weak {
		r.t.Log(w)
	}
	if beyond > 0 {
		r.t.Logf("unsupported: %s", r.summary.Beyond)
	}
}

// acquit counts a finding's cases as unstable.
func (r *run) acquit(f *finding.Finding) {
	for _, g := range f.Groups {
		r.summary.Words[g.First.Verdict.Word] -= g.Count
		r.summary.Words[verdict.Unstable] += g.Count
	}
}

// failure says what is wrong, shows the smallest program that fails likewise,
// and ends with the command that draws the first case again.
func (r *run) failure(f *finding.Finding) string {
	first, small := f.Groups[0].First, f.Result.Record
	text := fmt.Sprintf("%s, case %d (%s), candidate %s\n%s\n%s\n", first.Test, first.Index, first.Program.ID(), report.Candidate(first), small.Verdict.Text(), small.Program)
	seen := fmt.Sprintf("%d of %d cases", f.Count(), r.summary.Cases())
	if small != first {
		seen += fmt.Sprintf("; the program is the smallest that was found in %d runs", f.Result.Runs)
	}
	if f.Common != "" {
		seen += "; in common: " + f.Common
	}
	return text + "seen:  " + seen + "\nagain: " + r.again(first.Index)
}

// again is the command that draws the case of an index again, after those
// before it.
func (r *run) again(index int) string {
	cmd := fmt.Sprintf("go test -run '%s' -plumb.seed=%d -plumb.n=%d", pattern(r.t.Name()), r.Seed, index+1)
	for _, name := range []string{"plumb.reference", "plumb.candidate", "plumb.python", "plumb.check-graph"} {
		if given(name) {
			cmd += fmt.Sprintf(" -%s=%s", name, value(name))
		}
	}
	return cmd
}

var (
	setsMu sync.Mutex
	sets   = map[*op.Table]*open.Set{}
)

// setOf returns the backends of a table, which all its tests share.
func setOf(table *op.Table) *open.Set {
	setsMu.Lock()
	defer setsMu.Unlock()
	if sets[table] == nil {
		sets[table] = &open.Set{Table: table, Python: *pythonFlag}
	}
	return sets[table]
}

// opener returns how to start a backend. Workers outlive a test: the next one
// takes them over.
func (r *run) opener(spec string) (campaign.Opener, error) {
	open, err := r.set.Opener(context.Background(), spec)
	if err != nil || !strings.HasPrefix(spec, "torch") {
		return open, err
	}
	return func() (backend.Backend, error) { return workers.take(spec, open) }, nil
}
