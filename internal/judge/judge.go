// Package judge says whether a candidate did what the reference did. New is the
// only way to make a judge: what a run of suites, a Go test, the conformance kit,
// the selftest and the shrinker think of one case is the same.
//
// Below it, compare holds two tensors to one limit, rounding bounds what rounding
// may do to a program, verdict goes through a case in order, and reffaults are
// the proved faults of references.
package judge

import (
	"slices"

	"plumb/backend"
	"plumb/internal/judge/reffaults"
	"plumb/internal/judge/rounding"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
)

// Config says what a judge goes by.
type Config struct {
	// Table has the numerics of the operators, and Modules what modules are made
	// of. Without a table every comparison has the default of its dtype.
	Table   *op.Table
	Modules *nn.Table
	// Reference is the reference's name and version, such as "torch 1.13.1", by
	// which its known faults are found.
	Reference string
	// CanAskReference says that the reference runs programs that it has not run
	// yet; a recorded one does not.
	CanAskReference bool
	// Oracle says when the reference is asked for the truth, where it can be. With
	// OracleOff, correctly rounded results of functions decide nothing either.
	Oracle OracleMode
	// RTol and ATol, where set, replace the numerics of the operators and the
	// program's own tolerance; Default replaces them by PyTorch's defaults.
	RTol, ATol *float64
	Default    bool
	// NoExceptions counts an exception of one side only as a rejection, and
	// SameException asks that what both sides raise has the same class.
	NoExceptions, SameException bool
	// ReferencesException asks that it is the reference's own class.
	ReferencesException bool
	// Memory is what the bounds and truths of one case may take, in bytes; 0 bounds
	// nothing. A verdict that would need more is Skipped.
	Memory int64
	// Explain asks of each comparison why its limit is what it is.
	Explain bool
	// Settled, where set, is all that Breach and EndAlike go by.
	Settled *Settled
}

// Judge judges candidates by one reference. It may be used by several goroutines.
type Judge struct {
	policy   verdict.Policy
	oracle   OracleMode
	rounding *rounding.Analysis // nil without a table
	settled  *Settled
	memory   int64
}

// New returns a judge.
func New(c Config) *Judge {
	j := &Judge{settled: c.Settled, memory: c.Memory, policy: verdict.Policy{
		RTol: c.RTol, ATol: c.ATol, Default: c.Default, NoExceptions: c.NoExceptions, SameException: c.SameException, ReferencesException: c.ReferencesException,
		Reference: c.Reference, Faults: reffaults.Faults, Explain: c.Explain,
	}}
	if c.Oracle.asks() && c.CanAskReference {
		j.policy.CanAskReference, j.oracle = true, c.Oracle
	}
	if c.Table != nil {
		j.policy.Table, j.policy.NoScalars = c.Table, !c.Oracle.asks()
		j.policy.Tols = tolerances(c.Table)
		j.rounding = rounding.New(c.Table, c.Modules)
	}
	return j
}

// tolerances returns the numerics of the operators of a table that answer to a
// public name.
func tolerances(table *op.Table) func(target string) []op.Tol {
	return func(target string) []op.Tol {
		defs := table.Lookup(target)
		tols := make([]op.Tol, len(defs))
		for i, d := range defs {
			tols[i] = d.Tol
		}
		return tols
	}
}

// Tols returns the numerics of the operators that answer to a public name; none
// where it is unknown.
func (j *Judge) Tols(target string) []op.Tol { return j.policy.Tols(target) }

// candidateFaults are proved faults of what may be a candidate. PyTorch's own are
// left out where what the reference has tells them: a candidate is told by itself.
var candidateFaults = func() (all []verdict.CandidateFault) {
	for _, f := range reffaults.Faults {
		if f.Shows == nil {
			all = append(all, verdict.CandidateFault{KnownFault: f})
		}
	}
	return slices.Concat(all, reffaults.Graphs, reffaults.Subjects)
}()

// Excused returns a verdict, or Known in its place where a proved fault of the
// candidate explains it, as of PyTorch's own graph modes, or of another version.
func (j *Judge) Excused(v *verdict.Verdict, p *program.Program, ref, cand *backend.Outcome, candidate backend.Info) *verdict.Verdict {
	return verdict.Excused(v, p, ref, cand, candidate, candidateFaults)
}

// Power reports which fakes of its results a case would have let pass: see
// verdict.Power.
func (j *Judge) Power(job *backend.Job, ref *backend.Outcome) []verdict.Weakness {
	c := j.Case(job, ref, ref)
	return verdict.Power(job.Program, ref, func(_ *program.Program, _, fake *backend.Outcome) *verdict.Verdict {
		c.Candidate = fake
		return c.Verdict(nil)
	})
}
