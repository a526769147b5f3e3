package onekernel

import (
	"context"
	"slices"
)

// warmup is how many calls a kernel that counts them answers rightly at least.
const warmup = 3

// counted asks a kernel whose first calls are right and later ones wrong one of the first
// again: where that is wrong too by now, it answers by how often it was called.
func (s *Session) counted(ctx context.Context) error {
	failed := s.failsLater()
	if failed == nil {
		return nil
	}
	known, earlier := s.findings, s.earlier
	s.earlier = map[string]uint64{}
	r, err := s.one(ctx, s.cheapest().Case)
	s.findings, s.earlier = known, earlier
	if err != nil || r == nil || !r.misaligned {
		return err
	}
	f := finding{"counts", "gives another result for the arguments of a call that it answered rightly, after some calls more", failed}
	failed.problems = append(failed.problems, f)
	s.add(f)
	return nil
}

// cheapest is the call of the first right ones that Triton's interpreter takes least for, the
// very first one of any other kernel.
func (s *Session) cheapest() *result {
	best := s.outcomes[0]
	for _, r := range s.outcomes[:s.rightFirst()] {
		if !r.again && r.work < best.work {
			best = r
		}
	}
	return best
}

// rightFirst is how many calls were right before the first that was not.
func (s *Session) rightFirst() int {
	if n := slices.IndexFunc(s.outcomes, func(r *result) bool { return !r.fine() }); n >= 0 {
		return n
	}
	return len(s.outcomes)
}

// failsLater is the first wrong result of a kernel whose first ones were right, for as long
// as a warm-up takes at least; nil of any other.
func (s *Session) failsLater() *result {
	right := s.rightFirst()
	failed := slices.IndexFunc(s.outcomes[right:], func(r *result) bool { return r.misaligned })
	if right < warmup || failed < 0 {
		return nil
	}
	return s.outcomes[right+failed]
}
