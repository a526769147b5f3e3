package conform

import (
	"math"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/conform/baseline"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestLargeCasesAreBoundedByElement: in a case that is too large to be analysed, an
// element beyond the config's tolerance is held to the bound of its own row and
// column, which is narrower where these are small.
func TestLargeCasesAreBoundedByElement(t *testing.T) {
	const rows, inner, columns, tiny = 1024, 4096, 3, 7
	a, b := normals(tensor.F32, 1, rows, inner), normals(tensor.F32, 2, inner, columns)
	for k := range inner {
		a.Set(tiny*inner+k, a.At(tiny*inner+k)*0x1p-10)
	}
	call, err := ops.Table().Resolve("torch.matmul", []any{a, b}, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := call.Execute()
	if err != nil {
		t.Fatal(err)
	}
	p := &program.Program{
		Inputs: []program.Input{{Name: "a", DType: tensor.F32, Shape: a.Shape(), Fill: program.Fill{Dist: program.Normal, Hi: 1}}, {Name: "b", DType: tensor.F32, Shape: b.Shape(), Fill: program.Fill{Dist: program.Normal, Hi: 1}}},
		Calls:  []program.Call{{Result: "result", Target: "torch.matmul", Args: []any{program.Ref("a"), program.Ref("b")}}},
	}
	outcome := func(y *tensor.Tensor) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: y}}}
	}
	job := &backend.Job{Program: p, Inputs: []*tensor.Tensor{a, b}}
	j := judge.New(judging(""))
	for _, c := range []struct {
		name    string
		element int
		by      float64
		want    verdict.Word
	}{
		{"what summing in another order may come to", 100*columns + 1, 1.5e-4, verdict.Aligned},
		{"more than that", 100*columns + 1, 0.1, verdict.Misaligned},
		{"as much in a row of small elements", tiny*columns + 2, 1.5e-4, verdict.Misaligned},
	} {
		got := made[0].Clone()
		got.Set(c.element, got.At(c.element)+complex(math.Copysign(c.by, real(got.At(c.element))), 0))
		q := &baseline.Question{Entry: &baseline.Entry{ATol: 1e-4, RTol: 0}, Job: job, Ref: outcome(made[0]), Cand: outcome(got)}
		v := withoutOracle(j, j.Case(q.Job, q.Ref, q.Cand), q)
		if v.Word != c.want || v.Word == verdict.Aligned && (v.Worst <= 0 || v.Worst > 1) {
			t.Errorf("%s: %s, want %s; worst %v of the limit: %s", c.name, v.Word, c.want, v.Worst, v.Reason)
		}
		if v.Word == verdict.Misaligned && !strings.Contains(v.Differences[0].Limit.Reason, "of the config") {
			t.Errorf("%s: the limit is said to be %s", c.name, v.Differences[0].Limit.Reason)
		}
	}
}

// TestLargeSumsOfHalves: where a reference has rounded to the half type between its steps, an
// element of a large case is held to what it is in float64.
func TestLargeSumsOfHalves(t *testing.T) {
	x := normals(tensor.F16, 3, 65, 256, 257)
	p := &program.Program{
		Inputs: []program.Input{{Name: "x", DType: tensor.F16, Shape: x.Shape(), Fill: program.Fill{Dist: program.Normal, Hi: 1}}},
		Calls:  []program.Call{{Result: "result", Target: "torch.sum", Args: []any{program.Ref("x")}, Kwargs: []program.Kwarg{{Name: "dim", Value: program.List{int64(2)}}}}},
	}
	job := &backend.Job{Program: p, Inputs: []*tensor.Tensor{x}}
	right, err := Predictor().Run(t.Context(), job)
	if err != nil || right.Status != backend.OK {
		t.Fatalf("%+v, %v", right, err)
	}
	j := judge.New(judging(""))
	for _, many := range []int{1, mostCut + 1} {
		off := *right
		off.Values = []backend.Value{{Tensor: right.Values[0].Tensor.Clone()}}
		for i := range many {
			off.Values[0].Tensor.Set(i, off.Values[0].Tensor.At(i)+0.5)
		}
		for _, c := range []struct {
			ref, cand *backend.Outcome
			want      verdict.Word
		}{{&off, right, verdict.Aligned}, {right, &off, verdict.Misaligned}} {
			q := &baseline.Question{Entry: &baseline.Entry{ATol: 1e-2, RTol: 1e-3}, Job: job, Ref: c.ref, Cand: c.cand}
			if v := withoutOracle(j, j.Case(q.Job, q.Ref, q.Cand), q); v.Word != c.want {
				t.Errorf("%d elements: %s, want %s: %s", many, v.Word, c.want, v.Reason)
			}
		}
	}
}

func normals(d tensor.DType, key uint64, shape ...int) *tensor.Tensor {
	in := program.Input{Name: "x", DType: d, Shape: shape, Fill: program.Fill{Dist: program.Normal, Hi: 1, Key: key}}
	return in.Materialize()
}
