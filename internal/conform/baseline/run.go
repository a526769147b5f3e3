package baseline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"plumb/backend"
	"plumb/internal/campaign/drive"
	"plumb/internal/judge/verdict"
	"plumb/internal/refusal"
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
	// Apart judges gradients as a variant of their own, Backward. Its function
	// returns the case by which a candidate that does not differentiate is asked
	// for them; nil asks for none.
	Apart    bool
	Backward Asking
	// AsOne returns how a candidate is asked for all that a variant of a case computes as
	// one function; nil for one that it runs call by call. Nil has all run so.
	AsOne func(e *Entry, variant string) Asking
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
	// Read is from how many elements on, of inputs and results, those of a case
	// are read while they are compared: see backend.Outcome.Unread. 0 is for none.
	Read   int
	Jobs   int
	Memory int64 // of the cases under way, in bytes
	// OnRecord receives the records in the order of the manifest, from one goroutine
	// at a time: those of a case one after the other and none without the others,
	// soon after they are judged.
	OnRecord func(*Record)
}

// Asking returns the function by which a candidate computes a part of a recorded program,
// of which the reference computed ref, and the outcome by which it is judged: ref, or
// that of the program that the function is of.
type Asking func(e *Entry, p *program.Program, ref *backend.Outcome) (*backend.Function, *backend.Outcome, error)

// Question is an outcome to judge.
type Question struct {
	Entry     *Entry
	Job       *backend.Job
	Ref, Cand *backend.Outcome
	Candidate backend.Info
	// Own says that Ref is not what was recorded, but what the program of the function
	// comes to by which the candidate was asked: see Asking.
	Own bool
	// StandIn says that the reference computed the outcome in other types.
	StandIn bool
	// Large says that the case has more elements than one of which a truth is
	// recorded.
	Large bool
	// Truth reads the oracle that was recorded, while the outcome is judged; it is
	// nil where there is none.
	Truth func() (*verdict.Oracle, error)
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
	CPU     time.Duration     // of the candidate's calls; 0 where it does not tell
}

// Judged reports whether the candidate computed the case.
func (r *Record) Judged() bool {
	return r.Verdict != nil && !r.Skipped && !slices.Contains([]verdict.Word{verdict.Unsupported, verdict.Rejected, verdict.Fault}, r.Verdict.Word)
}

// Run judges a candidate by the baseline. What is wrong with a shard, or with a
// case in it, is a verdict on the cases that it spoils; the error is a fault of
// the candidate's harness, or the context's. The cases that were judged before
// it are handed on.
func (b *Baseline) Run(ctx context.Context, cfg RunConfig) error {
	r := &run{b, cfg}
	sections := r.plan()
	err := drive.Run(ctx, drive.Config[*section, *trialBatch]{
		Sources:   sections,
		Jobs:      cfg.Jobs,
		Open:      r.openLane,
		Exclusive: true, // a shard is read from its begin to its end
		Limit:     cfg.Memory,
		Done:      func(b *trialBatch) { b.of.collect() },
		HandOn:    func(b *trialBatch) { b.of.handOn() },
	})
	for _, s := range sections { // what was judged after a section that was not finished
		s.close()
		s.collect()
		s.handOn()
	}
	return err
}

// run is one run over a baseline.
type run struct {
	*Baseline
	RunConfig
}

// runLane judges sections with one instance of the candidate: while results are
// judged, the candidate is at the next batch.
type runLane struct {
	*run
	cand backend.Backend
	like backend.Backend // nil where the candidate is the predictor
	// functions is one more instance of the candidate, which is asked for gradients, and
	// alone, while the other one is at the next batch; nil until one is.
	functions backend.Backend
}

func (r *run) openLane() (drive.Lane[*trialBatch], error) {
	cand, err := r.Open()
	if err != nil {
		return nil, err
	}
	l := &runLane{run: r, cand: cand}
	if r.Predict != nil {
		l.like = r.Predict()
	}
	return l, nil
}

func (l *runLane) Close() error {
	if l.functions == nil {
		return l.cand.Close()
	}
	return errors.Join(l.cand.Close(), l.functions.Close())
}

// Run draws the inputs of a batch and asks the candidate about the cases that
// asks has.
func (l *runLane) Run(ctx context.Context, b *trialBatch) error {
	if b.opens {
		b.of.open()
		return nil
	}
	var jobs []*backend.Job
	var asked []*trial
	for _, t := range b.trials {
		t.job = &backend.Job{Program: t.program}
		if t.asOne != nil {
			t.job, t.outcome = backend.NewJob(t.program), &backend.Outcome{}
			continue
		}
		if !l.asks(t) {
			t.outcome = &backend.Outcome{}
			continue
		}
		t.job = backend.NewJob(t.program)
		t.job.State = t.state
		jobs, asked = append(jobs, t.request()), append(asked, t)
	}
	outcomes, err := backend.RunBatch(ctx, l.cand, jobs)
	if err != nil || ctx.Err() != nil {
		return err
	}
	for i, t := range asked {
		t.outcome = outcomes[i]
	}
	return nil
}

