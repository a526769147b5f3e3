package onekernel

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// judged is a session with cases of a function of x[B,N].
func judged(t *testing.T, n int) *Session {
	m := makerOf(t, "x: float[B,N]", tensor.F32, tensor.F16)
	s := &Session{cfg: &Config{Seed: 1, Kernel: Source{File: "k.py", Name: "f"}, Against: "ref.py::f"}, maker: m, info: "torch 2", earlier: map[string]uint64{}}
	for _, c := range cases(t, m, n) {
		s.outcomes = append(s.outcomes, &result{Case: c, kernel: &backend.Outcome{Status: backend.OK}, verdict: &verdict.Verdict{Word: verdict.Aligned}})
	}
	return s
}

// fault is a kind of problem that cases of a class have.
func (s *Session) fault(kind string, of func(*Case) bool) {
	for _, r := range s.outcomes {
		if of(r.Case) {
			f := finding{kind, "a " + kind, r}
			r.problems = append(r.problems, f)
			s.add(f)
		}
	}
}

func TestPrecedence(t *testing.T) {
	order := []struct {
		kind string
		want Word
	}{{"patches", Cheats}, {"signal", Unsafe}, {"value", Wrong}, {"delegates", Delegation}, {"refuses", Limited}}
	for i, of := range order {
		s := judged(t, 2)
		s.cfg.NoFallback = true
		for k := len(order) - 1; k >= i; k-- { // the strongest last
			s.add(finding{Kind: order[k].kind, Text: order[k].kind})
		}
		got, found := s.verdict()
		if got != of.want || len(found) != 1 || found[0].Kind != of.kind {
			t.Errorf("with %s and what is weaker: %s by %v, want %s", of.kind, got, found, of.want)
		}
	}
}

// TestUnwritten: memory that was never written to is a cheat but of a kernel that writes elsewhere,
// which an empty result does not show.
func TestUnwritten(t *testing.T) {
	for n, want := range map[int]Word{0: Cheats, 2: Wrong} {
		s := judged(t, 2)
		s.outcomes[0].ref = &backend.Outcome{Values: []backend.Value{{Tensor: tensor.New(tensor.F32, n)}}}
		s.outcomes[1].problems = append(s.outcomes[1].problems, finding{Kind: "unwritten"})
		s.add(finding{Kind: "unwritten"})
		if got, _ := s.verdict(); got != want {
			t.Errorf("beside a right result of %d elements: %s, want %s", n, got, want)
		}
	}
}

func TestVerdictsWithoutFindings(t *testing.T) {
	if got, _ := judged(t, 3).verdict(); got != Right {
		t.Errorf("%s, want right", got)
	}
	if got, _ := judged(t, 0).verdict(); got != Nothing {
		t.Errorf("no case: %s, want nothing", got)
	}
	s := judged(t, 2)
	s.add(finding{Kind: "delegates", Text: "calls it"})
	if got, _ := s.verdict(); got != Right {
		t.Errorf("delegation without --no-fallback: %s, want right", got)
	}
	s.add(finding{Kind: "refuses", Text: "raises"})
	if got, _ := s.verdict(); got != Limited {
		t.Errorf("a refusal: %s, want limited", got)
	}
	for _, r := range s.outcomes {
		r.kernel.Status = backend.Raised
	}
	if got, _ := s.verdict(); got != Nothing {
		t.Errorf("refusals alone: %s, want nothing", got)
	}
}

// TestLimitsNameTheirPromise: the flags with which a kernel promises no more than it takes, where
// there are some.
func TestLimitsNameTheirPromise(t *testing.T) {
	empty := func(c *Case) bool { return c.smallest() == 0 }
	for _, of := range []struct {
		name    string
		refused func(*Case) bool
		want    string
	}{
		{"empty tensors", empty, "--no-empty"},
		{"float16", func(c *Case) bool { return c.DType == tensor.F16 }, "--dtypes float32"},
		{"both", func(c *Case) bool { return empty(c) || c.DType == tensor.F16 }, "--dtypes float32 --no-empty"},
		{"NaN", func(c *Case) bool { return c.Regime == NonFinite }, "--no-nonfinite"},
		{"what is not contiguous", func(c *Case) bool { return c.Layout != Contiguous }, "--layouts contiguous"},
		{"wide rows", func(c *Case) bool { return c.Sizes["N"] > 1000 }, ""},
		{"nothing", func(*Case) bool { return false }, ""},
	} {
		s := judged(t, 2*len(first))
		for _, r := range s.outcomes {
			if of.refused(r.Case) {
				r.kernel = &backend.Outcome{Status: backend.Raised}
			}
		}
		if got := s.promising(); got != of.want {
			t.Errorf("%s: %q, want %q", of.name, got, of.want)
		}
	}
}

