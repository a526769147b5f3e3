package conform

import (
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
)

// Limits say by which limits a candidate is judged.
type Limits struct {
	// Config lets the config's own tolerances decide, with its share of elements
	// that may differ.
	Config bool
	// Beside says of a verdict where the config's own tolerances say otherwise, if
	// it gives some.
	Beside bool
	// RTol and ATol, where set, hold for every comparison, and ByDType is
	// torch.testing.assert_close's default; otherwise the operators' numerics do.
	RTol, ATol *float64
	ByDType    bool
}

// newJudge returns the judge of outcomes of a reference, such as "torch 1.13.1".
// What the reference said in float64 is part of a baseline, of some cases.
func (l Limits) newJudge(reference string) *judge.Judge {
	cfg := judging(reference)
	cfg.RTol, cfg.ATol, cfg.Default = l.RTol, l.ATol, l.ByDType
	return judge.New(cfg)
}

// byConfig judges by the tolerances of the case; a share of the elements may
// differ.
func (k *Kit) byConfig(c *config.Case, q *baseline.Question, share float64) *verdict.Verdict {
	p := q.Job.Program.Clone()
	atol, rtol := c.Tolerance()
	p.ATol, p.RTol = &atol, &rtol
	one := k.judge.Case(&backend.Job{Program: p, Inputs: q.Job.Inputs}, q.Ref, q.Cand)
	one.Policy.CanAskReference, one.Policy.Given = false, "of the config"
	v := one.Verdict(nil)
	if v.Word == verdict.Misaligned && within(v, share) {
		v.Word, v.Reason = verdict.Aligned, fmt.Sprintf("the config lets %g of the elements differ; %s", share, v.Reason)
	}
	return v
}

// within says whether all that a verdict found wrong are elements over their
// limit, of a result no more than a share of them: what a composition computes
// on its way to the results is no matter of the config's.
func within(v *verdict.Verdict, share float64) bool {
	own := *v
	own.Differences = slices.DeleteFunc(slices.Clone(v.Differences), func(d verdict.Difference) bool {
		return d.Where.Part == backend.PartValue && !strings.HasPrefix(d.Where.Name, diopi.Result)
	})
	return len(own.Differences) == 0 && len(v.Differences) > 0 || few(&own, share)
}

// decided is the verdict on a question by the limits of the run.
func (k *Kit) decided(c *config.Case, q *baseline.Question) *verdict.Verdict {
	done := q.Ref.Status == backend.OK && q.Cand.Status == backend.OK
	if k.Limits.Config && done {
		return k.byConfig(c, q, c.MismatchRatio())
	}
	v := k.settled(q)
	if own := k.ofHalves(c, q, v); own != nil {
		return own
	}
	same := v.Word == verdict.Aligned && v.Worst == 0
	if !k.Limits.Beside || !done || same || len(q.Ref.Unread) > 0 || !c.GivesTolerances() {
		return v
	}
	if own := k.byConfig(c, q, c.MismatchRatio()); own.Word.IsFinding() != v.Word.IsFinding() {
		v.Otherwise = otherwise(c, own)
	}
	return v
}

// ofHalves is known, for a sum or a gradient of half types of which no kernel or
// no truth is recorded, where each element is within the config's own tolerances;
// nil for any other. What stands in for a kernel was rounded where a call ends, and
// a large case is one that the reference was not asked about in float64: a kernel of
// the half type may round between its steps, and keep rounded results for the
// gradients, and how far that takes it nobody can be asked. A function that sums
// nothing has no such steps; the formula of its gradient has.
func (k *Kit) ofHalves(c *config.Case, q *baseline.Question, v *verdict.Verdict) *verdict.Verdict {
	if v.Word != verdict.Misaligned || !v.Arguable() || !takesHalf(q.Job) {
		return nil
	}
	if !q.StandIn && (q.Truth != nil || !q.Large) {
		return nil
	}
	if !k.sums(q.Job.Program) && !(q.StandIn && onlyGradients(v)) {
		return nil
	}
	if own := k.byConfig(c, q, 0); own.Word.IsFinding() {
		return nil
	}
	own := *v
	own.Word = verdict.Known
	own.Reason = "within the config's own tolerances, as what rounds to the half type on its way; rounded once: " + v.Reason
	return &own
}

// sums reports whether a function of the program sums.
func (k *Kit) sums(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(k.judge.Tols(c.Target), func(t op.Tol) bool { return t.Class == op.Accumulating })
	})
}

// onlyGradients reports whether nothing but gradients differs.
func onlyGradients(v *verdict.Verdict) bool {
	return !slices.ContainsFunc(v.Differences, func(d verdict.Difference) bool { return !d.Where.Part.IsGradient() })
}

// otherwise is what the config's own tolerances say.
func otherwise(c *config.Case, own *verdict.Verdict) string {
	atol, rtol := c.Tolerance()
	word := "pass it"
	if own.Word.IsFinding() {
		word = "fail it: " + own.Reason
	}
	return fmt.Sprintf("the config's own tolerances (atol %g, rtol %g, %g of the elements) %s", atol, rtol, c.MismatchRatio(), word)
}
