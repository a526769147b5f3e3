package baseline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// RunConfig says what to judge.
type RunConfig struct {
	// Select tells whether a case is judged; nil selects all.
	Select func(e *Entry) bool
	// Skip returns why a selected case is not run; "" for one that is. Nil skips none.
	Skip func(e *Entry) string
	// Expect returns what is wrong with the program that was recorded of a
	// variant; nil finds nothing wrong.
	Expect func(e *Entry, variant string, p *program.Program) error
	// Change returns the program that the candidate runs in the place of a recorded
	// one: the same calls over inputs of the same names and values. Nil changes none.
	Change func(e *Entry, variant string, p *program.Program) (*program.Program, error)
	// Candidate is the name of the candidate, Open starts one more instance.
	Candidate string
	Open      func() (backend.Backend, error)
	// Predict returns the backend from which large results were told apart; nil
	// where the candidate is the same.
	Predict func() backend.Backend
	// Judge judges a candidate's outcome.
	Judge func(q *Question) *verdict.Verdict
	// Note returns what else is to be said about a judged case, by its kind; it is
	// called from several goroutines. Nil says nothing.
	Note func(r *Record, ref, cand *backend.Outcome) map[string]string
	// Read is from how many elements on, of inputs and results, Judge judges a case
	// by Question.Measure; 0 for none.
	Read   int
	Jobs   int
	Memory int64 // of the cases under way, in bytes
	// OnRecord receives the records in the order of the manifest, from one goroutine
	// at a time: those of a case one after the other and none without the others,
	// soon after they are judged.
	OnRecord func(*Record)
}

// Question is an outcome to judge.
type Question struct {
	Entry     *Entry
	Job       *backend.Job
	Ref, Cand *backend.Outcome
	// Truth reads the oracle that was recorded, while the outcome is judged; it is
	// nil where there is none.
	Truth func() (*verdict.Oracle, error)
	// Measure, where set, is what the policy has to have; see verdict.Policy. Ref
	// has the shapes of its large results then, and not their elements.
	Measure func(want, got *tensor.Tensor, limit compare.Limit, o compare.Options) compare.Diff
}

// Record is a judged variant of a case. One of a case that could not be run
// has an empty program and no outcomes.
type Record struct {
	verdict.Record
	Entry   *Entry
	Variant string
	Skipped bool
	Notes   map[string]string // see RunConfig.Note
	Elapsed time.Duration     // what the candidate took; 0 where it does not tell
}

// Run judges a candidate by the baseline. What is wrong with a shard, or with a
// case in it, is a verdict on the cases that it spoils; the error is a fault of
// the candidate's harness, or the context's. The cases that were judged before
// it are handed on.
func (b *Baseline) Run(ctx context.Context, cfg RunConfig) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Baseline: b, RunConfig: cfg, budget: newBudget(cfg.Memory), ready: map[int]*judged{}}
	r.plan()
	var lanes sync.WaitGroup
	for range max(cfg.Jobs, 1) {
		lanes.Go(func() {
			if err := r.lane(ctx); err != nil {
				cancel(err)
			}
		})
	}
	lanes.Wait()
	r.rest()
	return context.Cause(ctx)
}

// run is one run over a baseline.
type run struct {
	*Baseline
	RunConfig
	budget   *budget
	sections []section

	mu      sync.Mutex
	next    int
	emitted int
	ready   map[int]*judged // sections that are not all handed on
}

// section is a shard with the selected cases around it.
type section struct {
	shard *Shard // nil for cases that are in none
	cases []listed
}

// listed is a case of a section.
type listed struct {
	entry *Entry
	index int // in the manifest
	at    int // in the shard; -1 where it is in none
}

