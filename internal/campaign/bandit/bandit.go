// Package bandit spends cases on the tests that gain most by them: a multi-armed bandit
// whose arms are tests. What it chooses follows from what it was told alone, so that a
// seed replays it.
package bandit

import (
	"cmp"
	"slices"
)

// Bandit knows what its tests have gained. The zero value has no tests.
type Bandit struct {
	arms  []*Arm
	had   map[uint64]bool // traits
	given int             // cases
}

// Arm is a test: what its cases gained.
type Arm struct {
	Over bool // it has no more cases, or is in error

	given int     // cases
	told  int     // of these
	gain  float64 // of a case, the later the more it counts
}

// A case gains a point for each trait that no case had, up to MostTraits; as many as
// newFailure where it fails as none has; and how near it came to its limit, up to 1.
const (
	MostTraits = 6
	newFailure = 6
)

// floorShare is the part of an even share that every test has in any case: 1 of so many.
const floorShare = 4

// Add adds a test.
func (b *Bandit) Add(a *Arm) { b.arms = append(b.arms, a) }

// Give counts cases that a test has from now on.
func (b *Bandit) Give(a *Arm, cases int) {
	b.given += cases
	a.given += cases
}

// Given is how many cases were given to all tests.
func (b *Bandit) Given() int { return b.given }

// Told says what cases of a test came to: their traits, by hashes, the sum of their
// errors ÷ limits, each up to 1, and how many failed in a way that none had.
func (b *Bandit) Told(a *Arm, cases int, traits []uint64, near float64, failures int) {
	if cases == 0 {
		return
	}
	if b.had == nil {
		b.had = map[uint64]bool{}
	}
	fresh := 0
	for _, t := range traits {
		if !b.had[t] {
			b.had[t] = true
			fresh++
		}
	}
	gain := (float64(min(fresh, MostTraits*cases)+newFailure*failures) + near) / float64(cases)
	if a.told == 0 {
		a.gain = gain
	}
	a.told += cases
	a.gain = (a.gain + gain) / 2
}

// Given is how many cases the test was given.
func (a *Arm) Given() int { return a.given }

// Told is how many of them were told.
func (a *Arm) Told() int { return a.told }

// Best returns the tests that have more cases, those first whose next case may be
// expected to gain most.
func (b *Bandit) Best() []*Arm {
	left := b.left()
	slices.SortStableFunc(left, b.order())
	return left
}

// Next is the first of Best, nil where no test has more cases.
func (b *Bandit) Next() *Arm {
	left := b.left()
	if len(left) == 0 {
		return nil
	}
	return slices.MinFunc(left, b.order())
}

func (b *Bandit) left() []*Arm {
	return slices.DeleteFunc(slices.Clone(b.arms), func(a *Arm) bool { return a.Over })
}

// order has those first that are worth most.
func (b *Bandit) order() func(a, c *Arm) int {
	floor := b.given / (floorShare * max(len(b.arms), 1))
	return func(a, c *Arm) int {
		return cmp.Or(-cmp.Compare(a.worth(floor), c.worth(floor)), cmp.Compare(a.given, c.given))
	}
}

// worth is the gain that another case may be expected to have: a test that has less
// than the floor goes first.
func (a *Arm) worth(floor int) float64 {
	if a.given < floor {
		return float64(MostTraits + newFailure + floor - a.given)
	}
	return (1 + a.gain) / float64(max(a.given, 1))
}
