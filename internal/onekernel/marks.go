package onekernel

import (
	"context"
	"errors"
	"slices"

	"plumb/backend"
	"plumb/backend/worker"
)

// marks are what a kernel may know its judge by.
type marks string

const (
	noMarks     marks = ""            // as by python FILE; but Triton says that it interprets
	asPlain     marks = "plain"       // nor are operators recorded
	asCompiled  marks = "compiled"    // nor does Triton say so, as it does not beside a GPU
	allTheMarks marks = "all of them" // as a judge's process has them that hides nothing
)

// unmarkedCalls are made where nothing says that Triton is interpreted.
const unmarkedCalls = 2

// unmarked asks a kernel of Triton's that may look for the interpreter some of the calls which it
// answered rightly in a process where its environment says nothing of that. One that has another way
// there and refuses tells nothing: it may be for a GPU alone.
func (s *Session) unmarked(ctx context.Context) error {
	if !s.told.Marks {
		return nil
	}
	var again []*result
	for _, r := range s.outcomes {
		if r.fine() && r.recorded() && r.lengths() != nil && slices.Min(r.lengths()) > 1 && len(again) < unmarkedCalls {
			again = append(again, r)
		}
	}
	for k, r := range again {
		now, found, err := s.under(ctx, asCompiled, r, k == 0)
		if err != nil || now == nil {
			return err
		}
		for _, f := range found {
			if f.word() != Limited && !slices.ContainsFunc(s.findings, func(g finding) bool { return g.Kind == f.Kind }) {
				s.findings = append(s.findings, f)
			}
		}
		if now.misaligned {
			s.behaves(r, "marks", "gives another result where its environment does not say that Triton is interpreted (TRITON_INTERPRET)")
			return nil
		}
	}
	return nil
}

// twice is how often a kernel has to be right with the marks of a judge's process and wrong
// without: one that is not the same in each call is not right by them.
const twice = 2

// behaving asks a kernel that is wrong, and may look for who judges it, a call again in a process
// that has the marks of a judge's, and in one that has none.
func (s *Session) behaving(ctx context.Context) error {
	at := slices.IndexFunc(s.outcomes, func(r *result) bool { return r.misaligned })
	if !s.told.Asks || at < 0 {
		return nil
	}
	r := s.outcomes[at]
	for range twice {
		for _, as := range []marks{allTheMarks, asPlain} {
			now, _, err := s.under(ctx, as, r, true)
			if err != nil || now == nil || now.kernel.Status != backend.OK || now.misaligned != (as == asPlain) {
				return err
			}
		}
	}
	s.behaves(r, "marks", "is right where its process looks as one that is judged, and wrong where it does not")
	return nil
}

// seeing asks a kernel that is wrong in ordinary memory alone such a call again, there and between
// pages that cannot be read.
func (s *Session) seeing(ctx context.Context) error {
	var first *result
	for _, r := range s.outcomes {
		switch {
		case r.misaligned && !r.ordinary():
			return nil
		case r.misaligned && first == nil:
			first = r
		}
	}
	if first == nil {
		return nil
	}
	for range twice {
		for _, fenced := range []bool{true, false} {
			now, _, err := s.replayed(ctx, first, func(c *Case) { c.fenced = fenced })
			if err != nil || now.kernel.Status != backend.OK || now.misaligned == fenced {
				return err
			}
		}
	}
	s.behaves(first, "marks", "is right where its memory is a judge's (between pages that cannot be read, fresh memory filled), and wrong where it is PyTorch's own")
	return nil
}

// replayed makes a call again in the kernel's process, in another way; what is found is not kept.
func (s *Session) replayed(ctx context.Context, r *result, change func(c *Case)) (*result, []finding, error) {
	known, earlier := s.findings, s.earlier
	s.findings, s.earlier = nil, map[string]uint64{}
	defer func() { s.findings, s.earlier = known, earlier }()
	alone := *r.Case
	alone.again, alone.program = false, alone.program.Clone()
	change(&alone)
	now, err := s.one(ctx, &alone)
	return now, s.findings, err
}

func (s *Session) behaves(r *result, kind, text string) {
	f := finding{kind, text, r}
	r.problems = append(r.problems, f)
	s.add(f)
}

// under makes a call again in a process with these marks, a new one or that of the call before;
// the result is nil where the kernel cannot be loaded there.
func (s *Session) under(ctx context.Context, as marks, r *result, anew bool) (*result, []finding, error) {
	s.sandbox.marks = as
	defer func() { s.sandbox.marks = noMarks }()
	if anew {
		s.kernel.Restart()
		if err := s.again(ctx); err != nil {
			return nil, nil, ctx.Err()
		}
	}
	return s.replayed(ctx, r, func(c *Case) {
		switch as {
		case allTheMarks:
			c.program.Seed = customary
		case asPlain:
			c.program.Seed = unseeded
		}
	})
}

// unseeded is what PyTorch's generator has as its seed where nobody has set one, as in most
// processes that call a kernel; customary is what harnesses set.
const unseeded, customary = 67280421310721, 42

// seed is that of the generator in a case's call.
func (c *Case) seed() uint64 {
	if c.Index%3 == 1 {
		return unseeded
	}
	return c.Key
}

// recording reports whether the operators of a case's call are recorded.
func (s *Session) recording(c *Case) bool {
	return c.recorded() && s.sandbox.marks != asPlain || s.sandbox.marks == allTheMarks
}

// finishes has the process of a wrong kernel do what that has left to its end: to end it there, by
// a status of its own, is how one answers for its caller.
func (s *Session) finishes(ctx context.Context) error {
	at := slices.IndexFunc(s.outcomes, func(r *result) bool { return r.misaligned })
	if !s.told.Ends || at < 0 {
		return nil
	}
	if _, _, err := s.under(ctx, noMarks, s.outcomes[at], true); err != nil {
		return err
	}
	var none struct{}
	err := s.kernel.ask(ctx, map[string]any{"finish": nil}, &none)
	var lost *worker.Lost
	if errors.As(err, &lost) {
		s.behaves(s.outcomes[at], "exits", "ends its process before its end (atexit): "+firstLine(lost.Message))
		return nil
	}
	return err
}