// plan divides the selected cases into sections: cases and shards are in the
// same order.
func (r *run) plan() {
	m := &r.Manifest
	now := section{}
	shard, at := 0, 0
	for i := range m.Cases {
		e := &m.Cases[i]
		one := listed{e, i, -1}
		if e.Missing == "" {
			if at == m.Shards[shard].Cases {
				r.end(now)
				now, at = section{}, 0
				shard++
			}
			now.shard = &m.Shards[shard]
			one.at = at
			at++
		}
		if r.Select == nil || r.Select(e) {
			now.cases = append(now.cases, one)
		}
	}
	r.end(now)
}

func (r *run) end(s section) {
	if len(s.cases) > 0 {
		r.sections = append(r.sections, s)
	}
}

func (r *run) take() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return r.next - 1
}

// judged are the records of a section that wait to be handed on.
type judged struct {
	records []*Record
	all     bool // no more follow
}

// done takes the next records of a section, and hands on those that are now in
// order.
func (r *run) done(i int, records []*Record, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready[i] == nil {
		r.ready[i] = &judged{}
	}
	r.ready[i].records = append(r.ready[i].records, records...)
	r.ready[i].all = all
	for j := r.ready[r.emitted]; j != nil; j = r.ready[r.emitted] {
		r.emit(j)
		if !j.all {
			return
		}
		delete(r.ready, r.emitted)
		r.emitted++
	}
}

func (r *run) emit(j *judged) {
	for _, rec := range j.records {
		r.OnRecord(rec)
	}
	j.records = nil
}

// rest hands on what was judged after a section that was not finished.
func (r *run) rest() {
	for _, i := range slices.Sorted(maps.Keys(r.ready)) {
		r.emit(r.ready[i])
	}
}

