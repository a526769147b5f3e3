package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/open"
	"plumb/backend/recorded"
	"plumb/internal/campaign"
	"plumb/internal/campaign/fleet"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
)

// session judges the cases of tests: it runs them on its subjects, makes what
// fails smaller, and reports.
type session struct {
	subjects subjects
	cases    drawing
	judging  judging
	reports  reports
	out, err io.Writer

	selection *selection // nil where the command has none
	skipped   []collected
	observers []observer // before anything else of the session

	cfg       *campaign.Config
	summary   *report.Summary
	sink      report.Sink // where nil, that of reports
	gauges    gauges
	accepted  *acceptedList // nil without a known list
	collector finding.Collector
	progress  progress
	live      *live
	recorded  []recorded.Case // for --record
	beyond    int             // cases that the reference does not support
	found     []*finding.Finding
	opened    opened
}

// opened is what the subjects of a session were when they were opened.
type opened struct {
	infos []backend.Info // the reference's first
	are   []store.Subject
}

// observer sees the records and the ends of a session's tests.
type observer interface {
	record(*verdict.Record)
	end(*verdict.End)
}

// newSession returns a session with the defaults, and these settings beside
// those of the judge.
func newSession(keys ...string) *session {
	return &session{
		subjects: newSubjects(),
		judging:  judging{settings: newSettings(judgeKeys, findingKeys, keys), memory: 1 << 30},
	}
}

// attach gives the session where the command prints. Tests print while others
// are reported.
func (s *session) attach(cmd *cobra.Command) {
	var one sync.Mutex
	s.subjects.soft = func(name string) bool { return isFromFile(cmd, name) }
	s.live = &live{mu: &one}
	s.out, s.err = &inTurn{&one, cmd.OutOrStdout(), s.live}, &inTurn{&one, cmd.ErrOrStderr(), s.live}
}

// open opens the subjects and makes the judge, from which the drawing takes
// what it asks the reference.
func (s *session) open(ctx context.Context, fallback bool) (err error) {
	if err := s.judging.settle(s.judging.known, s.subjects.specs()...); err != nil {
		return err
	}
	if s.cfg, err = s.subjects.open(ctx, s.judging.settings, fallback, s.err); err != nil {
		return err
	}
	if s.judging.checkGraph != nil && *s.judging.checkGraph {
		if err := s.subjects.haveGraphModes(s.cfg); err != nil {
			return err
		}
	}
	if _, err = s.judging.arm(s.cfg, &s.subjects); err != nil {
		return err
	}
	s.gauges.judge = s.cfg.Judge
	s.cases.sigs = s.subjects.signatures(s.cfg)
	s.cases.device, s.cases.maxBytes, s.cases.graph = s.subjects.device, s.judging.maxBytes, s.judging.checksGraph
	s.cfg.OnOpen, s.cfg.OnCase, s.cfg.OnRecord, s.cfg.OnEnd, s.cfg.OnWork = s.onOpen, s.gauges.sample, s.onRecord, s.onEnd, s.live.work
	return nil
}

// run judges the tests and reports; name is the command's, for JUnit.
func (s *session) run(ctx context.Context, name string, tests []campaign.Test) (err error) {
	start := time.Now()
	boundHeap(s.judging.memory, usualGarbage)
	for _, t := range tests {
		t.Graph = s.judging.checksGraph(t.Graph)
		s.cfg.Tests = append(s.cfg.Tests, t)
	}
	s.summary = report.NewSummary()
	s.summary.Reference, s.summary.Candidates = s.subjects.reference, s.subjects.candidates
	s.summary.Triage = &report.Triage{Callable: callables}
	s.summary.Seed, s.summary.Tests = s.cases.seed, len(tests)
	spends := s.progress.budget.Is()
	s.progress.budget.shared = &s.cases.shared
	if spends && !s.judging.given["power"] {
		s.judging.power = 0 // a round has too few cases of a test to call it weak
	}
	if s.sink == nil {
		s.reports.quiet = s.reports.quiet || spends && s.reports.verbose == 0 // a test has many ends
		s.sink = s.reports.sink(s.out, s.judging.shrink.Runs > 0)
	}
	s.tell()
	if s.cases.printed.out = s.out; s.reports.json {
		s.cases.printed.out = s.err
	}
	junit, err := openJUnit(s.reports.junit, name)
	if err != nil {
		return err
	}
	if junit != nil {
		junit.Started = start
		junit.Properties = [][2]string{{"candidates", strings.Join(s.subjects.candidates, ", ")}, {"reference", s.subjects.reference}, {"seed", fmt.Sprint(s.cases.seed)}}
		s.sink = report.Sinks{s.sink, junit}
		defer func() { err = closeJUnit(junit, err, s.err) }()
	}
	s.sink = append(report.Sinks{s.sink}, s.reports.filed.begin(name, start, s.lineOf)...)
	defer func() { err = s.reports.filed.end(err, s.err) }()
	if err := s.gauges.open(s.judging.settings, s.err); err != nil {
		return err
	}
	defer s.gauges.close()
	if s.accepted, err = openKnown(s.judging.known, s.judging.clean, s.err); err != nil {
		return err
	}
	if err := s.keep(name); err != nil {
		return err
	}
	complete := false
	defer func() { s.reports.kept.end(complete, err) }()
	if s.judging.explain {
		ctx = native.Telling(ctx, s.subjects.gathered.told)
	}
	s.live.begin(s.cfg.Tests, len(s.cfg.Candidates), s.progress.budget.Time)
	err = s.judge(ctx)
	s.live.end()
	complete = err == nil
	s.reports.kept.findings(s.found, s.collector.Groups())
	s.summary.Elapsed, s.summary.Shared = time.Since(start), s.cases.shared.Load()
	if spends {
		s.summary.Covered = s.progress.budget.covered()
	}
	if err == nil || s.summary.Cases() > 0 {
		if !s.reports.json {
			s.progress.print(s.out, s.reports.durations, s.summary.Tests)
		}
		s.sink.Summary(s.summary)
		if s.judging.explain {
			out := s.out
			if s.reports.json {
				out = s.err
			}
			s.subjects.gathered.print(out)
		}
	}
	return s.conclude(err)
}

