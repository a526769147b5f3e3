package onekernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// TestEachPartOfAResultHasItsCotangent: of a tuple, those that require a gradient.
func TestEachPartOfAResultHasItsCotangent(t *testing.T) {
	leaf := func(grad bool) backend.Value {
		return backend.Value{Tensor: tensor.New(tensor.F32, 2), RequiresGrad: grad}
	}
	v := backend.Value{Tuple: []backend.Value{leaf(true), leaf(false), {Tuple: []backend.Value{leaf(true)}}}}
	m := makerOf(t, "x: float[N]", tensor.F32)
	if m.parts = paths(v); !slices.EqualFunc(m.parts, [][]int{{0}, {2, 0}}, slices.Equal[[]int]) {
		t.Fatalf("parts %v", m.parts)
	}
	m.promises.GradGrad = true
	c := cases(t, m, 1)[0]
	text := c.program.String()
	for _, line := range []string{"part0_0_ = result_[0]\n", "part1_1_ = part1_0_[0]\n", "part0_0_.backward(", "part1_1_.backward("} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if b := c.program.Backward; len(b) != 2 || b[0].Cotangent.Key == b[1].Cotangent.Key || c.program.Second.Dist == "" {
		t.Errorf("%+v, second %+v", b, c.program.Second)
	}
	(&Session{}).withoutGradients(c)
	if p := c.program; len(p.Calls) != 1 || p.Backward != nil || p.Second.Dist != "" || c.Grad {
		t.Errorf("without gradients:\n%s", p)
	}
}

// TestOneResultAlone: one of several results has a cotangent in some cases, each in turn.
func TestOneResultAlone(t *testing.T) {
	m := makerOf(t, "x: float[N]", tensor.F32)
	m.parts = [][]int{{0}, {1}}
	asked := map[string]int{}
	for _, c := range cases(t, m, 3*turnsOfLeaves) {
		if c.Grad {
			names := ""
			for _, b := range c.program.Backward {
				names += fmt.Sprint(b.Value, " ")
			}
			asked[names]++
		}
	}
	if asked["part0_0_ "] != 1 || asked["part1_0_ "] != 1 || len(asked) != 3 {
		t.Errorf("%v", asked)
	}
	m.promises.GradGrad = true
	for _, c := range cases(t, m, 3*turnsOfLeaves) {
		if c.Grad && len(c.program.Backward) != 2 {
			t.Errorf("of the second order: %v", c.program.Backward)
		}
	}
}

// TestGradientsOfZerosOrNone: none is as good as zeros, on either side, and no other is.
func TestGradientsOfZerosOrNone(t *testing.T) {
	at := verdict.Where{Part: backend.PartGrad, Name: "w"}
	of := func(v *tensor.Tensor) *backend.Outcome {
		o := &backend.Outcome{}
		o.Add(backend.Place{Part: backend.PartGrad, Owner: "w"}, v)
		return o
	}
	for _, c := range []struct {
		want, got *tensor.Tensor
		fine      bool
	}{{vector(0, 0), nil, true}, {nil, vector(0, 0), true}, {vector(0, 1), nil, false}, {nil, vector(0, 1), false}} {
		r := &result{ref: of(c.want), kernel: of(c.got), verdict: &verdict.Verdict{Differences: []verdict.Difference{{Where: at}}}}
		if r.unused() != c.fine {
			t.Errorf("%v for %v: fine is %v", c.got, c.want, r.unused())
		}
	}
}

// TestSecondGradientsThatAreNowhere: one that the reference has not is not asked for,
// and none is as good as zeros, but not as others.
func TestSecondGradientsThatAreNowhere(t *testing.T) {
	of := func(v float64) *tensor.Tensor {
		x := tensor.New(tensor.F32, 1)
		x.Set(0, complex(v, 0))
		return x
	}
	for _, c := range []struct{ want, got, even *tensor.Tensor }{
		{nil, of(0), nil}, {nil, of(3), nil}, {of(2), nil, nil}, {of(2), of(0), of(0)}, {of(0), nil, of(0)},
	} {
		r := &result{ref: &backend.Outcome{}, kernel: &backend.Outcome{}}
		at := backend.Place{Part: backend.PartSecondGrad, Owner: "x"}
		r.ref.Add(at, c.want)
		r.kernel.Add(at, c.got)
		r.evenSeconds()
		got := r.kernel.Slots[0].Tensor
		if (got == nil) != (c.even == nil) || got != nil && got.At(0) != c.even.At(0) {
			t.Errorf("want %v, got %v: %v", c.want, c.got, got)
		}
	}
}

