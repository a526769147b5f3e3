package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plumb/internal/campaign"
	"plumb/internal/campaign/fleet"
	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/find/accepted"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// labourer judges the units of a campaign on one of its candidates.
type labourer struct {
	*plan
	name  string // of the worker
	tests map[string]campaign.Test
	watch *accepted.Watch
	// next returns the units of another round; none ends the work. done is told of
	// each unit.
	next func() []ledger.Unit
	done func(ledger.Result) error
	// alone is told, before a case is judged that is a round by itself, what it is if
	// the process does not survive that.
	alone func(store.Case)

	round []ledger.Unit
	at    int // in the round
	cases []store.Case
	fresh []uint64        // traits of these
	had   map[uint64]bool // traits; nil in a campaign without a budget
	since time.Time
	stop  context.CancelCauseFunc
}

// local are the flags of a worker that are its machine's own.
type local struct {
	python  string
	jobs    int
	sandbox bool
	held    map[string]string // where recorded results lie, by the path that the campaign has
	log     io.Writer
}

// newLabourer opens the subjects of a spec with one of its candidates.
func newLabourer(ctx context.Context, s *spec, candidate string, on local) (*labourer, error) {
	_, p := newCampaignPlan()
	if err := s.restore(p, candidate); err != nil {
		return nil, usage(err)
	}
	p.subjects.python, p.subjects.jobs, p.subjects.set.Held = on.python, on.jobs, on.held
	p.subjects.sandbox = p.subjects.sandbox || on.sandbox
	if !slices.ContainsFunc(p.subjects.specs(), isTorch) {
		p.subjects.python = ""
	}
	p.out, p.err = io.Discard, on.log
	if err := p.open(ctx, false); err != nil {
		return nil, err
	}
	by, err := p.judging.arm(p.cfg, &p.subjects)
	if err != nil {
		return nil, err
	}
	by.SameException = true
	p.strict = judge.New(by)
	l := &labourer{plan: p, name: workerName(), tests: map[string]campaign.Test{}}
	if s.Budget.Is() {
		l.had = map[uint64]bool{}
	}
	if s.Known != "" {
		list, err := accepted.Read(strings.NewReader(s.Known))
		if err != nil {
			return nil, usage(err)
		}
		l.watch = accepted.NewWatch(list, time.Now())
	}
	tests, err := s.tests(ctx, p)
	if err != nil {
		return nil, usage(err)
	}
	for _, t := range tests {
		l.tests[t.Name] = t
	}
	return l, nil
}

// workerName tells the workers of a campaign apart.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// work judges units until there are no more.
func (l *labourer) work(ctx context.Context) error {
	defer l.plan.cases.sigs.Close()
	boundHeap(l.judging.memory, usualGarbage)
	ctx, l.stop = context.WithCancelCause(ctx)
	defer l.stop(nil)
	cfg := *l.cfg
	cfg.OnRecord, cfg.OnEnd = l.record, l.end
	cfg.More = func() []campaign.Test {
		l.round, l.at, l.cases, l.fresh, l.since = l.next(), 0, nil, nil, time.Now()
		var tests []campaign.Test
		for _, u := range l.round {
			t, ok := l.tests[u.Test]
			if !ok {
				l.stop(usage(fmt.Errorf("the campaign has a test %s, and its files do not", u.Test)))
				return nil
			}
			t.First, t.N, t.Fixed = u.First, u.Size, true
			if len(l.round) == 1 && u.Size == 1 {
				l.announce(&t)
			}
			tests = append(tests, t)
		}
		return tests
	}
	return campaign.Run(ctx, cfg)
}

// announce has the one case of a test told before it is judged.
func (l *labourer) announce(t *campaign.Test) {
	draw, name := t.Draw, t.Name
	t.Draw = func(index int, o campaign.Observer) (*program.Program, error) {
		p, err := draw(index, o)
		if err == nil {
			l.alone(boundedCase(&verdict.Record{Test: name, Index: index, Candidate: l.cfg.Candidates[0].Name, Program: p, Verdict: &verdict.Verdict{Word: verdict.Crash}}))
		}
		return p, err
	}
}

func (l *labourer) record(rec *verdict.Record) {
	if l.watch != nil {
		l.watch.Excuse(rec)
	}
	l.cases = append(l.cases, boundedCase(rec))
	if l.had == nil {
		return
	}
	for _, t := range report.Traits(rec.Program) {
		if !l.had[t] {
			l.had[t] = true
			l.fresh = append(l.fresh, t)
		}
	}
}