// tell chooses where the run says how it gets on: on the error output where that
// or the output is a terminal, and nowhere where only findings are wanted.
func (s *session) tell() {
	if s.reports.quiet || s.live == nil {
		return
	}
	s.live.w = s.err.(*inTurn).w
	s.live.tty = isTerminal(s.live.w) && os.Getenv("TERM") != "dumb"
}

// judge runs the cases, makes what fails smaller, and counts what is accepted.
func (s *session) judge(ctx context.Context) error {
	err := s.progress.run(ctx, s.cfg)
	s.cases.printed.stop()
	if s.progress.stopped {
		s.collector.End()
	}
	if s.selection != nil {
		s.progress.remember(s.selection.last, &s.cases, s.err)
	}
	if err == nil {
		err = s.minimise(ctx)
	}
	if err == nil {
		err = s.accepted.settle(s.summary)
	}
	if errors.Is(err, context.Canceled) {
		s.asDrawn()
	}
	return err
}

// asDrawn reports what has failed so far, of which nothing was made smaller.
func (s *session) asDrawn() {
	s.collector.End()
	for _, g := range s.collector.Groups() {
		s.found = append(s.found, &finding.Finding{ID: g.First.Program.ID(), Groups: []*finding.Group{g}, Result: &shrink.Result{Record: g.First, Signature: g.Signature}})
	}
	if s.found = finding.Cluster(s.found); len(s.found) > 0 {
		s.sink.Findings(s.found[:min(len(s.found), maxMinimised)])
	}
}

// minimise makes the failing cases smaller and reports them.
func (s *session) minimise(ctx context.Context) error {
	groups := s.collector.Groups()
	if len(groups) == 0 || s.judging.shrink.Runs == 0 {
		return nil
	}
	m := minimiser{cfg: s.cfg, subjects: &s.subjects, settings: s.judging.settings, seed: s.cases.seed, summary: s.summary, log: s.err, onShrink: s.shrinks}
	found, err := m.minimise(ctx, groups)
	if err == nil {
		s.found = found
		s.sink.Findings(found)
	}
	return err
}

// shrinks tells how far the search for smaller cases is.
func (s *session) shrinks(at, of int, r *shrink.Result) {
	s.live.shrinks(at, of, r)
	s.reports.kept.doing(fmt.Sprintf("making failure %d of %d smaller", at, of))
}

// keep begins the run in the results store.
func (s *session) keep(name string) error {
	if err := s.reports.kept.open(s.err); err != nil {
		return err
	}
	unknown := s.storedSubjects(make([]backend.Info, 1+len(s.subjects.candidates)))
	s.reports.kept.begin(&store.Run{Command: name, Seed: s.cases.seed, Subjects: unknown, Wanted: s.wanted()})
	return nil
}

// wanted is how many verdicts the run is to give, as far as that is known.
func (s *session) wanted() int {
	if s.progress.budget.Time > 0 {
		return 0
	}
	n := s.progress.budget.Cases
	for i := range s.cfg.Tests {
		if s.progress.budget.Cases == 0 {
			n += s.cfg.Tests[i].N
		}
	}
	return n * max(len(s.subjects.candidates), 1)
}

// lineOf is where a test is defined, as far as it is known.
func (s *session) lineOf(test string) (file string, line int) {
	if d := s.gauges.defined[test]; d != nil {
		return d.File, d.Line
	}
	return "", 0
}

