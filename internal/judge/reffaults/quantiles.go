package reffaults

import (
	"math"
	"math/cmplx"

	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// infiniteQuantiles are quantiles of elements among which is one infinity.
var infiniteQuantiles = each([]string{"quantile", "nanquantile"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		Rule:      compare.NonFinite,
		When: func(p *program.Program) bool {
			is := func(f func(float64) bool) bool { return anyElement(p, 0, f) }
			return is(func(v float64) bool { return math.IsInf(v, 1) }) != is(func(v float64) bool { return math.IsInf(v, -1) }) && !is(math.IsNaN)
		},
		Shows:  cmplx.IsNaN,
		Reason: "between two elements it is the nearer one and a part of their difference: ∞ − ∞ where both are the same infinity, or the nearer one alone is infinite",
		Proof:  of(target, `torch.TARGET(torch.tensor([inf, inf]), 0.5).isnan().item() and torch.TARGET(torch.tensor([1., inf]), 0.75).isnan().item()`),
	}
})