func (r *run) lane(ctx context.Context) (err error) {
	i := r.take()
	if i >= len(r.sections) {
		return nil
	}
	cand, err := r.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cand.Close()) }()
	l := &runLane{run: r, cand: cand}
	if r.Predict != nil {
		l.like = r.Predict()
	}
	for ; i < len(r.sections) && ctx.Err() == nil; i = r.take() {
		if err := l.section(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// runLane judges sections with one instance of the candidate: while results are
// judged, the candidate is at the next batch.
type runLane struct {
	*run
	cand backend.Backend
	like backend.Backend // nil where the candidate is the predictor
}

// trial is one variant of a case on its way through a lane.
type trial struct {
	record  *Record
	stored  *variantJSON
	program *program.Program
	asked   *program.Program // of the candidate
	at      int              // in the lane's list
	bytes   int64
	job     *backend.Job // of program
	outcome *backend.Outcome
}

type tried struct {
	trials []*trial
	held   int64
	err    error
}

// section judges a section, and hands its records on batch by batch.
func (l *runLane) section(ctx context.Context, i int) error {
	records, trials, shard := l.open(&l.sections[i])
	if shard != nil {
		defer shard.close()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan tried)
	go func() {
		defer close(batches)
		for _, b := range runsOf(trials, batchCases, batchBytes, func(t **trial) int64 { return (*t).bytes }) {
			r := l.try(ctx, b)
			batches <- r
			if r.err != nil || ctx.Err() != nil {
				return
			}
		}
	}()
	var failed error
	for b := range batches {
		if failed = errors.Join(failed, b.err); failed == nil {
			for _, t := range b.trials {
				if t.outcome != nil && ctx.Err() == nil {
					l.judge(ctx, t, shard)
				}
				if ctx.Err() != nil {
					t.record.Verdict = nil // of what may have been cut short
				}
				t.job, t.outcome = nil, nil
				shard.done(t.at)
			}
			n := finished(records)
			l.done(i, records[:n], n == len(records))
			records = records[n:]
		} else {
			cancel()
		}
		l.budget.give(b.held)
	}
	if len(trials) == 0 {
		l.done(i, records, true)
	}
	return failed
}

// finished counts the records before the first case that has one without a verdict.
func finished(records []*Record) int {
	n := slices.IndexFunc(records, func(r *Record) bool { return r.Verdict == nil })
	if n < 0 {
		return len(records)
	}
	for n > 0 && records[n-1].Entry == records[n].Entry {
		n--
	}
	return n
}

// open opens a section's shard, which is nil where it has none. It returns a
// record for every variant, those that are judged already among them, and what
// there is to try.
func (l *runLane) open(s *section) (records []*Record, trials []*trial, shard *shardReader) {
	var broken error
	if s.shard != nil {
		shard, broken = openShard(l.files, s.shard)
	}
	for _, c := range s.cases {
		if v := l.unrun(c, broken); v != nil {
			rec := l.record(c, "", &program.Program{Name: c.entry.Name}, v)
			rec.Skipped = v.Word == ""
			records = append(records, rec)
			continue
		}
		stored := &shard.text.Cases[c.at]
		if stored.Name != c.entry.Name || len(stored.Variants) == 0 {
			records = append(records, l.record(c, "", &program.Program{Name: c.entry.Name}, fault(fmt.Errorf("%s: holds %q in the place of this case", s.shard.Name, stored.Name))))
			continue
		}
		for i := range stored.Variants {
			v := &stored.Variants[i]
			p, err := v.parse()
			if err == nil && l.Expect != nil {
				err = l.Expect(c.entry, v.Name, p)
			}
			asked := p
			if err == nil && l.Change != nil {
				asked, err = l.Change(c.entry, v.Name, p)
			}
			if err != nil {
				records = append(records, l.record(c, v.Name, &program.Program{Name: c.entry.Name}, fault(fmt.Errorf("%s: %s: %w", s.shard.Name, c.entry.Name, err))))
				continue
			}
			rec := l.record(c, v.Name, asked, nil)
			records = append(records, rec)
			shard.needs(len(trials), v, len(p.Calls))
			trials = append(trials, &trial{record: rec, stored: v, program: p, asked: asked, at: len(trials), bytes: inputBytes(p)})
		}
	}
	return records, trials, shard
}

func (l *runLane) record(c listed, variant string, p *program.Program, v *verdict.Verdict) *Record {
	return &Record{
		Record: verdict.Record{Test: c.entry.Function, Index: c.index, Candidate: l.Candidate, Program: p, Verdict: v},
		Entry:  c.entry, Variant: variant,
	}
}

// unrun returns the verdict on a case that cannot be run, one without a word on
// a case that is not to be; nil for others.
func (l *runLane) unrun(c listed, broken error) *verdict.Verdict {
	if l.Skip != nil {
		if why := l.Skip(c.entry); why != "" {
			return &verdict.Verdict{Reason: why}
		}
	}
	switch {
	case c.entry.Missing != "":
		return &verdict.Verdict{Word: verdict.Unsupported, Reason: "the case was not recorded: " + c.entry.Missing}
	case broken != nil:
		return fault(broken)
	}
	return nil
}

func fault(err error) *verdict.Verdict {
	return &verdict.Verdict{Word: verdict.Fault, Reason: err.Error()}
}

// try draws the inputs of a batch and asks the candidate about the cases that
// asks has.
func (l *runLane) try(ctx context.Context, trials []*trial) tried {
	var bytes int64
	for _, t := range trials {
		bytes += t.bytes
	}
	r := tried{trials: trials, held: l.budget.take(perInput * bytes)}
	var jobs []*backend.Job
	var asked []*trial
	for _, t := range trials {
		t.job = &backend.Job{Program: t.program}
		if !l.asks(t) {
			t.outcome = &backend.Outcome{}
			continue
		}
		t.job = newJob(t.program)
		job := t.job
		if t.asked != t.program {
			job = newJob(t.asked)
		}
		jobs, asked = append(jobs, job), append(asked, t)
	}
	outcomes, err := backend.RunBatch(ctx, l.cand, jobs)
	if ctx.Err() != nil {
		return r // outcomes of an ended run say that their time is over
	}
	if r.err = err; err == nil {
		for i, t := range asked {
			t.outcome = outcomes[i]
		}
	}
	return r
}

// asks reports whether the candidate is asked about a case: it is not where the
// reference did not finish, or has no kernel for the dtype, since no answer
// could be judged.
func (l *runLane) asks(t *trial) bool {
	s := &t.stored.Outcome
	return s.Status == backend.OK || s.Status == backend.Raised && l.refusal(t, t.refusal()).Word == verdict.Rejected
}

// refusal is the verdict on what a candidate does with a case that the reference
// refused.
func (l *runLane) refusal(t *trial, cand *backend.Outcome) *verdict.Verdict {
	return l.Judge(&Question{Entry: t.record.Entry, Job: t.job, Ref: t.refusal(), Cand: cand})
}

// refusal is how the reference failed the case.
func (t *trial) refusal() *backend.Outcome {
	s := &t.stored.Outcome
	return &backend.Outcome{Status: s.Status, Class: s.Class, Message: s.Message, Call: s.Call}
}

// judge sets the verdict of a trial's record.
func (l *runLane) judge(ctx context.Context, t *trial, shard *shardReader) {
	rec := t.record
	rec.Elapsed = t.outcome.Elapsed
	if t.stored.Outcome.Status != backend.OK {
		rec.Verdict = l.refused(t)
		return
	}
	d := newDecoder(t.job, shard, l.predictor(ctx, t))
	if l.readable(t) {
		if rec.Verdict = l.reading(t, d, shard); rec.Verdict != nil {
			return
		}
	}
	ref, err := t.stored.Outcome.Outcome(len(t.program.Calls), d.tensor)
	if err != nil {
		rec.Verdict = fault(fmt.Errorf("%s: %w", rec.Entry.Name, l.explain(err)))
		return
	}
	q := &Question{Entry: rec.Entry, Job: t.job, Ref: ref, Cand: t.outcome}
	if truth := t.stored.Truth; truth != nil {
		q.Truth = func() (*verdict.Oracle, error) { return truth.oracle(q.Job, ref, shard) }
	}
	rec.Verdict = l.Judge(q)
	if l.Note != nil {
		rec.Notes = l.Note(rec, ref, t.outcome)
	}
}

// refused is the verdict on a case that the reference did not finish.
func (l *runLane) refused(t *trial) *verdict.Verdict {
	o := t.refusal()
	what, also := "did not finish", ""
	v := &verdict.Verdict{Word: verdict.Unsupported}
	if o.Status == backend.Raised {
		what = "refused"
		v = l.refusal(t, o)
	}
	if l.asks(t) {
		v, also = l.withoutReference(t)
	}
	v.Reason = fmt.Sprintf("the reference %s this case when it was recorded: %s: %s", what, o.Class, o.Message) + also
	return v
}

// withoutReference is the verdict on what the candidate does with a case that
// the reference refused, and what it does.
func (l *runLane) withoutReference(t *trial) (v *verdict.Verdict, also string) {
	c := t.outcome
	if c.Status == backend.OK {
		return &verdict.Verdict{Word: verdict.Unsupported}, "; the candidate computes it, and there is nothing to judge that by"
	}
	v = l.refusal(t, c)
	if c.Status == backend.Raised {
		return v, fmt.Sprintf("; so does the candidate: %s: %s", c.Class, c.Message)
	}
	return v, "; " + v.Reason
}

// predictor returns the predicted tensors of a trial when they are first asked for.
func (l *runLane) predictor(ctx context.Context, t *trial) func() (map[string]*tensor.Tensor, error) {
	return sync.OnceValues(func() (map[string]*tensor.Tensor, error) {
		o := t.outcome
		if l.like != nil {
			var err error
			if o, err = l.like.Run(ctx, t.job); err != nil {
				return nil, err
			}
		}
		if o.Status != backend.OK {
			return nil, errPredictor
		}
		return tensorsOf(o), nil
	})
}

// explain says what to do about a predictor that has changed.
func (l *runLane) explain(err error) error {
	if errors.Is(err, errPredictor) {
		return fmt.Errorf("%w; it was recorded by plumb %s: record again, or with --self-contained", err, l.Manifest.Plumb)
	}
	return err
}
