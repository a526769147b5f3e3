package campaign

import (
	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
)

// Estimator knows the operators' arithmetic: how far rounding may move the
// results of a job, and what of it is drawn.
type Estimator interface {
	Bounds(job *backend.Job, gradients bool) *compare.Bounds
	Outline(job *backend.Job, gradients bool) *compare.Bounds
	Draws(job *backend.Job) [][]backend.Draw
}

// Judge returns a judgement by the policy, with what the estimator knows of
// each job.
func Judge(policy verdict.Policy, e Estimator) func(*backend.Job, *backend.Outcome, *backend.Outcome, *verdict.Oracle) *verdict.Verdict {
	return func(job *backend.Job, ref, cand *backend.Outcome, o *verdict.Oracle) *verdict.Verdict {
		policy := policy
		policy.Oracle = o
		policy.Bounds = func(gradients bool) *compare.Bounds { return e.Bounds(job, gradients) }
		policy.Outline = func(gradients bool) *compare.Bounds { return e.Outline(job, gradients) }
		policy.Draws = func() [][]backend.Draw { return e.Draws(job) }
		return verdict.Judge(job.Program, ref, cand, policy)
	}
}

// Tolerances returns a policy's Tols: the numerics of the operators of a table
// that answer to a public name.
func Tolerances(table *op.Table) func(target string) []op.Tol {
	return func(target string) []op.Tol {
		defs := table.Lookup(target)
		tols := make([]op.Tol, len(defs))
		for i, d := range defs {
			tols[i] = d.Tol
		}
		return tols
	}
}
