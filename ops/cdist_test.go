package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// composedDistances are the norms of the differences of all pairs, written out.
func composedDistances(b op.Builder, x, y op.Value, p float64) op.Value {
	v := b.Sub(b.Op("unsqueeze", x, -2), b.Op("unsqueeze", y, -3))
	if p == 0 {
		return b.Op("sum", b.Op("clamp", b.Op("ceil", b.Op("abs", v)), nil, 1.0), -1)
	}
	return b.Op("norm.reduce", v, p, []int{-1}, false, false)
}

// pairOf draws rows of both sides, a few of them equal.
func pairOf(r *rand.Rand, d tensor.DType, xs, ys []int, special []float64) (x, y *tensor.Tensor) {
	draw := func(shape []int) *tensor.Tensor {
		t := tensor.New(d, shape...)
		for i := range t.Len() {
			v := float64(r.IntN(9)-4) / 2
			if len(special) > 0 && r.IntN(20) == 0 {
				v = special[r.IntN(len(special))]
			}
			t.Set(i, complex(v, 0))
		}
		return t
	}
	x, y = draw(xs), draw(ys)
	if n := min(x.Len(), y.Len(), xs[len(xs)-1]); n > 0 {
		for i := range n {
			y.Set(i, x.At(i))
		}
	}
	return x, y
}

// TestCdist compares distances and their gradients with those written out, whose
// steps round in float32.
func TestCdist(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shapes := [][2][]int{
		{{3, 4}, {5, 4}}, {{2, 3, 21}, {6, 21}}, {{4, 300}, {2, 7, 300}}, {{2, 1, 3, 5}, {1, 3, 6, 5}},
		{{0, 4}, {5, 4}}, {{3, 4}, {0, 4}}, {{3, 0}, {5, 0}}, {{2, 0, 4}, {2, 5, 4}}, {{0, 3, 4}, {0, 5, 4}}, {{2, 3, 0}, {2, 5, 0}},
	}
	special := [][]float64{nil, {nan}, {inf, -inf, nan}}
	for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16, tensor.F16} {
		for _, p := range []float64{0, 0.5, 1, 1.5, 2, 3, inf} {
			for i, s := range shapes {
				for j, values := range special {
					x, y := pairOf(r, d, s[0], s[1], values)
					if i%2 == 1 {
						x = x.Transpose(x.Dim()-2, x.Dim()-1).Contiguous().Transpose(x.Dim()-2, x.Dim()-1)
					}
					name := fmt.Sprintf("%s p=%v %v %v", d, p, s, values)
					cdistAgrees(t, name, x, y, p, j > 0)
				}
			}
		}
	}
}

func cdistAgrees(t *testing.T, name string, x, y *tensor.Tensor, p float64, special bool) {
	t.Helper()
	kernels := func(b op.Builder, x, y op.Value) op.Value { return b.Op("cdist", x, y, p) }
	written := func(b op.Builder, x, y op.Value) op.Value {
		d := x.DType()
		if d.Size() == 2 {
			x, y = b.Cast(x, tensor.F32), b.Cast(y, tensor.F32)
		}
		return b.Cast(composedDistances(b, x, y, p), d)
	}
	got, want := distancesAndGrads(t, x, y, kernels), distancesAndGrads(t, x, y, written)
	for i, part := range []string{"distances", "gradient of x1", "gradient of x2"} {
		if k := apart(got[i], want[i]); k >= 0 {
			t.Errorf("%s: element %d of the %s is %v, want %v", name, k, part, got[i].At(k), want[i].At(k))
		}
	}
}

// distancesAndGrads returns the distances and the gradients of a weighted sum of them.
func distancesAndGrads(t *testing.T, x, y *tensor.Tensor, f func(b op.Builder, x, y op.Value) op.Value) []*tensor.Tensor {
	t.Helper()
	s := eager.New(ops.Table())
	xs, ys := s.Leaf(x, true), s.Leaf(y, true)
	var out *eager.Var
	if err := op.Catch(func() { out = f(s.Builder(), xs, ys).(*eager.Var) }); err != nil {
		t.Fatal(err)
	}
	weights := tensor.New(out.DType(), out.Shape()...)
	for i := range weights.Len() {
		weights.Set(i, complex(float64(i%5)-2, 0))
	}
	cot, err := s.Backward([]op.Value{out}, []op.Value{s.Leaf(weights, false)}, false)
	if err != nil {
		t.Fatal(err)
	}
	return []*tensor.Tensor{out.Tensor, cot[xs].(*eager.Var).Tensor, cot[ys].(*eager.Var).Tensor}
}

// apart returns the first element at which two tensors differ by more than
// their dtype's rounding; −1 for none.
func apart(got, want *tensor.Tensor) int {
	within := map[tensor.DType]float64{tensor.F64: 1e-12, tensor.F32: 2e-4, tensor.F16: 2e-3, tensor.BF16: 2e-2}[want.DType()]
	for i := range want.Len() {
		a, b := got.Float(i), want.Float(i)
		if a != b && !(math.IsNaN(a) && math.IsNaN(b)) && !(math.Abs(a-b) <= within*max(1, math.Abs(b))) {
			return i
		}
	}
	return -1
}
