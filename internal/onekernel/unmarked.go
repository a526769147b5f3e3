package onekernel

import (
	"context"
	"slices"
)

// unmarkedCalls are made where nothing says that Triton is interpreted.
const unmarkedCalls = 2

// unmarked asks a kernel of Triton's that may look for the interpreter some of the calls which it
// answered rightly in a process where its environment says nothing of that, as none does beside a
// GPU. One that has another way there and refuses tells nothing: it may be for a GPU alone.
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
	if again == nil {
		return nil
	}
	s.sandbox.unmarked = true
	s.kernel.Restart()
	if err := s.again(ctx); err != nil {
		return nil //nolint:nilerr // it is for a GPU alone
	}
	known, earlier := s.findings, s.earlier
	defer func() { s.findings, s.earlier = known, earlier }()
	for _, r := range again {
		s.findings, s.earlier = nil, map[string]uint64{}
		alone := *r.Case
		alone.again = false
		now, err := s.one(ctx, &alone)
		if err != nil || now == nil {
			return err
		}
		for _, f := range s.findings {
			if f.word() != Limited && !slices.ContainsFunc(known, func(g finding) bool { return g.Kind == f.Kind }) {
				known = append(known, f)
			}
		}
		if now.misaligned {
			f := finding{"marks", "gives another result where its environment does not say that Triton is interpreted (TRITON_INTERPRET)", r}
			r.problems = append(r.problems, f)
			known = append(known, f)
			return nil
		}
	}
	return nil
}
