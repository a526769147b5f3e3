package ops_test

import (
	"math"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/tensor"
)

// attend computes softmax(scale·q·kᵀ + mask)·v for matrices, element by element in float64.
func attend(q, k, v *tensor.Tensor, scale float64, mask func(i, j int) float64) []float64 {
	l, s, e, n := q.Shape()[0], k.Shape()[0], q.Shape()[1], v.Shape()[1]
	out := make([]float64, l*n)
	for i := range l {
		weights, total := make([]float64, s), 0.0
		for j := range s {
			score := mask(i, j)
			for f := range e {
				score += scale * q.Float(i*e+f) * k.Float(j*e+f)
			}
			weights[j] = math.Exp(score)
			total += weights[j]
		}
		for j, w := range weights {
			for f := range n {
				out[i*n+f] += w / total * v.Float(j*n+f)
			}
		}
	}
	return out
}

// TestAttention compares the function, which PyTorch 1.13 lacks, with its formula.
func TestAttention(t *testing.T) {
	s := &op.Sampler{Source: choice.New(3), DType: tensor.F64}
	q, k, v := s.Tensor(-2, 2, 4, 3), s.Tensor(-2, 2, 5, 3), s.Tensor(-2, 2, 5, 2)
	added := s.Tensor(-1, 1, 4, 5)
	kept := tensor.New(tensor.Bool, 4, 5)
	for i := range kept.Len() {
		kept.SetInt(i, int64((i+1)%3))
	}
	none := func(i, j int) float64 { return 0 }
	hide := func(hidden bool) float64 {
		if hidden {
			return math.Inf(-1)
		}
		return 0
	}
	for name, c := range map[string]struct {
		args  []any
		scale float64
		mask  func(i, j int) float64
	}{
		"plain":  {[]any{q, k, v}, 1 / math.Sqrt(3), none},
		"scale":  {[]any{q, k, v, op.Kw("scale", -0.5)}, -0.5, none},
		"added":  {[]any{q, k, v, added}, 1 / math.Sqrt(3), func(i, j int) float64 { return added.Float(i*5 + j) }},
		"bool":   {[]any{q, k, v, kept}, 1 / math.Sqrt(3), func(i, j int) float64 { return hide(kept.Int(i*5+j) == 0) }},
		"causal": {[]any{q, k, v, op.Kw("is_causal", true)}, 1 / math.Sqrt(3), func(i, j int) float64 { return hide(j > i) }},
	} {
		got := call(t, "scaled_dot_product_attention", c.args)
		for i, want := range attend(q, k, v, c.scale, c.mask) {
			if math.Abs(got.Float(i)-want) > 1e-14 {
				t.Errorf("%s: element %d is %v, want %v", name, i, got.Float(i), want)
			}
		}
	}
}

// TestComplexDot covers what the complex BLAS of Debian's PyTorch gets wrong.
func TestComplexDot(t *testing.T) {
	x, y := tensor.New(tensor.C64, 2), tensor.New(tensor.C64, 2)
	x.Set(0, 1+2i)
	x.Set(1, 3-1i)
	y.Set(0, 2-1i)
	y.Set(1, 1+1i)
	for id, want := range map[string]complex128{"dot": 8 + 5i, "vdot": 2 - 1i} {
		if got := call(t, id, []any{x, y}).At(0); got != want {
			t.Errorf("%s is %v, want %v", id, got, want)
		}
	}
}