// onOpen is told what the subjects are.
func (s *session) onOpen(reference backend.Info, candidates []backend.Info) {
	s.cases.settleShapes(candidates)
	s.opened.infos = append([]backend.Info{reference}, candidates...)
	s.opened.are = s.storedSubjects(s.opened.infos)
	s.reports.kept.subjects(s.opened.are)
	s.reports.filed.about("reference "+s.subjects.reference, about(reference))
	for i, c := range candidates {
		s.reports.filed.about("candidate "+s.cfg.Candidates[i].Name, about(c))
	}
}

// storedSubjects are the subjects as the store keeps them, the reference first.
func (s *session) storedSubjects(infos []backend.Info) []store.Subject {
	var all []store.Subject
	for i, name := range append([]string{s.subjects.reference}, s.subjects.candidates...) {
		all = append(all, subjectOf(name, infos[i]))
	}
	return all
}

// changed tells of a subject whose file is not what it was when it was opened: somebody has
// built it again.
func (s *session) changed() *fleet.ChangedError {
	if len(s.opened.are) == 0 {
		return nil
	}
	for i, is := range s.storedSubjects(s.opened.infos) {
		if was := &s.opened.are[i]; was.Version != is.Version {
			changed := &fleet.ChangedError{Subject: is.Name, Was: was.Version, Is: is.Version}
			was.Version = changed.Was + ", then " + changed.Is
			s.reports.kept.subjects(s.opened.are)
			return changed
		}
	}
	return nil
}

// conclude ends the command: err is what ended the cases.
func (s *session) conclude(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return errInterrupted
	case err != nil:
		return harness(err)
	}
	if changed := s.changed(); changed != nil {
		return &exitError{exitFault, fmt.Errorf("%w: run it again", changed)}
	}
	if s.reports.record != "" {
		if err := s.writeBaseline(); err != nil {
			return &exitError{exitFault, err}
		}
	}
	switch {
	case len(s.summary.Errors) > 0:
		return &exitError{exitUsage, nil}
	case s.summary.Findings() > 0, s.judging.fails() && len(s.summary.Stale) > 0:
		return &exitError{exitFindings, nil}
	case s.summary.Judged() == 0:
		return nothing(s.unjudged())
	}
	return nil
}

// unjudged says why no case was judged.
func (s *session) unjudged() error {
	switch {
	case s.summary.Cases() > 0 && s.beyond == s.summary.Cases() && open.IsRecorded(s.subjects.reference):
		return fmt.Errorf("--reference %s: it holds none of these cases, only those that were recorded with --record, for the same seed and -n", s.subjects.reference)
	case s.summary.Cases() == 0 && len(s.skipped) > 0:
		return fmt.Errorf("%s, which the file skips: %s", count(len(s.skipped), "test"), s.skipped[0].Skip)
	}
	return errors.New(s.summary.Unjudged())
}

// onRecord counts a record and hands it on.
func (s *session) onRecord(rec *verdict.Record) {
	if s.progress.stopped {
		return
	}
	for _, o := range s.observers {
		o.record(rec)
	}
	if rec.Reference.Status == backend.Unsupported && rec.Verdict.Word == verdict.Unsupported {
		s.beyond++
	}
	s.live.record(rec)
	s.accepted.excuse(rec)
	s.summary.Add(rec)
	s.reports.kept.record(rec)
	s.gauges.record(rec)
	s.collector.Record(rec, rec.Verdict.Word.IsFinding())
	s.sink.Record(rec)
	s.cases.printed.record(rec)
	s.progress.record(rec)
	if s.reports.record != "" && rec.Candidate == s.subjects.candidates[0] && rec.Baseline() {
		s.recorded = append(s.recorded, recorded.Case{Test: rec.Test, Program: rec.Program, Outcome: rec.Reference})
	}
}

func (s *session) onEnd(e *verdict.End) {
	if s.progress.stopped {
		return
	}
	for _, o := range s.observers {
		o.end(e)
	}
	if e.Err != nil {
		s.summary.Errors = append(s.summary.Errors, e.Err)
		s.reports.kept.mistaken(e)
	}
	s.progress.end(e)
	s.live.ends(e)
	if s.gauges.end(e) {
		s.summary.Weak++
	}
	s.collector.End()
	s.sink.End(e)
	s.cases.printed.end(e)
}

// writeBaseline writes what was recorded.
func (s *session) writeBaseline() error {
	ref, err := s.cfg.Reference()
	if err != nil {
		return err
	}
	defer ref.Close()
	return recorded.WriteFile(s.reports.record, ref.Info(), s.recorded)
}

// soft says whether a flag has its value from plumb.toml.
func (s *session) soft(name string) bool { return s.subjects.soft != nil && s.subjects.soft(name) }
