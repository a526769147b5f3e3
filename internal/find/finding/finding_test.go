package finding

import (
	"testing"

	"plumb/backend"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

func relu(target string, padding int64, shape ...int) *program.Program {
	return &program.Program{
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: shape, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: 7}}},
		Calls:  []program.Call{{Result: "y", Target: target, Args: []any{program.Ref("x")}, Kwargs: []program.Kwarg{{Name: "padding", Value: padding}}}},
	}
}

func TestCommon(t *testing.T) {
	odd := []*program.Program{relu("f", 0, 2, 3), relu("f", 1, 4, 5), relu("f", 0, 1, 7)}
	even := []*program.Program{relu("f", 0, 3, 2), relu("f", 1, 5, 4), relu("f", 2, 1, 8)}
	padded := []*program.Program{relu("f", 2, 2, 3), relu("f", 3, 4, 5), relu("f", 2, 1, 7)}
	for _, c := range []struct {
		name             string
		failing, passing []*program.Program
		want             string
	}{
		{"one predicate", odd, even, "the last dimension of an input is odd"},
		{"two together", padded, append(append([]*program.Program{}, odd...), even...), "the last dimension of an input is odd, padding of f is above 1"},
		{"none", odd, odd, ""},
		{"too few", odd[:2], even, ""},
		{"nothing passes", odd, nil, ""},
	} {
		if got := Common(c.failing, c.passing); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func failed(target string, n int) *Finding {
	p := relu(target, int64(n), n)
	where := &verdict.Where{Part: backend.PartValue, Target: target, Name: "y"}
	r := &verdict.Record{Program: p, Candidate: "native", Verdict: &verdict.Verdict{Word: verdict.Misaligned, Kind: "value", Where: where}, Reference: &backend.Outcome{}}
	return &Finding{
		ID: p.ID(), Result: &shrink.Result{Record: r, Signature: shrink.SignatureOf(r)},
		Groups: []*Group{{Test: "test_" + target, Candidate: "native", First: r, Count: n, Failing: []*program.Program{p}}},
	}
}

func TestClusterJoinsTheFormsOfAnOperator(t *testing.T) {
	got := Cluster([]*Finding{failed("torch.nn.functional.max_pool2d", 2), failed("torch.nn.MaxPool2d", 3), failed("torch.relu", 5), failed("Tensor.max_pool2d", 4)})
	if len(got) != 2 {
		t.Fatalf("%d findings, want 2", len(got))
	}
	if got[0].Count() != 9 || len(got[0].Tests()) != 3 || got[1].Count() != 5 {
		t.Errorf("%d cases in %d tests, and %d; want 9 in 3, and 5", got[0].Count(), len(got[0].Tests()), got[1].Count())
	}
	if target := got[0].Result.Record.Program.Calls[0].Target; target != "Tensor.max_pool2d" {
		t.Errorf("the program shown calls %s, not the shortest form", target)
	}
}

func TestCollectorKeepsTestsApart(t *testing.T) {
	var c Collector
	rec := func(test string, index int, word verdict.Word) *verdict.Record {
		return &verdict.Record{Test: test, Index: index, Candidate: "native", Program: relu("f", 0, index), Verdict: &verdict.Verdict{Word: word}, Reference: &backend.Outcome{}}
	}
	c.Record(rec("a", 0, verdict.Aligned), false)
	c.Record(rec("a", 1, verdict.Crash), true)
	c.Record(rec("a", 2, verdict.Crash), true)
	c.End()
	c.Record(rec("b", 0, verdict.Aligned), false)
	c.End()
	c.Record(rec("c", 0, verdict.Crash), true)
	c.End()
	gs := c.Groups()
	if len(gs) != 2 || gs[0].Count != 2 || len(gs[0].Passing) != 1 || gs[1].Test != "c" || len(gs[1].Passing) != 0 {
		t.Errorf("groups %+v", gs)
	}
}
