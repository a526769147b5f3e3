package judge

import (
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/rounding"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Case is one job with what the reference and a candidate did, judged once or
// more. It is for one goroutine.
type Case struct {
	Job                  *backend.Job
	Reference, Candidate *backend.Outcome
	// Policy is what this case is judged by; it may be changed.
	Policy verdict.Policy
	// Near says, of a case of Choosing, that a decision follows from roundings.
	Near bool

	rounding *caseRounding
}

// Case returns the case of a job.
func (j *Judge) Case(job *backend.Job, ref, cand *backend.Outcome) *Case {
	c := &Case{Job: job, Reference: ref, Candidate: cand, Policy: j.policy}
	if j.rounding != nil {
		c.rounding = &caseRounding{of: j.rounding, job: job, unbounded: !j.fits(need(ref))}
		c.Policy.Rounding = c.rounding
	}
	return c
}

// Choice is a call that takes elements by their order.
type Choice = rounding.Choice

// Choosing returns the case of a reference that takes elements by their order where choose
// says, as computed in float64; nil where that cannot be told. An integer by which a decision
// that is near may differ is the candidate's, and so is an infinity.
func (j *Judge) Choosing(job *backend.Job, ref, cand *backend.Outcome, choose func(*Choice)) *Case {
	if j.rounding == nil || !j.fits(need(ref)) {
		return nil
	}
	b, near := j.rounding.Choosing(job, true, choose)
	if b == nil {
		return nil
	}
	own := ref.Replaced(func(at backend.Place, path []int, t *tensor.Tensor) *tensor.Tensor {
		exact := b.Slots[at]
		if at.Part == backend.PartValue {
			exact = b.Values[at.Call].At(path)
		}
		if exact == nil || !slices.Equal(exact.Value.Shape(), t.Shape()) {
			return t
		}
		value := exact.Value.Convert(t.DType())
		if at.Part == backend.PartValue && exact.Error != nil && (near || !t.DType().IsDifferentiable()) {
			exact.Adopt(value, verdict.At(cand, verdict.Where{Part: at.Part, Call: at.Call, Path: path}), rounding.Near)
		}
		return value
	})
	c := j.Case(job, own, cand)
	c.Near = near
	c.rounding.bounds = remembered{b, true}
	return c
}

// Verdict judges with the oracle where one was asked; nil for none.
func (c *Case) Verdict(o *verdict.Oracle) *verdict.Verdict {
	policy := c.Policy
	policy.Oracle = o
	return verdict.Judge(c.Job.Program, c.Reference, c.Candidate, policy)
}

// Unbounded has the case judged without bounds of its rounding errors, which
// take ten float64 numbers an element.
func (c *Case) Unbounded() { c.rounding.unbounded = true }

// caseRounding remembers what is known of the rounding errors of one job.
type caseRounding struct {
	of              *rounding.Analysis
	job             *backend.Job
	unbounded       bool
	bounds, outline remembered
	draws           [][]backend.Draw
	drawsKnown      bool
}

// Bounds implements verdict.Rounding.
func (r *caseRounding) Bounds(gradients bool) *compare.Bounds {
	return r.recall(&r.bounds, gradients, r.of.Bounds)
}

// Outline implements verdict.Rounding.
func (r *caseRounding) Outline(gradients bool) *compare.Bounds {
	return r.recall(&r.outline, gradients, r.of.Outline)
}

// Call implements verdict.Rounding.
func (r *caseRounding) Call(p *program.Program) *compare.Bounds {
	if r.unbounded {
		return nil
	}
	return r.of.Bounds(backend.NewJob(p), false)
}

// Draws implements verdict.Rounding.
func (r *caseRounding) Draws() [][]backend.Draw {
	if !r.drawsKnown {
		r.draws, r.drawsKnown = r.of.Draws(r.job), true
	}
	return r.draws
}

// remembered are bounds as far as they were asked for: of results, or of gradients too.
type remembered struct {
	bounds    *compare.Bounds
	gradients bool
}

func (r *caseRounding) recall(k *remembered, gradients bool, ask func(*backend.Job, bool) *compare.Bounds) *compare.Bounds {
	if r.unbounded {
		return nil
	}
	if k.bounds == nil || gradients && !k.gradients {
		k.bounds = nil // two of them are not to be held at once
		k.bounds, k.gradients = ask(r.job, gradients), gradients
	}
	return k.bounds
}
