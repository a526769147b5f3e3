package eager_test

import (
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func draw(t *testing.T, s *eager.Session) *eager.Var {
	t.Helper()
	out, err := s.Apply("rand", []any{[]int{50}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out[0].(*eager.Var)
}

func TestDrawsFollowFromTheSeed(t *testing.T) {
	a, b, other := eager.New(ops.Table()), eager.New(ops.Table()), eager.New(ops.Table())
	other.Seed(1)
	first, again := draw(t, a), draw(t, b)
	if !first.SameBits(again.Tensor) {
		t.Error("one seed gives two results")
	}
	if draw(t, a).SameBits(first.Tensor) || draw(t, other).SameBits(first.Tensor) {
		t.Error("another call or seed gives the same result")
	}
}

// TestGradientMeetsTheMask: after other calls, the gradient of a dropout still
// has the mask of its forward call, at zeros too.
func TestGradientMeetsTheMask(t *testing.T) {
	s := eager.New(ops.Table())
	s.Seed(9)
	x := s.Leaf(tensor.New(tensor.F64, 40), true)
	ones := tensor.New(tensor.F64, 40)
	for i := range 40 {
		ones.Set(i, 1)
	}
	x.CopyFrom(ones)
	y, err := s.Apply("dropout", []any{x, 0.5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	draw(t, s)
	kept := y[0].(*eager.Var).Clone()
	x.CopyFrom(tensor.New(tensor.F64, 40))
	grads, err := s.Backward(y, []op.Value{ones}, false)
	if err != nil {
		t.Fatal(err)
	}
	if g := grads[x].(*eager.Var); !g.SameBits(kept) {
		t.Errorf("gradient %v, mask %v", g, kept)
	}
}
