package ops_test

import (
	"math"
	"testing"

	"plumb/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestEmbeddingRenorm holds values, the weight afterwards and its gradient to
// those of PyTorch 1.13.1: a row is renormalised once, and the gradient is that
// of plain rows.
func TestEmbeddingRenorm(t *testing.T) {
	const big = 1e9
	for _, c := range []struct {
		p, most float64
		weight  [4][2]float64 // afterwards
	}{
		{2, 1, [4][2]float64{{0.6, 0.8}, {0.3, 0.4}, {0.6, 0.8}, {1, 0}}},
		{1, 1, [4][2]float64{{3. / 7, 4. / 7}, {0.3, 0.4}, {3. / 7, 4. / 7}, {1, 0}}},
		{0, 1, [4][2]float64{{1.5, 2}, {0.15, 0.2}, {3, 4}, {1, 0}}},
		{-2, 1, [4][2]float64{{1.25, 5. / 3}, {0.3, 0.4}, {1.25, 5. / 3}, {1, 0}}},
		{math.Inf(1), 1, [4][2]float64{{0.75, 1}, {0.3, 0.4}, {0.75, 1}, {1, 0}}},
		{math.Inf(-1), 1, [4][2]float64{{1, 4. / 3}, {0.3, 0.4}, {1, 4. / 3}, {1, 0}}},
		{math.NaN(), 1, [4][2]float64{{3, 4}, {0.3, 0.4}, {6, 8}, {1, 0}}},
		{2, -1, [4][2]float64{{-0.6, -0.8}, {-0.6, -0.8}, {-0.6, -0.8}, {1, 0}}},
		{2, big, [4][2]float64{{3, 4}, {0.3, 0.4}, {6, 8}, {1, 0}}},
	} {
		w := tensor.Of(tensor.F64, []int{4, 2}, []float64{3, 4, 0.3, 0.4, 6, 8, 1, 0})
		rows := tensor.Of(tensor.I64, []int{4}, []int64{0, 0, 1, 2})
		grad := gradientOf(t, "embedding.renorm", []any{rows, w, op.Kw("max_norm", c.most), op.Kw("norm_type", c.p)}, 1)
		for i, want := range []float64{2, 2, 1, 1, 1, 1, 0, 0} {
			if got := grad.Float(i); got != want {
				t.Errorf("p = %g, max_norm = %g: gradient %d is %g, want %g", c.p, c.most, i, got, want)
			}
			if got, want := w.Float(i), c.weight[i/2][i%2]; math.Abs(got-want) > 3e-7 {
				t.Errorf("p = %g, max_norm = %g: weight %d is %g, want %g", c.p, c.most, i, got, want)
			}
		}
	}
}

// TestEmbeddingRenormRefuses: no row is changed by a call that is refused.
func TestEmbeddingRenormRefuses(t *testing.T) {
	w := tensor.Of(tensor.F64, []int{2, 2}, []float64{3, 4, 6, 8})
	rows := tensor.Of(tensor.I64, []int{2}, []int64{0, 2})
	s := eager.New(ops.Table())
	if err := op.Catch(func() {
		s.Builder().Op("embedding.renorm", s.Leaf(rows, false), s.Leaf(w, false), op.Kw("max_norm", 1.0))
	}); err == nil {
		t.Error("row 2 of 2")
	}
	if w.Float(0) != 3 {
		t.Error("row 0 has changed")
	}
}
