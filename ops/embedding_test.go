package ops_test

import (
	"math"
	"slices"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestEmbeddingRenorm holds values, the weight afterwards and its gradient to
// those of PyTorch 1.13.1: a row is multiplied by max_norm/(norm + 1e-7), once, and the gradient is that
// of plain rows.
func TestEmbeddingRenorm(t *testing.T) {
	before := []float64{3, 4, 0.3, 0.4, 6, 8, 1, 0}
	for _, c := range []struct {
		p, most float64
		norms   [3]float64 // of the rows that are numbered
	}{
		{2, 1, [3]float64{5, 0.5, 10}},
		{1, 1, [3]float64{7, 0.7, 14}},
		{0, 1, [3]float64{2, 2, 2}},
		{-2, 1, [3]float64{2.4, 0.24, 4.8}},
		{math.Inf(1), 1, [3]float64{4, 0.4, 8}},
		{math.Inf(-1), 1, [3]float64{3, 0.3, 6}},
		{math.NaN(), 1, [3]float64{}},
		{2, -1, [3]float64{5, 0.5, 10}},
		{2, 1e9, [3]float64{5, 0.5, 10}},
	} {
		w := tensor.Of(tensor.F64, []int{4, 2}, slices.Clone(before))
		rows := tensor.Of(tensor.I64, []int{4}, []int64{0, 0, 1, 2})
		grad := gradientOf(t, "embedding.renorm", []any{rows, w, op.Kw("max_norm", c.most), op.Kw("norm_type", c.p)}, 1)
		for i, want := range []float64{2, 2, 1, 1, 1, 1, 0, 0} {
			if got := grad.Float(i); got != want {
				t.Errorf("p = %g, max_norm = %g: gradient %d is %g, want %g", c.p, c.most, i, got, want)
			}
			scale := 1.0
			if i < 6 && c.norms[i/2] > c.most {
				scale = c.most / (c.norms[i/2] + 1e-7)
			}
			if got, want := w.Float(i), before[i]*scale; math.Abs(got-want) > 1e-14 {
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
	for p, refused := range map[float64]bool{2: false, 0: false, -1: true, math.Inf(1): true, math.Inf(-1): true} {
		err := failure("embedding.renorm", rows, tensor.New(tensor.F64, 3, 0), op.Kw("max_norm", 1.0), op.Kw("norm_type", p))
		if (err != nil) != refused {
			t.Errorf("rows without elements, of order %g: %v, want an error: %t", p, err, refused)
		}
	}
}
