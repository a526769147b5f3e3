package stopwatch

import (
	"slices"
	"testing"
)

// TestIntervalsOfMedians holds the pair of order statistics to the binomial
// distribution: the interval misses the median with at most 5%.
func TestIntervalsOfMedians(t *testing.T) {
	for n, want := range map[int]int{1: 0, 3: 0, 6: 0, 8: 0, 9: 1, 11: 1, 12: 2, 20: 5, 101: 40} {
		if got := outside(n, 0.025); got != want {
			t.Errorf("of %d, %d are outside on each side, want %d", n, got, want)
		}
	}
	if low, high := Interval([]float64{9, 1, 2, 3, 4, 5, 6, 7, 8}); low != 2 || high != 8 {
		t.Errorf("%v – %v", low, high)
	}
}

// TestSidesTakeTurns: in each round every side runs once, and another begins.
func TestSidesTakeTurns(t *testing.T) {
	var order []int
	err := InTurns(3, 2, func(_, i int) error { order = append(order, i); return nil })
	if want := []int{0, 1, 1, 0, 0, 1}; err != nil || !slices.Equal(order, want) {
		t.Errorf("%v, %v, want %v", order, err, want)
	}
}
