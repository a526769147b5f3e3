// Package campaign is the driver: it plans the cases of a set of tests, runs
// them on the reference and the candidates in parallel lanes, and hands on one
// record per case and candidate, in an order that does not depend on the lanes.
package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"plumb/backend"
	"plumb/internal/campaign/drive"
	"plumb/internal/draw/choice"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// Observer answers what a test asks while it is drawn: the values that the
// reference has for names after the calls of the program so far.
type Observer interface {
	Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error)
}

// Test is a source of cases.
type Test struct {
	Name string
	// N is how many cases to judge. When Fixed, they are the programs 0 to
	// N-1; otherwise draws that the reference rejects are replaced by further
	// ones, up to RejectFactor·N.
	N     int
	Fixed bool
	// First is the index of the first case; an earlier round had those before.
	First int
	// Graph says that the candidates are judged in their graph modes too.
	Graph bool
	// Judge judges its cases; nil for that of the run.
	Judge *judge.Judge
	// Sharing tells how many draws are of one program, on other elements; nil for one.
	Sharing func() int
	// Draw returns the program of an index. It is called from several
	// goroutines, and its result depends on the index alone.
	Draw func(index int, o Observer) (*program.Program, error)
	// Redraw draws an index from an edited record of its decisions, and returns
	// those that it took; with a nil record, as Draw does. Nil when no decisions
	// make the programs.
	Redraw func(index int, record []choice.Choice, o Observer) (*program.Program, []choice.Choice, error)
}

// RejectFactor times N is the number of rejections after which a test is given up.
const RejectFactor = 20

// Opener starts one more instance of a backend.
type Opener func() (backend.Backend, error)

// Config says what to run.
type Config struct {
	Tests     []Test
	Reference Opener
	// ReferenceName is the reference's in votes; "" for "reference".
	ReferenceName string
	Candidates    []Candidate
	// Jobs is the most instances of a backend that there are, and the number of
	// lanes: of more where a candidate compiles what they ask as one function.
	Jobs int
	// Batch is the largest number of cases in one exchange with a backend.
	Batch int
	Judge *judge.Judge
	// Memory is what the outcomes of the cases under way may take, in bytes, of two
	// subjects each; 0 bounds their number alone. A case that takes more runs alone,
	// one whose own outcomes do is skipped.
	Memory int64
	// More, which may be nil, returns the tests of another round once those before
	// have ended; none ends the run.
	More func() []Test
	// OnOpen, which may be nil, is told what the subjects are before anything is drawn.
	OnOpen func(reference backend.Info, candidates []backend.Info)
	// OnCase, which may be nil, is given the first record of a case by the lane that judged
	// it, before OnRecord is. Lanes call it at the same time.
	OnCase func(*verdict.Record)
	// OnRecord receives every record, test by test and case by case, from one
	// goroutine at a time.
	OnRecord func(*verdict.Record)
	// OnEnd is called after a test's last record.
	OnEnd func(*verdict.End)
	// OnWork, which may be nil, is told what each lane does now: a stage, "reference"
	// or "candidates", and a test. Lanes call it at the same time.
	OnWork func(lane int, stage, test string)
}

// Candidate is a backend to judge.
type Candidate struct {
	Name string
	Open Opener
}

// StuckError says that the reference rejected every draw, or nearly so.
type StuckError struct {
	Test     string
	Rejected int
	Accepted int
	Message  string // the reference's most frequent message, with the target that raised it
	Times    int
}

// Error describes the failure with the reference's most frequent message.
func (e *StuckError) Error() string {
	return fmt.Sprintf("%s: the reference rejected %d draws and accepted %d; %d times with %s",
		e.Test, e.Rejected, e.Accepted, e.Times, e.Message)
}

// Run judges every test's cases. The error is a fault of the harness or the
// context's; mistakes in a test are reported through OnEnd.
func Run(ctx context.Context, cfg Config) error {
	cfg.Jobs, cfg.Batch = max(cfg.Jobs, 1), max(cfg.Batch, 1)
	p, err := openPools(&cfg)
	if err != nil {
		return err
	}
	err = cfg.round(ctx, cfg.Tests, p)
	for err == nil && cfg.More != nil {
		more := cfg.More()
		if len(more) == 0 {
			break
		}
		err = cfg.round(ctx, more, p)
	}
	return errors.Join(err, p.close())
}

