package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestLastCallOfALongProgram: errors that could have grown over a long program are no excuse for a
// call whose inputs are the same, to the bit, on both sides.
func TestLastCallOfALongProgram(t *testing.T) {
	var lines strings.Builder
	for i := range 24 {
		fmt.Fprintf(&lines, "a%d = torch.mv(w, u%d)\nu%d = torch.nn.functional.normalize(a%d, dim=0)\n", i, i, i+1, i)
	}
	p, err := program.Parse("p.py", program.Header+"\ncase(\"p.py::p\", seed=1)\nw = tensor((3, 3), torch.float32, [1.0, 2.0, 3.0, -1.0, 0.5, 2.0, 0.25, -2.0, 1.0])\nu0 = tensor((3,), torch.float32, [1.0, -1.0, 2.0])\n"+lines.String()+"y = torch.dot(u24, a23)\n")
	if err != nil {
		t.Fatal(err)
	}
	job := backend.NewJob(p)
	ref, err := native.New(ops.Table(), nn.Modules()).Run(t.Context(), job)
	if err != nil || ref.Status != backend.OK {
		t.Fatal(err, ref)
	}
	j := judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules(), CanAskReference: true, Oracle: judge.OnMismatch})
	for off, want := range map[float64]verdict.Word{1: verdict.Aligned, 1 + 1e-7: verdict.Aligned, 1.01: verdict.Misaligned} {
		cand := ref.Replaced(func(at backend.Place, _ []int, x *tensor.Tensor) *tensor.Tensor {
			if at.Part != backend.PartValue || at.Call != len(p.Calls)-1 {
				return x
			}
			return tensor.Float64s(tensor.F32, nil, x.Float(0)*off)
		})
		if v := j.Case(job, ref, cand).Verdict(nil); v.Word != want {
			t.Errorf("a last result times %v: %s, want %s", off, v.Word, want)
		}
	}
}
