package report

import (
	"bytes"
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

// TestTriageOfDefaults: where the cases fail that leave an argument out, and those
// that give it, by name or by position, do not, the default is named; where others
// fail too, or some that leave it out are aligned, it is not.
func TestTriageOfDefaults(t *testing.T) {
	triage := Triage{Callable: func(candidate, operator string) *Callables {
		return &Callables{Torch: []string{operator + "(Tensor input, int dim=-1, *, float[] eps=[1, 2], bool keep=False) -> Tensor"}, Subject: []string{"adapter"}}
	}}
	add := func(operator string, n int, failed bool, args string) {
		p, err := program.Parse("p.py", program.Header+"\ncase(\"p.py::c\", seed=1)\nx = tensor((1,), torch.float32, [1.0])\nv = torch.softmax(x"+args+")\n")
		if err != nil {
			t.Fatal(err)
		}
		v := verdict.Verdict{Word: verdict.Aligned}
		if failed {
			v = verdict.Verdict{Word: verdict.Misaligned, Kind: "value"}
			if operator == "slope" {
				v.Kind = "grad"
			}
		}
		for range n {
			triage.Add(&verdict.Record{Test: "ops::" + operator + "[float32]", Candidate: "jax", Verdict: &v, Program: p})
		}
	}
	add("position", 3, true, "")
	add("position", 3, false, ", 0")
	add("position", 1, true, ", 0") // a quarter
	add("name", 3, true, ", 0")
	add("name", 3, false, ", eps=1.0")
	add("name", 3, true, "")
	add("both", 3, true, "")
	add("both", 3, true, ", 0")
	add("both", 1, false, ", 0")
	add("some", 3, true, "")
	add("some", 1, false, "")
	add("some", 9, false, ", 0")
	add("chance", 18, true, "")
	add("chance", 2, false, "")
	add("chance", 3, false, ", 0")
	add("slope", 3, true, "")
	add("slope", 9, false, ", 0")
	add("few", 2, true, "")
	add("few", 9, false, ", 0")
	got := map[string]string{}
	for _, c := range triage.Clusters() {
		if got[c.Operator] = c.Default; (c.Table != nil) != (c.Default != "") {
			t.Errorf("%s: %+v", c.Operator, c)
		}
	}
	for operator, want := range map[string]string{"position": "dim", "name": "eps", "chance": "dim", "both": "", "some": "", "few": "", "slope": ""} {
		if got[operator] != want {
			t.Errorf("%s: %q, want %q", operator, got[operator], want)
		}
	}
	var b bytes.Buffer
	triage.Text(&b)
	if !strings.Contains(b.String(), "those that leave out dim fail, and hardly one that gives it: the adapter's table is likely wrong about its default\n      PyTorch  position(") {
		t.Error(b.String())
	}
}

// TestTriage: where every judged case of an operator fails, or three quarters with all
// of two dtypes, the table is shown; where more are aligned, or the subject has no table, it is not.
func TestTriage(t *testing.T) {
	triage := Triage{Callable: func(candidate, operator string) *Callables {
		if candidate == "native" {
			return nil
		}
		return &Callables{Torch: []string{operator + "(Tensor input) -> Tensor"}, Subject: []string{`"` + operator + `": "wrong"`}}
	}}
	add := func(candidate, test string, n int, v verdict.Verdict, targets ...string) {
		p := &program.Program{}
		for _, target := range targets {
			p.Calls = append(p.Calls, program.Call{Target: target})
		}
		for range n {
			triage.Add(&verdict.Record{Test: test, Candidate: candidate, Verdict: &v, Program: p})
		}
	}
	wrong, fine := verdict.Verdict{Word: verdict.Misaligned, Kind: "value"}, verdict.Verdict{Word: verdict.Aligned}
	at := func(target string) verdict.Verdict {
		v := wrong
		v.Where = &verdict.Where{Target: target}
		return v
	}
	add("jax", "ops::relu[float32]", 3, wrong)
	add("jax", "ops::relu[illegal]", 2, fine)                                                    // says nothing of the arithmetic
	add("jax", "ops::relu[float64]", 5, verdict.Verdict{Word: verdict.Unsupported})              // nor does this
	add("jax", "ops::relu[float64]", 1, verdict.Verdict{Word: verdict.Crash, OfReference: true}) // or this
	add("jax", "ops::abs[float32]", 9, wrong)
	add("jax", "ops::abs[int64]", 1, fine)
	add("jax", "ops::neg[float32]", 2, wrong) // too few
	add("native", "ops::relu[float32]", 3, wrong)
	add("jax", "ops::neg[illegal]", 2, wrong)
	add("jax", "s.py::test_a", 4, at("torch.exp"), "torch.exp", "torch.log")
	add("jax", "s.py::test_b", 4, at("torch.log"), "torch.log")
	add("jax", "s.py::test_c", 1, fine, "Tensor.log")

	for _, dtype := range []string{"float32", "float64", "int64"} {
		add("jax", "ops::atan2["+dtype+"]", 4, wrong)
		add("jax", "ops::hypot["+dtype+"]", 4, wrong)
	}
	add("jax", "ops::atan2[bool]", 4, fine)
	add("jax", "ops::hypot[bool]", 5, fine) // more than a quarter
	add("jax", "ops::fmax[float32]", 3, wrong)
	add("jax", "ops::fmax[float64]", 8, wrong)
	add("jax", "ops::fmax[float64]", 1, fine) // one dtype alone is whole
	add("jax", "s.py::test_d[a]", 3, at("torch.cos"), "torch.cos")
	add("jax", "s.py::test_d[b]", 3, at("torch.cos"), "torch.cos")
	add("jax", "s.py::test_d[c]", 1, fine, "torch.cos") // parameters of tests are no dtypes

	both := verdict.Verdict{Word: verdict.Misaligned, Kind: "dtype", Differences: []verdict.Difference{{Kind: "dtype"}, {Kind: "value"}}}
	add("jax", "ops::sort[float32]", 3, verdict.Verdict{Word: verdict.Misaligned, Kind: "dtype", Differences: both.Differences[:1]})
	add("jax", "ops::topk[float32]", 3, both)

	add("jax", "ops::qr[float32]", 4, verdict.Verdict{Word: verdict.Crash})
	add("jax", "ops::lu[float32]", 3, verdict.Verdict{Word: verdict.Crash})
	add("jax", "ops::lu[float32]", 1, wrong)

	got := map[string]*Cluster{}
	for _, c := range triage.Clusters() {
		got[c.Candidate+" "+c.Operator] = c
	}
	for name, want := range map[string]struct {
		failed, judged int
		table, dtypes  bool
	}{
		"jax relu": {3, 3, true, false}, "jax abs": {9, 10, false, false}, "jax neg": {2, 2, false, false}, "native relu": {3, 3, false, false},
		"jax atan2": {12, 16, true, false}, "jax hypot": {12, 17, false, false}, "jax fmax": {11, 12, false, false}, "jax cos": {6, 7, false, false},
		"jax exp": {4, 4, true, false}, "jax log": {4, 5, false, false}, "jax sort": {3, 3, false, true}, "jax topk": {3, 3, true, false},
		"jax qr": {4, 4, false, false}, "jax lu": {4, 4, true, false},
	} {
		if c := got[name]; c == nil || c.Failed != want.failed || c.Judged != want.judged || (c.Table != nil) != want.table || c.DTypes != want.dtypes {
			t.Errorf("%s: %+v, want %+v", name, c, want)
		}
	}
	var b bytes.Buffer
	triage.Text(&b)
	want := `findings by operator and cause:
  jax, atan2: 12 of 16 judged cases fail: 12 × value
    most fail, and in some dtypes every one: the adapter's table is likely wrong
      PyTorch  atan2(Tensor input) -> Tensor
      adapter  "atan2": "wrong"
  jax, exp: 4 of 4 judged cases fail: 4 × value
    every one fails: the adapter's table is likely wrong
      PyTorch  exp(Tensor input) -> Tensor
      adapter  "exp": "wrong"
  jax, lu: 4 of 4 judged cases fail: 3 × crash, 1 × value
    every one fails: the adapter's table is likely wrong
`
	if !strings.HasPrefix(b.String(), want) {
		t.Error(b.String())
	}
	if !strings.Contains(b.String(), "  jax, neg: 2 of 2 judged cases fail, and 2 illegal cases: 4 × value") {
		t.Error(b.String())
	}
	if !strings.Contains(b.String(), "  jax, sort: 3 of 3 judged cases fail: 3 × dtype\n    every one fails by its dtype alone") {
		t.Error(b.String())
	}
}
