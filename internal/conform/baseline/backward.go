package baseline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Backward is the variant of a case that is its gradients. A subject that
// differentiates computes them with the case; one that does not may have them as
// a function of their own, from the reference's results.
const Backward = "backward"

// Stored is the variant as which the outcome of the record was recorded.
func (r *Record) Stored() string {
	if r.Variant == Backward {
		return ""
	}
	return r.Variant
}

// apart judges the gradients of a trial beside its results, of which v is the
// verdict with all of them.
func (l *runLane) apart(ctx context.Context, t *trial, q *Question, v *verdict.Verdict) {
	if t.backward == nil {
		return
	}
	own := *v
	t.backward.Verdict = &own
	switch c := t.outcome; {
	case q == nil:
	case c.ForwardOnly || l.cand.Info().ForwardOnly:
		t.backward.Verdict = l.function(ctx, t, q)
	case differs(v):
		l.divide(t, q, v)
		t.backward.Reference, t.backward.Outcome = q.Ref, c
	}
}

// differs reports a finding, or what would be one were it not known.
func differs(v *verdict.Verdict) bool { return v.Word.IsFinding() || v.Word == verdict.Known }

// divide finds whether what is wrong with a trial is in its results, in its
// gradients, or in both: the gradients are judged beside the reference's results.
func (l *runLane) divide(t *trial, q *Question, v *verdict.Verdict) {
	forward := *q
	p := q.Job.Program.Clone()
	p.Backward, p.Second = nil, program.Fill{}
	forward.Job = &backend.Job{Program: p, Inputs: q.Job.Inputs}
	forward.Ref, forward.Cand = q.Ref.Without(backend.Part.IsGradient), q.Cand.Without(backend.Part.IsGradient)
	if c := forward.Cand; c.Call == len(p.Calls) && c.Status == backend.Raised {
		c.Status, c.Class, c.Message = backend.OK, "", ""
	}
	t.record.Verdict = l.Judge(&forward)
	if !differs(t.record.Verdict) || q.Cand.Status != backend.OK {
		return
	}
	gradients := *q
	own := q.Cand.Without(func(p backend.Part) bool { return !p.IsGradient() })
	gradients.Cand = q.Ref.Without(backend.Part.IsGradient).Holding(own.Slots)
	t.backward.Verdict = l.Judge(&gradients)
}

// function asks a subject that does not differentiate for the gradients, as a
// function of their own. They are judged as those of the case.
func (l *runLane) function(ctx context.Context, t *trial, q *Question) *verdict.Verdict {
	unsupported := func(format string, args ...any) *verdict.Verdict {
		return &verdict.Verdict{Word: verdict.Unsupported, Reason: fmt.Sprintf(format, args...)}
	}
	if l.Backward == nil || !l.cand.Info().ForwardOnly {
		return unsupported("the candidate has no gradients: %s", cmp.Or(t.outcome.NoGradients, "none were asked for"))
	}
	f, _, err := l.Backward(t.record.Entry, t.program, q.Ref)
	if err != nil {
		return unsupported("no function of the gradients: %v", err)
	}
	asked := *q
	var bad *verdict.Verdict
	if asked.Cand, bad = l.call(ctx, t.backward, f, q.Ref); bad != nil {
		return bad
	}
	v := l.Judge(&asked)
	if differs(v) {
		t.backward.Reference, t.backward.Outcome = q.Ref, asked.Cand
	}
	return v
}

// whole asks the candidate for all of a trial as one function. It returns what is judged,
// and by what; or a verdict, where there is no outcome.
func (l *runLane) whole(ctx context.Context, t *trial, ref *backend.Outcome) (job *backend.Job, by *backend.Outcome, v *verdict.Verdict) {
	f, by, err := t.asOne(t.record.Entry, t.program, ref)
	if err != nil {
		return nil, nil, &verdict.Verdict{Word: verdict.Unsupported, Reason: err.Error()}
	}
	if t.backward != nil {
		t.backward.Program, t.backward.Function = f.Program, f
	}
	t.outcome, v = l.call(ctx, t.record, f, by)
	return &backend.Job{Program: f.Of, Inputs: t.job.Inputs, State: t.state}, by, v
}

// call asks the candidate for what a function computes of a record's program, beside what
// the reference computed of it; or it returns a verdict.
func (l *runLane) call(ctx context.Context, rec *Record, f *backend.Function, ref *backend.Outcome) (*backend.Outcome, *verdict.Verdict) {
	rec.Program, rec.Function = f.Program, f
	job := backend.NewJob(f.Program)
	o, err := l.ask(ctx, job)
	if err == nil && o.Beside {
		o, err = l.alone(ctx, job)
	}
	if err != nil {
		return nil, fault(err)
	}
	rec.Elapsed, rec.CPU = o.Elapsed, o.CPU
	part, err := f.Part(o)
	if err != nil {
		return nil, &verdict.Verdict{Word: verdict.Misaligned, Reason: err.Error()}
	}
	return f.Beside(ref, part), nil
}

// ask runs a job while the candidate's other instance is at the next batch.
func (l *runLane) ask(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if l.functions == nil {
		var err error
		if l.functions, err = l.Open(); err != nil {
			return nil, err
		}
	}
	return l.functions.Run(ctx, job)
}

// alone runs a job in a process of its own, beside which nothing is left.
func (l *runLane) alone(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	own := *job
	own.Alone = true
	return l.ask(ctx, &own)
}

// TensorOf is the tensor that a reference computed as the value of a call; nil
// where it is none.
func TensorOf(p *program.Program, o *backend.Outcome, name program.Ref) *tensor.Tensor {
	i := slices.IndexFunc(p.Calls, func(c program.Call) bool { return c.Result == string(name) })
	if i < 0 || i >= len(o.Values) {
		return nil
	}
	return o.Values[i].Tensor
}