// TestForwardOnly: gradients that end in something that is not PyTorch's are not held
// against a kernel which states none.
func TestForwardOnly(t *testing.T) {
	g := tensor.New(tensor.F32, 1)
	g.Set(0, 1)
	in := backend.Place{Part: backend.PartGrad, Owner: "x"}
	outcome := func(requires bool, grad *tensor.Tensor) *backend.Outcome {
		o := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.F32, 1), RequiresGrad: requires}}}
		o.Add(in, grad)
		return o
	}
	ops := []string{"aten::mm"}
	for _, of := range []struct {
		name     string
		requires bool
		grad     *tensor.Tensor
		seen     observed
		forward  bool
	}{
		{"launches between PyTorch's operators", true, nil, observed{Operators: ops, Foreign: true}, true},
		{"a formula without a term", true, nil, observed{Operators: ops, Foreign: true, Formulas: true}, false},
		{"PyTorch's operators, detached inside", true, nil, observed{Operators: ops}, false},
		{"all gradients", true, g, observed{Operators: ops, Foreign: true}, false},
		{"a detached result of an extension", false, nil, observed{Operators: ops, Foreign: true}, true},
		{"a detached result of PyTorch's operators", false, nil, observed{Operators: ops}, false},
		{"a detached result of none of them", false, nil, observed{}, true},
	} {
		s := judged(t, 1)
		c := s.outcomes[0].Case
		c.Grad = true
		r := &result{Case: c, kernel: outcome(of.requires, of.grad), ref: outcome(true, g), seen: of.seen}
		again, _ := s.gradients(t.Context(), c, r)
		if s.detached != of.forward || c.Grad == of.forward || again != (of.forward && of.requires) {
			t.Errorf("%s: without gradients: %v, run again: %v", of.name, s.detached, again)
		}
	}
}

// TestCotangentsThatAreNotContiguous: there are some among the first ten calls, but for a
// kernel that promises contiguous tensors alone.
func TestCotangentsThatAreNotContiguous(t *testing.T) {
	for _, promised := range [][]Layout{nil, {Contiguous}} {
		m := makerOf(t, "x: float[N]", tensor.F32)
		m.promises.Layouts = promised
		seen := map[Layout]bool{}
		for _, c := range cases(t, m, 10) {
			seen[c.Cotangents] = true
			if equal := c.Grad && c.program.Backward[0].Cotangent.Dist == ""; equal != (c.Cotangents == Expanded) {
				t.Errorf("case %d: a cotangent of equal elements %v, but it is %q", c.Index, equal, c.Cotangents)
			}
		}
		if seen[Expanded] != (promised == nil) || seen[Transposed] != (promised == nil) {
			t.Errorf("promised %v: %v", promised, seen)
		}
	}
}

// TestReferencesWithoutGradients: what the reference refuses to differentiate is judged forward.
func TestReferencesWithoutGradients(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "k.py")
	text := `import torch
def ref(x, m, v):
    return torch.nn.functional.batch_norm(x, m, v)
def kernel(x, m, v):
    return (x - m) / torch.sqrt(v + 1e-5)
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{Kernel: file + "::kernel", Against: file + "::ref", Inputs: "x: f32[B,C], m: f32[C], v: f32[C] > 0", Cases: 2, Seed: 1}.Filled()
	if r := report(t, o); r.Verdict != Right || r.Tried.Cases < 2 || r.Tried.Gradients > 0 {
		t.Errorf("%s of %+v: %v", r.Verdict, r.Tried, r.Reasons)
	}
}

// TestWhatHasNoGradientsIsNotRunAgainForIt: its results stand, as a call without gradients
// gives them.
func TestWhatHasNoGradientsIsNotRunAgainForIt(t *testing.T) {
	m := makerOf(t, "x: float[N]", tensor.F32)
	c := cases(t, m, 1)[0]
	if !c.Grad {
		t.Fatal("no gradients are asked for")
	}
	outcome := func(grad bool) *backend.Outcome {
		o := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.F32, 2), RequiresGrad: grad}}}
		o.Add(backend.Place{Part: backend.PartChange, Owner: "x"}, tensor.New(tensor.F32, 2))
		o.Add(backend.Place{Part: backend.PartGrad, Owner: "x"}, nil)
		return o
	}
	s := &Session{cfg: &Config{}}
	r := &result{Case: c, kernel: outcome(false), ref: outcome(true), seen: observed{Launches: 1, Foreign: true}}
	again, err := s.gradients(t.Context(), c, r)
	if again || err != nil || c.Grad || !s.detached || len(c.program.Backward) > 0 {
		t.Errorf("run again: %v, %v; gradients are still asked for: %v", again, err, c.Grad)
	}
	if len(r.ref.Slots) != 1 || len(r.kernel.Slots) != 1 || r.ref.Values[0].RequiresGrad {
		t.Errorf("%+v is held to %+v", r.kernel, r.ref)
	}
}

// TestSomeArgumentsAreNoLeaves: in some calls one argument has no gradient, in others one alone.
func TestSomeArgumentsAreNoLeaves(t *testing.T) {
	got := map[string]bool{}
	for _, c := range cases(t, makerOf(t, "x: f32[N,C], g: f32[N,C], s: f32[C]", tensor.F32), 48) {
		if !c.Grad {
			continue
		}
		var leaves string
		for _, in := range c.program.Inputs {
			if in.RequiresGrad {
				leaves += in.Name
			}
		}
		got[leaves] = true
	}
	for _, want := range []string{"xgs", "gs", "xs", "xg", "x"} {
		if !got[want] {
			t.Errorf("no call in which the leaves are %q: %v", want, got)
		}
	}
}
