package judge_test

import (
	"context"
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

// longProgram is a power iteration, behind which a bound of its errors is wider than what it bounds.
func longProgram(t *testing.T) *program.Program {
	var lines strings.Builder
	for i := range 24 {
		fmt.Fprintf(&lines, "a%d = torch.mv(w, u%d)\nu%d = torch.nn.functional.normalize(a%d, dim=0)\n", i, i, i+1, i)
	}
	p, err := program.Parse("p.py", program.Header+"\ncase(\"p.py::p\", seed=1)\nw = tensor((3, 3), torch.float32, [1.0, 2.0, 3.0, -1.0, 0.5, 2.0, 0.25, -2.0, 1.0])\nu0 = tensor((3,), torch.float32, [1.0, -1.0, 2.0])\n"+lines.String()+"y = torch.dot(u24, a23)\n")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLastCallOfALongProgram: errors that could have grown over a long program are no excuse for a
// call, whether what it reads has the same bits on both sides or differs by roundings.
func TestLastCallOfALongProgram(t *testing.T) {
	p := longProgram(t)
	native := native.New(ops.Table(), nn.Modules())
	run := func(job *backend.Job) *backend.Outcome {
		out, err := native.Run(t.Context(), job)
		if err != nil || out.Status != backend.OK {
			t.Fatal(err, out)
		}
		return out
	}
	ask := func(_ context.Context, jobs []*backend.Job) (all []*backend.Outcome, err error) {
		for _, job := range jobs {
			all = append(all, run(job))
		}
		return all, nil
	}
	job, rounded := backend.NewJob(p), backend.NewJob(p)
	w := rounded.Inputs[0]
	for i := range w.Len() {
		w.Set(i, w.At(i)*(1+1.2e-7))
	}
	ref := run(job)
	j := judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules(), CanAskReference: true, Oracle: judge.OnMismatch})
	for name, own := range map[string]*backend.Outcome{"same bits": ref, "other roundings": run(rounded)} {
		for off, want := range map[float64]verdict.Word{1: verdict.Aligned, 1 + 1e-7: verdict.Aligned, 1.01: verdict.Misaligned} {
			cand := own.Replaced(func(at backend.Place, _ []int, x *tensor.Tensor) *tensor.Tensor {
				if at.Part != backend.PartValue || at.Call != len(p.Calls)-1 {
					return x
				}
				return tensor.Float64s(tensor.F32, nil, x.Float(0)*off)
			})
			v, err := j.Judge(t.Context(), job, ref, cand, ask)
			if err != nil || v.Word != want || want == verdict.Misaligned && v.Where.Name != "y" {
				t.Errorf("%s, a last result times %v: %s at %v, want %s: %v", name, off, v.Word, v.Where, want, err)
			}
		}
	}
}
