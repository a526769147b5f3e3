package bandit

import "testing"

// TestBest: who gains goes first; who has less than its floor before all; who has no more
// cases not at all.
func TestBest(t *testing.T) {
	var b Bandit
	gains, fails, dull, over := &Arm{}, &Arm{}, &Arm{}, &Arm{Over: true}
	for _, a := range []*Arm{dull, gains, over, fails} {
		b.Add(a)
	}
	if best := b.Best(); len(best) != 3 || best[0] != dull {
		t.Errorf("before any case: %v", best)
	}
	for _, a := range b.arms {
		b.Give(a, 2)
	}
	b.Told(dull, 2, []uint64{7}, 0, 0)
	b.Told(gains, 2, []uint64{1, 2, 3}, 0.5, 0)
	b.Told(fails, 2, []uint64{1, 2, 3, 7}, 0, 1)
	if best := b.Best(); best[0] != fails || best[1] != gains || best[2] != dull {
		t.Errorf("%v: want %p, %p, %p", best, fails, gains, dull)
	}
	b.Give(gains, 100)
	b.Give(fails, 100)
	b.Told(fails, 100, nil, 0, 50)
	b.Told(gains, 100, nil, 0, 50)
	if best := b.Best(); best[0] != dull {
		t.Error("a test has less than its floor, and others go first")
	}
	if b.Next() != dull || b.Given() != 208 || fails.Given() != 102 || fails.Told() != 102 {
		t.Error(b.Next(), b.Given(), fails)
	}
}