// request is what the candidate is asked for.
func (t *trial) request() *backend.Job {
	if t.asked == t.program {
		return t.job
	}
	job := backend.NewJob(t.asked)
	job.State = t.state
	return job
}

// Finish judges a batch, until the context ends.
func (l *runLane) Finish(ctx context.Context, b *trialBatch) error {
	for _, t := range b.trials {
		if ctx.Err() == nil {
			q := l.judge(ctx, t, b.of.reader)
			if t.asOne == nil && t.outcome.Beside && t.record.Verdict.Word.IsFinding() {
				q = l.judgeAlone(ctx, t, b.of.reader)
			}
			l.apart(ctx, t, q, t.record.Verdict)
		}
		if ctx.Err() != nil { // what may have been cut short
			t.record.Verdict = nil
			if t.backward != nil {
				t.backward.Verdict = nil
			}
		}
		t.job, t.outcome = nil, nil
		b.of.reader.done(t.at)
	}
	if b.of.left -= len(b.trials); b.of.left == 0 {
		b.of.close()
	}
	return nil
}

// judgeAlone judges a case that failed beside what an earlier one has left running, by
// what the candidate does in a process of its own.
func (l *runLane) judgeAlone(ctx context.Context, t *trial, shard *shardReader) *Question {
	t.record.Reference, t.record.Outcome = nil, nil
	var err error
	if t.outcome, err = l.alone(ctx, t.request()); err != nil {
		t.outcome, t.record.Verdict = &backend.Outcome{}, fault(err)
		return nil
	}
	return l.judge(ctx, t, shard)
}

// asks reports whether the candidate is asked about a case: it is not where the
// reference did not finish, or has no kernel for the dtype, since no answer
// could be judged. For one function it is asked when it is judged.
func (l *runLane) asks(t *trial) bool {
	s := &t.stored.Outcome
	return t.asOne == nil && (s.Status == backend.OK || s.Status == backend.Raised && l.refusal(t, t.refusal()).Word == verdict.Rejected)
}

// refusal is the verdict on what a candidate does with a case that the reference
// refused.
func (l *runLane) refusal(t *trial, cand *backend.Outcome) *verdict.Verdict {
	return l.Judge(&Question{Entry: t.record.Entry, Job: t.job, Ref: t.refusal(), Cand: cand, Candidate: l.cand.Info()})
}

// refusal is how the reference failed the case.
func (t *trial) refusal() *backend.Outcome { return t.stored.Outcome.Ending() }

// judge sets the verdict of a trial's record. It returns what was judged; nil
// where that was not the reference's outcome.
func (l *runLane) judge(ctx context.Context, t *trial, shard *shardReader) *Question {
	rec := t.record
	rec.Elapsed, rec.CPU = t.outcome.Elapsed, t.outcome.CPU
	if v := l.refusedAlike(t); v != nil {
		rec.Verdict = v
		return nil
	}
	if t.stored.Outcome.Status != backend.OK {
		rec.Verdict = l.refused(t)
		return nil
	}
	d := newDecoder(t.job, shard, l.predictor(ctx, t))
	if l.readable(t) {
		if rec.Verdict = l.reading(t, d, shard); rec.Verdict != nil {
			return nil
		}
	}
	ref, err := t.stored.Outcome.Outcome(len(t.program.Calls), d.tensor)
	if err != nil {
		rec.Verdict = fault(fmt.Errorf("%s: %w", rec.Entry.Name, l.explain(err)))
		return nil
	}
	job, recorded := t.job, ref
	if t.asOne != nil {
		if job, ref, rec.Verdict = l.whole(ctx, t, ref); rec.Verdict != nil {
			return nil
		}
	}
	q := &Question{Entry: rec.Entry, Job: job, Ref: ref, Cand: t.outcome, Candidate: l.cand.Info(), Large: Elements(job, ref) > truthElements, StandIn: rec.Entry.StandsIn(rec.Stored()), Own: ref != recorded}
	if truth := t.stored.Truth; truth != nil && !q.Own {
		q.Truth = func() (*verdict.Oracle, error) { return truth.oracle(q.Job, ref, shard) }
	}
	rec.Verdict = l.Judge(q)
	if rec.Verdict.Word.IsFinding() {
		rec.Reference, rec.Outcome = ref, t.outcome
	}
	if l.Note != nil {
		rec.Notes = l.Note(rec, ref, t.outcome)
	}
	return q
}

// refusedAlike is the verdict on a case that the reference refused, and computed
// in other types, where the candidate refuses it too; nil for any other.
func (l *runLane) refusedAlike(t *trial) *verdict.Verdict {
	r, ok := t.record.Entry.Refused[t.record.Variant]
	if !ok || r.StandIn == "" || t.outcome.Status != backend.Raised {
		return nil
	}
	ref := &backend.Outcome{Status: r.Status, Class: r.Class, Message: r.Message}
	refusal.Classify(ref)
	v := l.Judge(&Question{Entry: t.record.Entry, Job: t.job, Ref: ref, Cand: t.outcome, Candidate: l.cand.Info()})
	v.Reason = fmt.Sprintf("the reference refused this case when it was recorded: %s: %s; so does the candidate: %s: %s", r.Class, r.Message, t.outcome.Class, t.outcome.Message)
	return v
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