// round judges the cases of tests.
func (c *Config) round(ctx context.Context, tests []Test, p *pools) error {
	var lanes atomic.Int64
	plan := drive.Config[*testRun, *batch]{
		Jobs:   p.lanes(c.Jobs),
		Open:   func() (drive.Lane[*batch], error) { return &lane{c, p, int(lanes.Add(1)) - 1}, nil },
		Limit:  c.limit(),
		Retain: true,
		Done:   (*batch).count,
		HandOn: (*batch).handOn,
		End:    (*testRun).end,
	}
	for i := range tests {
		plan.Sources = append(plan.Sources, &testRun{Test: &tests[i], cfg: c, next: tests[i].First, reasons: map[string]int{}})
	}
	return drive.Run(ctx, plan)
}

// runAhead times a lane's batch is how many cases may wait, with all their
// tensors, for a slow one before them: fewer where these take Config.Memory.
const runAhead = 16

// limit is what the cases under way may cost, in bytes.
func (c *Config) limit() int64 {
	return c.least() * int64(runAhead*c.Jobs*c.Batch)
}

// least is what a case costs however small it is.
func (c *Config) least() int64 { return max(1, c.Memory/int64(runAhead*c.Jobs*c.Batch)) }

// lane runs batches: the reference works on the next batch while the
// candidates and the judgement are at the one before.
type lane struct {
	cfg *Config
	*pools
	index int
}

// at tells what the lane does now.
func (l *lane) at(stage string, b *batch) {
	if l.cfg.OnWork != nil {
		l.cfg.OnWork(l.index, stage, b.test.Name)
	}
}

// Close leaves the backends to the other lanes.
func (*lane) Close() error { return nil }

// batch is a run of consecutive cases of one test.
type batch struct {
	test  *testRun
	first int
	cases []caseRun
}

type caseRun struct {
	at      int // in the batch
	program *program.Program
	job     *backend.Job
	ref     *backend.Outcome
	bytes   int64 // of the reference's outcome
	records []*verdict.Record
	err     error // of the draw
}

// Run draws a batch's cases and runs them on the reference.
func (l *lane) Run(ctx context.Context, b *batch) error {
	l.at("reference", b)
	l.draw(b)
	outcomes, err := l.ask(ctx, b.jobs())
	if err != nil {
		return err
	}
	i := 0
	for j := range b.cases {
		if b.cases[j].job != nil {
			b.cases[j].ref, b.cases[j].bytes = outcomes[i], int64(outcomes[i].Size())
			i++
		}
	}
	return nil
}

func (l *lane) draw(b *batch) {
	for i := range b.cases {
		c := &b.cases[i]
		c.at = i
		c.program, c.err = b.test.Draw(b.first+i, l)
		if cut := (*CutShort)(nil); errors.As(c.err, &cut) {
			c.program, c.err = cut.Program, nil
		}
		if c.err == nil {
			if err := c.program.Validate(); err != nil {
				c.err = fmt.Errorf("%s: case %d is not a valid program: %w", b.test.Name, b.first+i, err)
			}
		}
		if c.err != nil {
			continue
		}
		c.job = backend.NewJob(c.program)
	}
}

// Job returns what a candidate is asked to run: the program on its inputs, from
// the state that the reference reported.
func Job(p *program.Program, ref *backend.Outcome) *backend.Job {
	job := backend.NewJob(p)
	job.State = ref.Initial
	return job
}

// Observe runs the program so far on the reference.
func (l *lane) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	return backend.Observe(p, refs, func(job *backend.Job) (*backend.Outcome, error) {
		outcomes, err := l.ask(context.Background(), []*backend.Job{job})
		if err != nil {
			return nil, err
		}
		if out := outcomes[0]; out.Status != backend.OK {
			return nil, &CutShort{p, out}
		}
		return outcomes[0], nil
	})
}

// CutShort is the error of an observation that the reference failed. The draw
// ends there, and the program so far is its case: the reference fails it
// again, and the candidates have to fail it likewise.
type CutShort struct {
	Program *program.Program
	Outcome *backend.Outcome
}

// Error returns what the reference said.
func (c *CutShort) Error() string { return c.Outcome.Class + ": " + c.Outcome.Message }

// Raised returns the exception that the reference raised; false where it failed otherwise.
func (c *CutShort) Raised() (class, message string, ok bool) {
	return c.Outcome.Class, c.Outcome.Message, c.Outcome.Status == backend.Raised
}

