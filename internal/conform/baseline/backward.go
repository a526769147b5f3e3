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
	gradients.Cand = within(q.Ref.Without(backend.Part.IsGradient), q.Cand.Without(func(p backend.Part) bool { return !p.IsGradient() }))
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
	g, err := l.Backward(t.record.Entry, t.program, q.Ref)
	if err != nil {
		return unsupported("no function of the gradients: %v", err)
	}
	t.backward.Program, t.backward.Gradients = g.Program, g
	if l.functions == nil {
		if l.functions, err = l.Open(); err != nil {
			return fault(err)
		}
	}
	o, err := l.functions.Run(ctx, backend.NewJob(g.Program))
	if err != nil {
		return fault(err)
	}
	t.backward.Elapsed = o.Elapsed
	gradients, err := g.Gradients(o)
	if err != nil {
		return &verdict.Verdict{Word: verdict.Misaligned, Reason: err.Error()}
	}
	asked := *q
	asked.Cand = within(q.Ref, gradients)
	v := l.Judge(&asked)
	if differs(v) {
		t.backward.Reference, t.backward.Outcome = q.Ref, asked.Cand
	}
	return v
}

// within is the reference's outcome with gradients, or with the end of a function of them.
func within(ref, gradients *backend.Outcome) *backend.Outcome {
	if gradients.Status != backend.OK {
		own := *gradients
		own.Values = ref.Values
		return &own
	}
	for _, s := range gradients.Slots {
		ref = ref.With(s.Place, s.Tensor)
	}
	return ref
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
