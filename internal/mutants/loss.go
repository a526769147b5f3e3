package mutants

import (
	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// ofMean changes the result of a loss that is a mean over the batch.
func ofMean(f func(c *op.Run, v float64) float64) plant {
	return elements(func(c *op.Run, _ int, v complex128) complex128 {
		if c.Str(arg.Reduction) != "mean" || c.Out[0].Dim() > 0 {
			return v
		}
		return complex(f(c, real(v)), 0)
	})
}

var lossMutants = []Mutant{
	{Name: "mse_loss divides by the size of the batch", In: "mse_loss", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: ofMean(func(c *op.Run, v float64) float64 {
			s := c.Tensor(arg.Input).Shape()
			if len(s) == 0 || s[0] == 0 {
				return v
			}
			return v * float64(c.Tensor(arg.Input).Len()/s[0])
		})},
	{Name: "l1_loss has the mean for the sum", In: "l1_loss", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: seen(arg.Reduction, func(a op.Args) any {
			if a.Str(arg.Reduction) == "sum" {
				return "mean"
			}
			return a.Str(arg.Reduction)
		})},
	{Name: "smooth_l1_loss ignores beta", In: "smooth_l1_loss", Kind: Attribute, Op: fixed(arg.Beta, 1.0), Minimal: Minimal{1, 1}},
	{Name: "huber_loss is divided by delta", In: "huber_loss", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: elements(func(c *op.Run, _ int, v complex128) complex128 { return v / complex(c.Float(arg.Delta), 0) })},
	{Name: "binary_cross_entropy ignores weight", In: "binary_cross_entropy", Kind: Attribute, Op: fixed(arg.Weight, nil), Minimal: Minimal{1, 1}},
	{Name: "binary_cross_entropy_with_logits ignores pos_weight", In: "binary_cross_entropy_with_logits", Kind: Attribute, Op: fixed(arg.PosWeight, nil), Minimal: Minimal{1, 1}},
	{Name: "kl_div has the mean for the mean over the batch", In: "kl_div", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: seen(arg.Reduction, func(a op.Args) any {
			if a.Str(arg.Reduction) == "batchmean" {
				return "mean"
			}
			return a.Str(arg.Reduction)
		})},
	{Name: "kl_div ignores log_target", In: "kl_div", Kind: Attribute, Op: fixed(arg.LogTarget, false), Minimal: Minimal{1, 1}},
	{Name: "nll_loss ignores ignore_index", In: "nll_loss", Kind: Attribute, Op: fixed(arg.IgnoreIndex, -100), Minimal: Minimal{1, 1}},
	{Name: "nll_loss divides by the number of targets, not their weights", In: "nll_loss", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: ofMean(func(c *op.Run, v float64) float64 {
			w, t := c.Tensor(arg.Weight), c.Tensor(arg.Target)
			if w == nil || t.Len() == 0 {
				return v
			}
			total := 0.0
			for i := range t.Len() {
				if k := int(t.Int(i)); k >= 0 && k < w.Len() && k != c.Int(arg.IgnoreIndex) {
					total += w.Float(k)
				}
			}
			return v * total / float64(t.Len())
		})},
	{Name: "cross_entropy ignores label_smoothing", In: "cross_entropy", Kind: Attribute, Op: fixed(arg.LabelSmoothing, 0.0), Minimal: Minimal{1, 2}},
	{Name: "cross_entropy ignores weight", In: "cross_entropy", Kind: Attribute, Op: fixed(arg.Weight, nil), Minimal: Minimal{1, 4}},
	{Name: "cross_entropy has no gradient of class probabilities", In: "cross_entropy", Kind: Gradient, Op: dropped(arg.Target), Minimal: Minimal{1, 1}},
	{Name: "hinge_embedding_loss ignores margin", In: "hinge_embedding_loss", Kind: Attribute, Op: fixed(arg.Margin, 1.0), Minimal: Minimal{1, 1}},
	{Name: "margin_ranking_loss ranks the other way", In: "margin_ranking_loss", Kind: Attribute, Op: exchanged(arg.Input1, arg.Input2), Minimal: Minimal{1, 1}},
	{Name: "cosine_embedding_loss ignores margin", In: "cosine_embedding_loss", Kind: Attribute, Op: fixed(arg.Margin, 0.0), Minimal: Minimal{1, 1}},
	{Name: "triplet_margin_loss ignores swap", In: "triplet_margin_loss", Kind: Attribute, Op: fixed(arg.Swap, false), Minimal: Minimal{1, 1}},
	{Name: "multi_margin_loss ignores p", In: "multi_margin_loss", Kind: Attribute, Op: fixed(arg.P, one), Minimal: Minimal{1, 2}},
	{Name: "ctc_loss ignores zero_infinity", In: "ctc_loss", Kind: NonFinite, Op: fixed(arg.ZeroInfinity, false), Minimal: Minimal{1, 4}},
	{Name: "ctc_loss takes class 0 for the blank", In: "ctc_loss", Kind: Attribute, Op: fixed(arg.Blank, 0), Minimal: Minimal{1, 4}},
	{Name: "poisson_nll_loss ignores full", In: "poisson_nll_loss", Kind: Attribute, Op: fixed(arg.Full, false), Minimal: Minimal{1, 1}},
	{Name: "poisson_nll_loss ignores log_input", In: "poisson_nll_loss", Kind: Attribute, Op: fixed(arg.LogInput, true), Minimal: Minimal{1, 1}},
	{Name: "gaussian_nll_loss ignores full", In: "gaussian_nll_loss", Kind: Attribute, Op: fixed(arg.Full, false), Minimal: Minimal{1, 1}},
	{Name: "cosine_similarity ignores dim", In: "cosine_similarity", Kind: Axis, Minimal: Minimal{1, 2},
		Op: seen(arg.Dim, func(a op.Args) any {
			if v := a.Value(arg.X1); len(v.Shape()) > 0 && tensor.NumElements(v.Shape()) > 0 {
				return 0
			}
			return a.Int(arg.Dim)
		})},
}
