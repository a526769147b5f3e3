package judge

import (
	"context"
	"fmt"

	"plumb/backend"
	"plumb/internal/judge/verdict"
)

// OracleMode says when the reference is asked for the truth in float64.
type OracleMode string

// The modes. OnMismatch asks where a verdict is misaligned by distance. The
// empty mode is OracleOff.
const (
	OracleOff  OracleMode = "off"
	OnMismatch OracleMode = "on-mismatch"
	Always     OracleMode = "always"
)

// OracleModes lists the modes.
var OracleModes = []OracleMode{OracleOff, OnMismatch, Always}

func (m OracleMode) asks() bool { return m == OnMismatch || m == Always }

// Ask runs jobs on the reference.
type Ask func(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error)

// Judge judges a case, with what the reference answers where it is asked. Where
// the candidate is blamed for what may be inherited, the reference is asked for
// the case on the candidate's path: see verdict.Path. The error is ask's.
func (j *Judge) Judge(ctx context.Context, job *backend.Job, ref, cand *backend.Outcome, ask Ask) (*verdict.Verdict, error) {
	return j.Unless(ctx, func(*verdict.Verdict) bool { return false }, job, ref, cand, ask)
}

// Unless is Judge, but that the reference is asked nothing where the verdict without it is
// enough.
func (j *Judge) Unless(ctx context.Context, enough func(*verdict.Verdict) bool, job *backend.Job, ref, cand *backend.Outcome, ask Ask) (*verdict.Verdict, error) {
	v, err := j.direct(ctx, enough, job, ref, cand, ask)
	if err != nil || !j.oracle.asks() || enough(v) {
		return v, err
	}
	path := verdict.Along(job, ref, cand, v)
	if path == nil {
		return v, nil
	}
	if n := pathNeeds * need(ref); !j.fits(n) {
		return j.skipped(n), nil
	}
	outcomes, err := ask(ctx, []*backend.Job{path.Job})
	if err != nil {
		return nil, err
	}
	on, err := j.direct(ctx, enough, path.Job, outcomes[0], path.Lift(outcomes[0], cand), ask)
	if err != nil {
		return nil, err
	}
	return path.Settle(v, on), nil
}

// direct judges a case on the reference's own path.
func (j *Judge) direct(ctx context.Context, enough func(*verdict.Verdict) bool, job *backend.Job, ref, cand *backend.Outcome, ask Ask) (*verdict.Verdict, error) {
	c := j.Case(job, ref, cand)
	if j.oracle == Always {
		outcomes, err := ask(ctx, verdict.Questions(job, ref.Initial))
		if err != nil {
			return nil, err
		}
		o := verdict.OracleOf(ref, outcomes)
		o.All = true
		return c.Verdict(o), nil
	}
	v := c.Verdict(nil)
	if !v.Arguable() || enough(v) {
		return v, nil
	}
	if n := need(ref); !j.fits(n) {
		if v.Word == verdict.Misaligned {
			v = j.skipped(n)
		}
		return v, nil
	}
	if j.oracle != OnMismatch {
		return v, nil
	}
	q := verdict.Inquire(job, ref, v)
	for jobs := q.Jobs(askedBytes); jobs != nil; jobs = q.Jobs(askedBytes) {
		outcomes, err := ask(ctx, jobs)
		if err != nil {
			return nil, err
		}
		q.Answer(outcomes)
	}
	return c.Verdict(q.Oracle()), nil
}

// elementNeeds is what the bounds of an element take, in bytes: its value and its
// error in float64, the sum of its terms, and something on the way to them. The
// oracle takes no more.
const elementNeeds = 32

// pathNeeds is how many times that is the same on a candidate's path.
const pathNeeds = 3

// need is what the bounds of a case take, in bytes.
func need(ref *backend.Outcome) int64 { return elementNeeds * int64(ref.Elements()) }

func (j *Judge) fits(bytes int64) bool { return j.memory == 0 || bytes <= j.memory }

// skipped is the verdict on a case that differs beyond its plain limits, where
// what tells a fault from rounding takes too much.
func (j *Judge) skipped(bytes int64) *verdict.Verdict {
	return &verdict.Verdict{Word: verdict.Skipped, Reason: fmt.Sprintf(
		"the results differ, and to tell rounding from a fault takes %d MB, more than the %d MB of --memory", bytes>>20, j.memory>>20)}
}

// askedBytes is what the answers of one exchange with the reference may take,
// where it is of more than one question.
const askedBytes = 32 << 20