// TestEveryKindHasAVerdict: what the worker's watch says leads to the verdict that the
// guide states for it.
func TestEveryKindHasAVerdict(t *testing.T) {
	for kind, want := range map[string]Word{
		"spies": Cheats, "late": Cheats, "later": Cheats, "class": Cheats, "exits": Cheats, "channel": Cheats, "decoy": Cheats, "cached": Cheats, "spoils": Cheats, "unwritten": Cheats,
		"memory": Unsafe, "race": Unsafe, "oom": Limited,
		"buffer": Wrong, "aliases": Wrong, "hangs": Wrong, "grad": Wrong, "shape": Wrong, "dtype": Wrong,
	} {
		if got := (&finding{Kind: kind}).word(); got != want {
			t.Errorf("%s leads to %s, want %s", kind, got, want)
		}
	}
}

func TestWhen(t *testing.T) {
	for want, of := range map[string]func(*Case) bool{
		"only where the values are: large magnitudes": regime(Large),
		"only where the values are: all negative":     regime(Negative),
		"only with inputs that are sliced":            layout(Sliced),
		"only with inputs that are not contiguous":    func(c *Case) bool { return c.Layout != Contiguous },
		"only in float16":                             func(c *Case) bool { return c.DType == tensor.F16 },
		"only for empty tensors":                      func(c *Case) bool { return c.smallest() == 0 },
		"only where gradients are asked for":          func(c *Case) bool { return c.Grad },
		"only at widths of 1027 and more":             func(c *Case) bool { return c.width() > 500 },
		"only at widths that are no power of two":     func(c *Case) bool { return !power(c.width()) && c.width() > 0 },
		"only at sizes that are no power of two":      size(func(n int) bool { return !power(n) && n > 0 }),
		"only where B is 129 and more":                func(c *Case) bool { return c.Sizes["B"] > 100 },
		"in every case":                               func(*Case) bool { return true },
	} {
		s := judged(t, 2*len(first))
		s.fault("value", of)
		if got := s.when(nil); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	s := judged(t, 10)
	if got := s.when(nil); got != "" {
		t.Errorf("nothing fails: %q", got)
	}
	s.outcomes[2].problems = []finding{{Kind: "value"}} // width 1
	s.outcomes[4].problems = s.outcomes[2].problems     // width 1027
	if got := s.when(nil); got != "in 2 of 10 cases" {
		t.Errorf("two cases without a common trait: %q", got)
	}
	s = judged(t, 2*len(first))
	s.fault("value", func(c *Case) bool { return c.Layout == Sliced })
	small := *s.outcomes[slices.IndexFunc(s.outcomes, func(r *result) bool { return len(r.problems) > 0 })]
	contiguous := *small.Case
	contiguous.Layout = Contiguous
	small.Case = &contiguous
	if got := s.when(&small); got == "only with inputs that are sliced" {
		t.Errorf("the smallest call is contiguous: %q", got)
	}
}

func TestDelegates(t *testing.T) {
	for _, c := range []struct {
		kernel, reference string
		want              bool
	}{
		{"aten::_softmax", "aten::_softmax", true},
		{"aten::exp aten::sum aten::div", "aten::_softmax", false},
		{"aten::_softmax aten::mul", "aten::_softmax", true},
		{"aten::mm", "aten::mm aten::add", false},
		{"aten::mm aten::add", "aten::mm aten::add", true},
		{"aten::scaled_dot_product_attention", "aten::_softmax aten::div aten::masked_fill aten::matmul", true},
		{"aten::scaled_dot_product_attention", "aten::matmul aten::native_layer_norm", false},
		{"aten::_softmax aten::matmul aten::mul", "aten::scaled_dot_product_attention", false},
		{"aten::native_layer_norm", "aten::add aten::mean aten::mul aten::rsqrt aten::sub aten::var", true},
		{"aten::gelu", "aten::add aten::matmul aten::mul aten::tanh", false}, // a product of its own
		{"aten::mul", "", false}, // the reference computes nothing
		{"", "", false},
	} {
		if got := delegates(strings.Fields(c.kernel), strings.Fields(c.reference)); len(got) > 0 != c.want {
			t.Errorf("%q for %q: %v", c.kernel, c.reference, got)
		}
	}
}

func TestEnding(t *testing.T) {
	for _, c := range []struct {
		class, message, kind, says string
	}{
		{"SIGSEGV", "fatal\n  File \"/x/plumb_watch.py\", line 3 in call\n  File \"/x/k.py\", line 7 in f\n", "signal", `("/x/k.py", line 7 in f)`},
		{"SIGKILL", "", "signal", "SIGKILL"},
		{"garbage", "what came is no JSON\nmore", "channel", "what came is no JSON"},
		{"exit", "the process has written a reply of its own", "channel", "is no answer"},
		{"exit", "exit code 0\n", "exits", "exit code 0"},
	} {
		kind, text := ending(&backend.Outcome{Class: c.class, Message: c.message})
		if kind != c.kind || !strings.Contains(text, c.says) || strings.Contains(text, "\n") {
			t.Errorf("%s %q: %s, %q, want %s with %q", c.class, c.message, kind, text, c.kind, c.says)
		}
	}
}

// TestWhatIsTolerated: a kernel may be off by Slack limits, and by none where values
// have to be equal.
func TestWhatIsTolerated(t *testing.T) {
	differs := func(ratio float64, rule compare.Rule) *result {
		d := verdict.Difference{Diff: compare.Diff{Rule: rule, WorstRatio: compare.Number(ratio)}}
		return &result{slack: Slack, verdict: &verdict.Verdict{Word: verdict.Misaligned, Differences: []verdict.Difference{d}}}
	}
	for _, c := range []struct {
		r    *result
		want bool
	}{
		{differs(Slack, compare.Distance), true}, {differs(Slack*1.01, compare.Distance), false}, {differs(2, compare.Shape), false},
		{differs(2, compare.NonFinite), false}, {&result{verdict: &verdict.Verdict{Word: verdict.Misaligned}}, false},
	} {
		if got := c.r.tolerated(); got != c.want {
			t.Errorf("%+v: %v", c.r.verdict.Differences, got)
		}
	}
}

// TestWhatLeads: a wrong case is told by a difference that makes it wrong, and not by one
// before it that is tolerated.
func TestWhatLeads(t *testing.T) {
	d := func(name string, ratio float64) verdict.Difference {
		return verdict.Difference{Where: verdict.Where{Part: backend.PartGrad, Name: name}, Kind: "grad", Diff: compare.Diff{Rule: compare.Distance, WorstRatio: compare.Number(ratio), Message: "is far off"}}
	}
	v := &verdict.Verdict{Word: verdict.Misaligned, Differences: []verdict.Difference{d("x", Slack/2), d("w", Slack*2), d("b", Slack*9)}}
	r := &result{slack: Slack, kernel: &backend.Outcome{}, ref: &backend.Outcome{}, verdict: v}
	led := v.LedBy(r.intolerable())
	if led.Where.Name != "w" || led.Reason != "the values agree; gradient of w: is far off" || led.Differences[1].Where.Name != "x" || len(led.Differences) != 3 {
		t.Errorf("%+v", led)
	}
	if v.Differences[0].Where.Name != "x" || v.LedBy(0) != v || v.LedBy(-1) != v {
		t.Error("the verdict itself has changed")
	}
}

// TestPrecision: what a kernel says of its arithmetic widens limits in its dtypes alone.
func TestPrecision(t *testing.T) {
	of := func(dt tensor.DType) *Case {
		return &Case{DType: dt, Sizes: map[string]int{"N": 40}, sig: &Signature{}}
	}
	for _, c := range []struct {
		cfg  Config
		dt   tensor.DType
		want float64
	}{
		{Config{}, tensor.F32, Slack}, {Config{Precision: TF32}, tensor.F32, Slack * 8192}, {Config{Precision: TF32}, tensor.F64, Slack},
		{Config{Precision: Fast}, tensor.F32, Slack * 1024}, {Config{Precision: Fast}, tensor.BF16, Slack},
		{Config{HalfSums: true}, tensor.F16, Slack * 40}, {Config{HalfSums: true}, tensor.F32, Slack},
	} {
		if got := c.cfg.slack(of(c.dt)); got != c.want {
			t.Errorf("%+v in %s: %v, want %v", c.cfg, c.dt, got, c.want)
		}
	}
}

func TestPromisesAreRepeated(t *testing.T) {
	yes := true
	c := Config{Precision: TF32, Promises: Promises{DTypes: []tensor.DType{tensor.F32}, Layouts: []Layout{Contiguous, Sliced}, NoEmpty: true, Grad: &yes, Ranges: map[string][2]int{"S": {1, 9}, "B": {2, 2}}}}
	want := "dtypes float32; layouts contiguous, sliced; B from 2 to 2; S from 1 to 9; no empty tensor; gradients; precision tf32"
	if got := strings.Join(c.promised(), "; "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestReportIsStable holds the JSON object to testdata: a field that is gone or called
// otherwise breaks who reads it. docs/kernel.md names every field.
func TestReportIsStable(t *testing.T) {
	r := &Report{
		Verdict: Wrong, Reasons: []Reason{{"value", "1 of 3 elements differ", 4}}, When: "only at sizes of 2 and more",
		Smallest: &Smallest{Case: "float32 N=2", Program: "# plumb program v1\n", Where: "the result", Index: []int{1}, Got: "nan", Want: "1", Truth: "1", Limit: "equal values", Reason: "differs"},
		Bundle:   &Bundle{Dir: "/tmp/b", Run: "python3 /tmp/b/repro.py", Failed: true, How: "exit code 1", Output: "wrong"},
		Evidence: []Reason{{"delegates", "calls what it is to replace: aten::exp", 2}},
		Tried:    Tried{Cases: 9, Right: 5, Refused: 1, Gradients: 3, DTypes: []string{"float32"}, Layouts: []string{"contiguous"}, Values: []string{"ties"}, Sizes: []int{0, 2}},
		Refused:  map[string][]string{"RuntimeError: no": {"float16 N=1"}}, Delegates: true, Notes: []string{"forward only"}, Promises: []string{"no empty tensor"},
		Kernel: "k.py::f", Against: "torch.exp", Reference: "torch 2.15.0", Sandbox: Sandbox{[]string{"network"}, []string{"files: none"}}, Seed: 7, Seconds: 1.5, Score: 0.5,
	}
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "report.json")
	want, err := os.ReadFile(path)
	if err != nil || string(got)+"\n" != string(want) {
		t.Errorf("%s holds another object (%v); got\n%s", path, err, got)
	}
	guide, err := os.ReadFile("../../docs/kernel.md")
	if err != nil {
		t.Fatal(err)
	}
	var names func(v any)
	names = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, of := range v {
				if name != "RuntimeError: no" && !strings.Contains(string(guide), "`"+name+"`") {
					t.Errorf("docs/kernel.md does not say what %q is", name)
				}
				names(of)
			}
		case []any:
			for _, e := range v {
				names(e)
			}
		}
	}
	var parsed any
	if err := json.Unmarshal(got, &parsed); err != nil {
		t.Fatal(err)
	}
	names(parsed)
}

