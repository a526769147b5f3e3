package verdict

import (
	"fmt"
	"slices"

	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/tensor"
)

// Why says where the limit of one comparison comes from: see Policy.Explain.
type Why struct {
	Limit  string `json:"limit"`
	Rule   string `json:"rule"` // of compare.LimitFor, in words
	Reason string `json:"reason"`
	// Terms says how the bound came about at the element that came nearest, and
	// Dominates which of its terms is the largest.
	Terms     string `json:"terms,omitempty"`
	Dominates string `json:"dominates,omitempty"`
	Index     []int  `json:"index,omitempty"` // of that element
	Want      string `json:"want,omitempty"`
	Got       string `json:"got,omitempty"`
	Settled   bool   `json:"settled,omitempty"` // by the truth, beyond the limit
}

// why explains the limit of a comparison.
func why(c *comparison) *Why {
	l := &c.limit
	w := &Why{Limit: l.String(), Rule: ruleOf(l, c.want), Reason: l.Reason, Settled: c.settled, Index: c.diff.Worst}
	if c.want == nil || c.got == nil || len(w.Index) != len(c.want.Shape()) || !slices.Equal(c.want.Shape(), c.got.Shape()) || c.want.Len() == 0 {
		w.Index = nil
		return w
	}
	at := 0
	for d, i := range w.Index {
		at = at*c.want.Shape()[d] + i
	}
	w.Want, w.Got = compare.Element(c.want, at), compare.Element(c.got, at)
	w.Terms, w.Dominates = l.Explain(w.Index), l.Dominates(at)
	return w
}

// ruleOf names the rule of compare.LimitFor by which a limit came about.
func ruleOf(l *compare.Limit, want *tensor.Tensor) string {
	switch {
	case want != nil && !want.DType().IsDifferentiable():
		return fmt.Sprintf("1: %s is exact", want.DType())
	case l.Class == compare.Explicit:
		return "2: a tolerance that was given"
	case l.Error != nil:
		return "5: a bound of the rounding errors of both sides, 2·u·E"
	case l.RTol == 0 && l.ATol == 0 && l.ULP == 0 && l.Reason == compare.NothingRounds:
		return "5: a bound of the rounding errors, and nothing rounds here"
	case l.Class == op.Exact && l.RTol == 0 && l.ATol == 0:
		return "3: the operator is exact, and its inputs are the same bits on both sides"
	case l.Class == op.Pointwise && (l.ULP > 0 || want != nil && want.DType().IsComplex()):
		return "4: the operator's own limit in units in the last place; its inputs are the same bits on both sides"
	}
	return "6: PyTorch's default for the dtype, as nothing more is known of the result"
}
