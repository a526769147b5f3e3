// Package stopwatch has what measurements of time share: sides that take turns, the
// median with an interval, and the processor time of this process.
package stopwatch

import (
	"math"
	"slices"
)

// InTurns has each of n sides run once a round, so that a busy machine slows
// all alike, and lets another side begin each time.
func InTurns(rounds, n int, run func(round, side int) error) error {
	for round := range rounds {
		for i := range n {
			if err := run(round, (i+round)%n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Median returns the middle measurement, the mean of the middle two, or NaN.
func Median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	if len(xs) == 0 {
		return math.NaN()
	}
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}

// Interval returns the pair of measurements nearest to the median between which
// the true median lies with at least 95%, whatever their distribution; of fewer
// than six, the least and the largest.
func Interval(xs []float64) (low, high float64) {
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
