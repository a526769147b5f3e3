package op_test

import (
	"slices"
	"strings"
	"testing"

	"plumb/op"
	"plumb/tensor"
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

func TestGatherUndoesPiece(t *testing.T) {
	x := tensor.New(tensor.F64, 5, 3)
	for i := range x.Len() {
		x.Set(i, complex(float64(i), 0))
	}
	for _, sbp := range []op.SBP{op.S(0), op.S(1), op.B} {
		parts := []*tensor.Tensor{sbp.Piece(x, 3, 0), sbp.Piece(x, 3, 1), sbp.Piece(x, 3, 2)}
		whole, err := sbp.Gather(x.Shape(), parts)
		if err != nil || !whole.SameBits(x) {
			t.Errorf("%s: gathered %v, %v", sbp, whole, err)
		}
	}
	sum, err := op.P.Gather(x.Shape(), []*tensor.Tensor{x, x})
	if err != nil || sum.Float(4) != 8 {
		t.Errorf("P: element 4 of x + x is %v, %v", sum.Float(4), err)
	}
}

func TestGatherRejectsPartsThatDoNotFit(t *testing.T) {
	a, b := tensor.New(tensor.F64, 2), tensor.New(tensor.F64, 2)
	b.Set(0, 1)
	for _, c := range []struct {
		sbp   op.SBP
		shape []int
		want  string
	}{
		{op.B, []int{2}, "ranks 0 and 1 differ under B"},
		{op.S(0), []int{5}, "rank 0 of 2 holds shape [2] of [5] under S(0), not [3]"},
		{op.P, []int{4}, "rank 0 of 2 holds shape [2] of [4] under P, not [4]"},
	} {
		if _, err := c.sbp.Gather(c.shape, []*tensor.Tensor{a, b}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.sbp, err, c.want)
		}
	}
}

func TestShardingString(t *testing.T) {
	s := op.Sharding{Args: map[string]op.SBP{"weight": op.S(0), "input": op.S(1), "bias": op.B}, Results: []op.SBP{op.P, op.B}, Even: true}
	if got, want := s.String(), "input: S(1), weight: S(0) -> P, B (evenly)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