func (b *batch) jobs() []*backend.Job {
	var jobs []*backend.Job
	for i := range b.cases {
		if j := b.cases[i].job; j != nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// Finish runs a batch on the candidates and judges what they did.
func (l *lane) Finish(ctx context.Context, b *batch) error {
	l.at("candidates", b)
	for i := range b.cases {
		b.cases[i].excused(l.cfg, b)
	}
	var ran []*caseRun
	var jobs []*backend.Job
	var refs []*backend.Outcome
	for i := range b.cases {
		if c := &b.cases[i]; c.job != nil && c.records == nil {
			c.job.State, c.job.Reach = c.ref.Initial, backend.Reach(c.program, c.ref)
			ran, jobs, refs = append(ran, c), append(jobs, c.job), append(refs, c.ref)
		}
	}
	polls := make([][]verdict.Voter, len(ran))
	for ci, cand := range l.cands {
		trials, err := l.try(ctx, cand, b.test.Test, jobs, refs)
		if err != nil {
			return err
		}
		for i, c := range ran {
			of := verdict.Record{Test: b.test.Name, Index: b.first + c.at, Candidate: l.cfg.Candidates[ci].Name, Program: c.program, Reference: c.ref}
			c.records = append(c.records, merge(trials[i], of)...)
			polls[i] = append(polls[i], verdict.Voter{Name: of.Candidate, Outcome: trials[i][0].outcome})
		}
	}
	for i, c := range ran {
		for _, r := range c.records {
			l.cfg.poll(r, polls[i])
		}
		if l.cfg.OnCase != nil && len(c.records) > 0 {
			l.cfg.OnCase(c.records[0])
		}
	}
	for i := range b.cases {
		b.cases[i].job = nil // with its inputs
	}
	return nil
}

// ask runs jobs on the reference.
func (l *lane) ask(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	return l.ref.run(ctx, 0, jobs)
}

// Lacking is an error of a draw that may say that the test uses something that
// tests do not have: a verdict on the test, not a mistake. Or it says that the
// draw alone is larger than what may be drawn.
type Lacking interface {
	error
	Lacks() bool
	Skips() bool
}

// unsupported reports whether the draw says that tests lack something that the
// test uses.
func (c *caseRun) unsupported() bool {
	var e Lacking
	return errors.As(c.err, &e) && e.Lacks()
}

// skipped says why the case is not judged; "" where it is.
func (c *caseRun) skipped(memory int64) string {
	var e Lacking
	switch {
	case errors.As(c.err, &e) && e.Skips():
		return e.Error()
	case memory > 0 && 2*c.bytes > memory:
		return fmt.Sprintf("its results take %d MB in each subject, more than half of the %d MB of --memory", c.bytes>>20, memory>>20)
	}
	return ""
}

// excused records the verdict on a case that the candidates are not asked about:
// a draw that needs what test files lack, or one that is too large.
func (c *caseRun) excused(cfg *Config, b *batch) {
	word, reason := verdict.Skipped, c.skipped(cfg.Memory)
	if c.unsupported() {
		word, reason = verdict.Unsupported, c.err.Error()
	}
	if reason == "" {
		return
	}
	p := c.program
	if p == nil {
		p = &program.Program{Name: b.test.Name}
	}
	out := &backend.Outcome{Status: backend.Unsupported, Message: reason}
	c.ref = out
	for _, cand := range cfg.Candidates {
		c.records = append(c.records, &verdict.Record{
			Test: b.test.Name, Index: b.first + c.at, Candidate: cand.Name, Program: p,
			Verdict: &verdict.Verdict{Word: word, Reason: reason}, Reference: out, Outcome: out,
		})
	}
}

// rejected reports whether the case is to be replaced by another draw: the
// reference raised, and so did every candidate.
func (c *caseRun) rejected() bool {
	return c.err == nil && len(c.records) > 0 && !slices.ContainsFunc(c.records, func(r *verdict.Record) bool { return r.Verdict.Word != verdict.Rejected })
}

// reason says where and why the reference rejected the case, or the candidate
// where it alone did.
func (c *caseRun) reason() string {
	o := c.ref
	if o.Status == backend.OK {
		o = c.records[0].Outcome
	}
	where := "the backward pass"
	if o.Call < len(c.program.Calls) {
		where = c.program.Calls[o.Call].Target
	}
	return fmt.Sprintf("%s: %s: %s", where, o.Class, o.Message)
}

// poll has all subjects vote on a finding; the candidates' outcomes are of
// their own modes, but that of the finding's own is the record's.
func (c *Config) poll(r *verdict.Record, candidates []verdict.Voter) {
	voters := slices.Clone(candidates)
	for i := range voters {
		if voters[i].Name == r.Candidate {
			voters[i].Outcome = r.Outcome
		}
	}
	r.Verdict = r.Verdict.Poll(verdict.Voter{Name: cmp.Or(c.ReferenceName, "reference"), Outcome: r.Reference}, voters)
}