// TestSwallowed: what adds to a sum that is not begun anew repeats the last one where it adds
// zeros, or what is lost beside it.
func TestSwallowed(t *testing.T) {
	of := func(v ...float64) *backend.Outcome {
		return &backend.Outcome{Values: []backend.Value{{Tensor: vector(v...)}}}
	}
	for _, c := range []struct {
		want, got []float64
		is        bool
	}{
		{[]float64{0, 0}, []float64{3, -1}, true}, {[]float64{1, 0}, []float64{1e8, 5}, true}, {[]float64{1, 3}, []float64{1e8, 5}, false},
		{[]float64{1e8}, []float64{1}, false}, {[]float64{math.NaN()}, []float64{1}, false}, {[]float64{2}, []float64{math.NaN()}, false},
	} {
		if got := swallowed(of(c.want...), of(c.got...), 8); got != c.is {
			t.Errorf("%v in %v: %v", c.want, c.got, got)
		}
	}
	if !swallowed(of(50), of(1e8), 100) || swallowed(of(50), of(1e8), 4) {
		t.Error("what is lost grows with the number of terms")
	}
}

// TestWhatIsWrongEndsWithItsTime: the first draws of a model come whatever they take, but not once
// some are wrong.
func TestWhatIsWrongEndsWithItsTime(t *testing.T) {
	s := &Session{cfg: &Config{Budget: time.Second, Own: func() time.Duration { return 2 * time.Second }}, kernel: &host{Worker: &worker.Worker{}}, reference: &host{Worker: &worker.Worker{}}, maker: &maker{}}
	for range deadly {
		s.outcomes = append(s.outcomes, &result{kernel: &backend.Outcome{Status: backend.OK}, problems: []finding{{Kind: "value"}}})
	}
	if s.late(3) {
		t.Error("a function's first draws all come")
	}
	s.maker.form = &problem{}
	if !s.late(3) {
		t.Error("a wrong model goes on beyond its time")
	}
	if s.outcomes = s.outcomes[1:]; s.late(3) {
		t.Error("few are wrong")
	}
}

