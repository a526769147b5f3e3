package onekernel

import (
	"context"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/verdict"
)

// trainings is how many calls of a model that draws random numbers are made in training.
const trainings = 2

// trained compares what a model that draws random numbers in training, as by a dropout,
// leaves in its buffers there: those that are the same in two calls of the reference's, as
// the running statistics of a norm before the dropout, and the law of its results. All else is
// compared in eval alone.
func (s *Session) trained(ctx context.Context) error {
	p, ok := s.maker.form.(*problem)
	if !ok || !p.random {
		return nil
	}
	p.training = true
	defer func() { p.training, p.held, p.kernel = false, "", "" }()
	var fine []*result
	for _, r := range s.outcomes {
		if r.fine() && slices.Min(append(r.lengths(), 2)) >= 2 {
			fine = append(fine, r)
		}
	}
	for _, r := range fine[:min(len(fine), trainings)] {
		now, err := s.buffers(ctx, r)
		if err != nil {
			return err
		}
		if now != nil && len(now.problems) > 0 {
			return nil
		}
		if now != nil && now.verdict.Word == verdict.Misaligned {
			s.outcomes = append(s.outcomes, now)
			s.behaves(now, "state", "leaves other buffers than the reference in training: "+now.verdict.Reason)
			return nil
		}
	}
	if len(fine) == 0 {
		return nil
	}
	return s.law(ctx, slices.MaxFunc(fine, func(a, b *result) int { return a.ref.Elements() - b.ref.Elements() }))
}

// inTraining is the case of a call, in training and without gradients.
func (s *Session) inTraining(r *result) *Case {
	c := *r.Case
	c.program = r.program.Clone()
	c.eval, c.again = false, false
	s.withoutGradients(&c)
	return &c
}

// buffers makes a case's call in training; nil where no buffer tells.
func (s *Session) buffers(ctx context.Context, r *result) (*result, error) {
	c := s.inTraining(r)
	now := &result{Case: c, slack: r.slack}
	refused, err := s.shape(ctx, c)
	if err != nil || refused != nil {
		return nil, err
	}
	job := backend.NewJob(c.program)
	other := backend.NewJob(c.program.Clone())
	other.Program.Seed++
	if now.ref, now.refSeen, err = s.tryReference(ctx, job); err != nil || now.ref.Status != backend.OK {
		return nil, err
	}
	second, _, err := s.tryReference(ctx, other)
	if err != nil || second.Status != backend.OK {
		return nil, err
	}
	if now.kernel, now.seen, err = s.tryKernel(ctx, c, job); err != nil {
		return nil, err
	}
	switch now.kernel.Status {
	case backend.OK:
	case backend.Crashed, backend.TimedOut:
		s.outcomes = append(s.outcomes, now)
		return now, s.weigh(ctx, now, job)
	default:
		s.note("in training, which was not judged, it ends with " + firstLine(now.kernel.Message))
		return nil, nil
	}
	steady := map[string]bool{}
	for _, slot := range now.ref.Slots {
		at := slices.IndexFunc(second.Slots, func(o backend.Slot) bool { return o.Place == slot.Place })
		steady[slot.Owner] = at >= 0 && c.sig.buffer(slot.Owner) && slot.Part == backend.PartChange && slot.Tensor.SameBits(second.Slots[at].Tensor)
	}
	now.ref, now.kernel = onlyOf(now.ref, now.ref, steady), onlyOf(now.kernel, now.ref, steady)
	if len(now.ref.Slots) == 0 {
		return nil, nil
	}
	now.verdict, err = s.judge.Unless(ctx, now.bounded, job, now.ref, now.kernel, s.asks)
	return now, err
}

// onlyOf is an outcome with nothing of its own but the changes of some arguments.
func onlyOf(o, ref *backend.Outcome, owners map[string]bool) *backend.Outcome {
	out := *o
	out.Values, out.Slots = ref.Values, nil
	for _, slot := range o.Slots {
		if slot.Part == backend.PartChange && owners[slot.Owner] {
			out.Slots = append(out.Slots, slot)
		}
	}
	return &out
}
