package command

import (
	"math"
	"testing"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestAChangeIsSettledLikeTheResult: the correctly rounded scalar decides about
// what a call in place left in its argument as it does about its result.
func TestAChangeIsSettledLikeTheResult(t *testing.T) {
	const x = -0.03970057953378703 // where PyTorch 1.13's elu is 7 units off
	off := math.Float64frombits(math.Float64bits(math.Expm1(x)) - 7)
	in := program.Input{Name: "x", DType: tensor.F64, Fill: program.Fill{Dist: program.Literal, Data: tensor.Float64s(tensor.F64, nil, x)}}
	p := &program.Program{Inputs: []program.Input{in}, Calls: []program.Call{{
		Result: "y", Target: "torch.nn.functional.elu", Args: []any{program.Ref("x")}, Kwargs: []program.Kwarg{{Name: "inplace", Value: true}},
	}}}
	outcome := func(v float64) *backend.Outcome {
		y := tensor.Float64s(tensor.F64, nil, v)
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: y}}, Watched: true, Slots: []backend.Slot{{Place: backend.Place{Part: backend.PartChange, Owner: "x"}, Tensor: y}}}
	}
	job := campaign.Job(p, &backend.Outcome{})
	plain := judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules(), Oracle: judge.OnMismatch})
	if v := plain.Case(job, outcome(off), outcome(math.Expm1(x))).Verdict(nil); v.Word != verdict.Aligned {
		t.Errorf("the candidate is right: %s", v.Text())
	}
	if v := plain.Case(job, outcome(math.Expm1(x)), outcome(off)).Verdict(nil); v.Word != verdict.Misaligned {
		t.Errorf("the candidate is 7 units off: %s", v.Text())
	}
}
