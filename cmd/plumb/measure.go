package main

import "slices"

// inTurns has each of n sides run once a round, so that a busy machine slows
// all alike, and lets another side begin each time.
func inTurns(rounds, n int, run func(round, side int) error) error {
	for round := range rounds {
		for i := range n {
			if err := run(round, (i+round)%n); err != nil {
				return err
			}
		}
	}
	return nil
}

// interval returns the pair of measurements nearest to the median between which
// the true median lies with at least 95%, whatever their distribution; of fewer
// than six, the least and the largest.
func interval(xs []float64) (low, high float64) {
	xs = slices.Sorted(slices.Values(xs))
	k := outside(len(xs), 0.025)
	return xs[k], xs[len(xs)-1-k]
}

// outside is the largest k for which at most k of n fair coins show heads with
// a probability of at most p, and 0 where there is none.
func outside(n int, p float64) int {
	term, sum := 1.0, 0.0
	for range n {
		term /= 2
	}
	for k := range n {
		if sum += term; sum > p {
			return max(0, k-1)
		}
		term *= float64(n-k) / float64(k+1)
	}
	return 0
}
