package judge_test

import (
	"context"
	"testing"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// TestWhoIsAsked: the reference is asked for the truth where the mode says so and
// where it can be asked, and not otherwise.
func TestWhoIsAsked(t *testing.T) {
	job := &backend.Job{Program: &program.Program{Calls: []program.Call{{Result: "y", Target: "torch.f"}}}}
	outcome := func(v float64) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Scalar(tensor.F32, complex(v, 0))}}}
	}
	for _, c := range []struct {
		mode    judge.OracleMode
		can     bool
		differs bool
		asked   bool
	}{
		{judge.OnMismatch, true, true, true},
		{judge.OnMismatch, true, false, false},
		{judge.OnMismatch, false, true, false},
		{judge.Always, true, false, true},
		{judge.Always, false, false, false},
		{judge.OracleOff, true, true, false},
	} {
		cand := outcome(1)
		if c.differs {
			cand = outcome(2)
		}
		asked := false
		v, err := judge.New(judge.Config{CanAskReference: c.can, Oracle: c.mode}).Judge(t.Context(), job, outcome(1), cand,
			func(_ context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
				asked = true
				outcomes := make([]*backend.Outcome, len(jobs))
				for i := range outcomes {
					outcomes[i] = outcome(1)
				}
				return outcomes, nil
			})
		if err != nil || asked != c.asked || (v.Word == verdict.Misaligned) != c.differs {
			t.Errorf("%+v: asked is %v, %s, error %v", c, asked, v.Word, err)
		}
	}
}