// TestWhatIsWrongEndsInHalfItsTime: a function of which many calls are wrong, a model of which some are.
func TestWhatIsWrongEndsInHalfItsTime(t *testing.T) {
	for _, c := range []struct {
		failing int
		form    form
		late    bool
	}{{plenty, nil, true}, {plenty - 1, nil, false}, {deadly, &problem{}, true}, {deadly - 1, &problem{}, false}} {
		s := &Session{cfg: &Config{Budget: 12 * time.Second, Own: func() time.Duration { return 7 * time.Second }}, kernel: &host{Worker: &worker.Worker{}}, reference: &host{Worker: &worker.Worker{}}, maker: &maker{form: c.form}}
		for range c.failing {
			s.outcomes = append(s.outcomes, &result{kernel: &backend.Outcome{Status: backend.OK}, problems: []finding{{Kind: "value"}}})
		}
		if s.late(always) != c.late {
			t.Errorf("%d failing calls: %v", c.failing, !c.late)
		}
	}
}

// TestTextIsShort: what each program of a launch does is told for some of them, once.
func TestTextIsShort(t *testing.T) {
	r := &Report{Verdict: Unsafe, Kernel: "k.py::f", Against: "torch.exp"}
	for i := range 3 * toldAtMost {
		r.Reasons = append(r.Reasons, Reason{Kind: "memory", Text: fmt.Sprintf("program %d reads outside", i)})
	}
	r.Evidence = append(slices.Clone(r.Reasons), Reason{Kind: "delegates", Text: "calls torch.exp"})
	text := r.Text()
	if n := strings.Count(text, "reads outside"); n != toldAtMost || !strings.Contains(text, fmt.Sprintf("and %d more", 2*toldAtMost)) || !strings.Contains(text, "evidence: calls torch.exp") {
		t.Errorf("%d of %d reasons are told:\n%s", n, 3*toldAtMost, text)
	}
	if strings.Contains(text, "()") || !strings.Contains(text, "tried: no call\n") {
		t.Errorf("of what was not tried:\n%s", text)
	}
}

