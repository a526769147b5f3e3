package conform_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/conform"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// settledCases are cases of the shipped config about which Plumb's operators
// and PyTorch differ by more than the limits: the truth decides.
var settledCases = []string{
	"gru_cell_complex::gru_cell_0.pth",
}

// shipped judges a backend by cases of the baseline that Plumb ships; without
// names, by all.
func shipped(t *testing.T, cand func() backend.Backend, withoutTruth bool, names ...string) []*baseline.Record {
	t.Helper()
	base, err := conform.Open("")
	if err != nil {
		t.Fatal(err)
	}
	kit, err := conform.NewKit(base, config.Modes{})
	if err != nil {
		t.Fatal(err)
	}
	var out []*baseline.Record
	cfg := baseline.RunConfig{
		Candidate: "native", Jobs: 2, Memory: 1 << 30, Predict: conform.Predictor, OnRecord: func(r *baseline.Record) { out = append(out, r) },
		Select: func(e *baseline.Entry) bool { return len(names) == 0 || slices.Contains(names, e.Name) },
		Open:   func() (backend.Backend, error) { return cand(), nil },
	}
	kit.Apply(&cfg)
	if withoutTruth {
		cfg.Judge = func(q *baseline.Question) *verdict.Verdict { q.Truth = nil; return kit.Judge(q) }
	}
	if err := base.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestShippedBaseline judges native by what PyTorch did: nothing is misaligned,
// and what is not aligned has a reason.
func TestShippedBaseline(t *testing.T) {
	aligned := 0
	for _, r := range shipped(t, conform.Predictor, false) {
		switch v := r.Verdict; {
		case v.Word == verdict.Aligned:
			aligned++
		case v.Word.IsFinding() || v.Reason == "":
			t.Errorf("%s %s: %s: %s", r.Entry.Name, r.Variant, v.Word, v.Reason)
		}
	}
	if aligned < 4800 {
		t.Errorf("%d aligned", aligned)
	}
}

// TestTruthSettles: the recorded truth is what makes these cases aligned, and it
// makes no planted error so.
func TestTruthSettles(t *testing.T) {
	words := func(rs []*baseline.Record) (out []string) {
		for _, r := range rs {
			out = append(out, fmt.Sprint(r.Entry.Name, " ", r.Verdict.Word))
		}
		return out
	}
	for _, r := range shipped(t, conform.Predictor, false, settledCases...) {
		if r.Verdict.Word != verdict.Aligned {
			t.Errorf("%s: %s: %s", r.Entry.Name, r.Verdict.Word, r.Verdict.Reason)
		}
	}
	without := shipped(t, conform.Predictor, true, settledCases...)
	if n := len(unsettled(without)); n != len(settledCases) {
		t.Errorf("without the truth: %v", words(without))
	}
	planted := shipped(t, func() backend.Backend { return off{conform.Predictor()} }, false, settledCases...)
	if n := len(unsettled(planted)); n != len(settledCases) {
		t.Errorf("with an error of 1%%: %v", words(planted))
	}
}

// unsettled are the cases of which a variant is misaligned.
func unsettled(rs []*baseline.Record) map[string]bool {
	out := map[string]bool{}
	for _, r := range rs {
		if r.Verdict.Word == verdict.Misaligned {
			out[r.Entry.Name] = true
		}
	}
	return out
}

// off is a backend whose results and gradients are 1% too large.
type off struct{ backend.Backend }

func (b off) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	o, err := b.Backend.Run(ctx, job)
	if err != nil {
		return nil, err
	}
	for i := range o.Values {
		o.Values[i] = enlarged(o.Values[i])
	}
	for i, s := range o.Slots {
		o.Slots[i].Tensor = larger(s.Tensor)
	}
	return o, nil
}

func enlarged(v backend.Value) backend.Value {
	v.Tensor = larger(v.Tensor)
	for i := range v.Tuple {
		v.Tuple[i] = enlarged(v.Tuple[i])
	}
	return v
}

func larger(t *tensor.Tensor) *tensor.Tensor {
	if t == nil || !t.DType().IsDifferentiable() {
		return t
	}
	t = t.Clone()
	for i := range t.Len() {
		t.Set(i, t.At(i)*1.01)
	}
	return t
}

// noted is a test that keeps what it is told, and has no subtests.
type noted struct {
	testing.TB
	errors, logs []string
}

func (n *noted) Helper()           {}
func (n *noted) Error(args ...any) { n.errors = append(n.errors, fmt.Sprint(args...)) }
func (n *noted) Log(args ...any)   { n.logs = append(n.logs, fmt.Sprint(args...)) }

// partial computes relu, half a unit too large where wrong says so, panics in
// neg, and knows nothing else.
type partial struct {
	backend.Backend
	wrong bool
}

func (p partial) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	switch job.Program.Calls[0].Target {
	case "torch.relu":
		if p.wrong {
			return off{p.Backend}.Run(ctx, job)
		}
		return p.Backend.Run(ctx, job)
	case "torch.neg":
		panic("no neg today")
	}
	return &backend.Outcome{Status: backend.Unsupported, Message: "not there"}, nil
}

// TestRun: errors carry the case and the reason, what panics is a crash of its
// cases alone, and what is not supported is counted.
func TestRun(t *testing.T) {
	const dir = "../examples/conformkit/baseline"
	n := &noted{TB: t}
	conform.Run(n, partial{conform.Predictor(), true}, dir)
	text := strings.Join(n.errors, "\n")
	for _, want := range []string{"unary::relu_2.pth: misaligned", "unary::neg_0.pth: crash", "panic: no neg today"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(n.errors) != 3+4 {
		t.Errorf("%d errors:\n%s", len(n.errors), text)
	}
	if log := strings.Join(n.logs, "\n"); !strings.Contains(log, "4 unsupported, the first unary::tanh_0.pth: ") || !strings.HasSuffix(log, "1 aligned, 3 misaligned, 4 unsupported, 4 crash") {
		t.Errorf("%s", log)
	}
	n = &noted{TB: t}
	conform.Run(n, partial{conform.Predictor(), false}, dir, conform.Functions("relu"), conform.Forward())
	if len(n.errors) > 0 {
		t.Errorf("%v", n.errors)
	}
	n = &noted{TB: t}
	conform.Run(n, partial{conform.Predictor(), false}, dir, conform.Functions("tanh"))
	if len(n.errors) != 1 || n.errors[0] != "conform: no case was judged: 4 unsupported" {
		t.Errorf("nothing judged: %v", n.errors)
	}
}

// TestExample runs the tests of the example's module.
func TestExample(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	cmd := exec.Command("go", "test", "-count=1", "-v", ".")
	cmd.Dir = filepath.Join("..", "examples", "conformkit")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "8 aligned, 4 unsupported") || !strings.Contains(string(out), "--- SKIP: TestConformance/tanh") {
		t.Errorf("%v\n%s", err, out)
	}
}
