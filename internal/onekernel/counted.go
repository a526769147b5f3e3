package onekernel

import (
	"context"
	"slices"
)

// warmup is how many calls a kernel that counts them answers rightly at least.
const warmup = 3

// counted asks a kernel whose first calls are right and later ones wrong the very first
// call again: where that is wrong too by now, it answers by how often it was called.
func (s *Session) counted(ctx context.Context) error {
	failed := s.failsLater()
	if failed == nil {
		return nil
	}
	known, earlier := s.findings, s.earlier
	s.earlier = map[string]uint64{}
	r, err := s.one(ctx, s.outcomes[0].Case)
	s.findings, s.earlier = known, earlier
	if err != nil || r == nil || !r.misaligned {
		return err
	}
	f := finding{"counts", "gives another result for the arguments of its first call, which it answered rightly, after some calls more", failed}
	failed.problems = append(failed.problems, f)
	s.add(f)
	return nil
}

// failsLater is the first wrong result of a kernel whose first ones were right, for as long
// as a warm-up takes at least; nil of any other.
func (s *Session) failsLater() *result {
	right := 0
	for right < len(s.outcomes) && s.outcomes[right].fine() {
		right++
	}
	failed := slices.IndexFunc(s.outcomes[right:], func(r *result) bool { return r.misaligned })
	if right < warmup || failed < 0 {
		return nil
	}
	return s.outcomes[right+failed]
}