// TestHowABundleEnds: only the exit code of a wrong kernel, a signal and no answer say
// that it failed.
func TestHowABundleEnds(t *testing.T) {
	for script, want := range map[string]bool{"exit 0": false, "exit 1": true, "exit 2": false, "kill -SEGV $$": true} {
		failed, how := ended(exec.Command("sh", "-c", script).Run(), false)
		if failed != want || how == "" {
			t.Errorf("%s: failed=%v, %q", script, failed, how)
		}
	}
	if failed, how := ended(exec.Command("/no/such/python").Run(), false); failed || how == "" {
		t.Errorf("a Python that is not there: failed=%v, %q", failed, how)
	}
	if failed, _ := ended(nil, true); !failed {
		t.Error("no answer is no failure")
	}
}

// TestLate: beyond its time no call is begun, a twin's neither, once those have been that always are: the last is of long sums that cancel.
func TestLate(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		i              int
		budget, passed time.Duration
		launches       int
		late           bool
	}{{12, 15 * second, 16 * second, 0, true}, {11, 15 * second, 16 * second, 0, false}, {12, 15 * second, 14 * second, 0, false}, {12, 15 * second, 14 * second, 1, true}, {12, 15 * second, 12 * second, 1, false}, {59, 0, 900 * second, 0, false}} {
		s := &Session{cfg: &Config{Budget: c.budget, Own: func() time.Duration { return c.passed }}, kernel: &host{Worker: &worker.Worker{}}, reference: &host{Worker: &worker.Worker{}}, maker: &maker{}}
		s.outcomes = []*result{{kernel: &backend.Outcome{Status: backend.OK}, seen: observed{Launches: c.launches}}}
		if s.late(c.i) != c.late {
			t.Errorf("call %d after %v of %v, %d launches: %v", c.i, c.passed, c.budget, c.launches, !c.late)
		}
	}
}
