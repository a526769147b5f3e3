package op_test

import (
	"slices"
	"testing"

	"plumb/op"
)

func TestBalancedGivesTheFirstRanksOneMore(t *testing.T) {
	var sizes, starts []int
	for rank := range 4 {
		start, n := op.Balanced(10, 4, rank)
		starts, sizes = append(starts, start), append(sizes, n)
	}
	if !slices.Equal(sizes, []int{3, 3, 2, 2}) || !slices.Equal(starts, []int{0, 3, 6, 8}) {
		t.Errorf("10 over 4 ranks start at %v with sizes %v", starts, sizes)
	}
}

func TestShardingString(t *testing.T) {
	s := op.Sharding{Args: map[string]op.SBP{"weight": op.S(0), "input": op.S(1), "bias": op.B}, Results: []op.SBP{op.P, op.B}, Even: true}
	if got, want := s.String(), "input: S(1), weight: S(0) -> P, B (evenly)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