// The most that a case takes on its way to the store, which keeps no more.
const (
	mostReason  = 4 << 10
	mostProgram = 64 << 10
)

// boundedCase is a record as the store keeps it.
func boundedCase(rec *verdict.Record) store.Case {
	c := storedCase(rec)
	c.Reason, c.Text = c.Reason[:min(len(c.Reason), mostReason)], c.Text[:min(len(c.Text), mostProgram)]
	return c
}

// end hands a unit on.
func (l *labourer) end(e *verdict.End) {
	if l.at >= len(l.round) {
		return
	}
	u := l.round[l.at]
	l.at++
	r := ledger.Result{Unit: u.N, Judged: e.Judged, Rejected: e.Rejected, Elapsed: time.Since(l.since), Worker: l.name, Traits: l.fresh, Cases: l.cases}
	l.cases, l.fresh, l.since = nil, nil, time.Now()
	if e.Err != nil {
		r.Error = e.Err.Error()
	}
	judged := map[int]bool{} // false where every record says rejected
	for _, c := range r.Cases {
		judged[c.Number] = judged[c.Number] || c.Word != string(verdict.Rejected)
	}
	if r.Lacks = e.Err == nil && len(judged) < u.Size; r.Lacks {
		r.Judged, r.Rejected = 0, 0
	}
	for _, counts := range judged {
		switch {
		case !r.Lacks:
		case counts:
			r.Judged++
		default:
			r.Rejected++
		}
	}
	if err := l.done(r); err != nil {
		l.stop(err)
	}
}

// abouts tell what subjects are, as far as verdicts depend on it: "" for one that
// does not open here.
func (p *plan) abouts(ctx context.Context, names []string) (func(string) string, []store.Subject, error) {
	texts := map[string]string{}
	var subjects []store.Subject
	p.subjects.leave()
	p.subjects.set.Python, p.subjects.set.Imports, p.subjects.set.Sandbox = p.subjects.python, p.subjects.imports, p.subjects.sandbox
	for _, name := range names {
		opener, err := p.subjects.set.Opener(ctx, name)
		if err != nil {
			return nil, nil, harness(err)
		}
		b, err := opener()
		if err != nil {
			return nil, nil, harness(err)
		}
		info := b.Info()
		if err := b.Close(); err != nil {
			return nil, nil, harness(err)
		}
		code, err := ownCode(name, info)
		if err != nil {
			return nil, nil, harness(err)
		}
		texts[name] = fmt.Sprint(info.Name, info.Version, info.Mode, info.Devices, info.Features, code) // fmt sorts maps
		subjects = append(subjects, subjectOf(name, info))
	}
	return func(name string) string { return texts[name] }, subjects, nil
}

// sameSubjects holds the subjects of a campaign that has cases left to what they were
// when it began, or when the first worker brought them.
func (p *plan) sameSubjects(ctx context.Context, c *store.Campaign, s *spec) error {
	if c.Complete {
		return nil
	}
	p.subjects.imports = s.Flags["import"]
	for _, was := range c.Subjects {
		if was.Version == "" {
			continue
		}
		_, is, err := p.abouts(ctx, []string{was.Name})
		if err != nil {
			return err
		}
		if publicVersion(is[0].Version) != publicVersion(was.Version) {
			return usage(fmt.Errorf("campaign %d was begun with %s as %s, which now is %s: begin a new one; with --incremental it takes what has not changed", c.ID, was.Name, was.Version, is[0].Version))
		}
	}
	return nil
}

// changed is the first of subjects, with their versions, that is another now. Those whose
// version says all of them are not looked at.
func (p *plan) changed(ctx context.Context, was map[string]string) (*fleet.ChangedError, error) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if !strings.Contains(was[name], codeMark) {
			continue
		}
		_, is, err := p.abouts(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		if a, b := publicVersion(was[name]), publicVersion(is[0].Version); a != b {
			return &fleet.ChangedError{Subject: name, Was: a, Is: b}, nil
		}
	}
	return nil, nil
}

// stateDir is the folder of a campaign's state beside its store, made where it is
// not there.
func stateDir(path string, run int64) (string, error) {
	dir := filepath.Join(path+".campaigns", fmt.Sprint(run))
	return dir, os.MkdirAll(dir, 0o700)
}
