//go:build unix

package worker

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// transforming is PyTorch where it has function transforms.
func transforming(t *testing.T, imports ...string) *Worker {
	t.Helper()
	w, err := onDevice(t, "cpu", imports...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.Info().Modes, "vmap") {
		t.Skip("needs a PyTorch with torch.func, such as 2.15")
	}
	return w
}

func inTransform(t *testing.T, w *Worker, mode string, b *builder) *backend.Outcome {
	t.Helper()
	in, err := w.In(mode)
	if err != nil {
		t.Fatal(err)
	}
	return captured(t, in, b.job())
}

func trained() *builder {
	b := (&builder{}).in("x", f32([]int{2, 3}, 1, -2, 3, 0.5, 2, -1), true).in("y", f32([]int{2, 2}, 1, 2, 3, 4), false).
		call("m", "torch.nn.Linear", int64(3), int64(2)).call("n", "torch.nn.Sequential", ref("m")).
		call("v", "Module.__call__", ref("n"), ref("x")).call("w", "Tensor.mul_", ref("y"), 2.0).
		call("z", "operator.mul", ref("v"), ref("y")).back("z", program.Fill{})
	b.p.Step = program.Step{LR: 0.5, Momentum: 0.9}
	return b
}

func cubed() *builder {
	b := (&builder{}).in("x", f32([]int{2}, 1, -2), true).call("y", "torch.square", ref("x")).
		call("z", "operator.mul", ref("y"), ref("x")).back("z", program.Fill{})
	b.p.Second = program.Fill{Dist: program.Integer, Lo: 1, Hi: 4, Key: 3}
	return b
}

// differing names the results that are not those of the calls, nearly.
func differing(want, got *backend.Outcome) []string {
	var names []string
	if got.Status != backend.OK || len(got.Slots) != len(want.Slots) || len(got.Values) != len(want.Values) {
		return []string{got.Message, "or the number of results"}
	}
	for i, s := range want.Slots {
		if !alike(s.Tensor, got.Slots[i].Tensor) {
			names = append(names, string(s.Part))
		}
	}
	for i, v := range want.Values {
		if !alike(v.Tensor, got.Values[i].Tensor) {
			names = append(names, fmt.Sprint("value ", i))
		}
	}
	return names
}

func alike(a, b *tensor.Tensor) bool {
	if a == nil || b == nil || !slices.Equal(a.Shape(), b.Shape()) {
		return a == b
	}
	for i := range a.Len() {
		if math.Abs(real(a.At(i))-real(b.At(i))) > 1e-5 {
			return false
		}
	}
	return true
}

// placed has a method that OneFlow's tensors have, which is the kit's.
func placed() *builder {
	return new(builder).in("x", f32([]int{2}, 1, -2), true).call("w", "torch.square", ref("x")).
		call("y", "Tensor.to_global", ref("w")).kw("placement", "cpu[0]").kw("sbp", "S(0)").back("y", program.Fill{})
}

// TestTransformsGiveWhatCallsGive: values, changes, states, gradients of both
// orders and the optimizer's step.
func TestTransformsGiveWhatCallsGive(t *testing.T) {
	w := transforming(t)
	for name, make := range map[string]func() *builder{"trained": trained, "cubed": cubed, "placed": placed} {
		want := runOK(t, w, make())
		for _, mode := range []string{"functional", "vmap", "export"} {
			if names := differing(want, inTransform(t, w, mode, make())); names != nil {
				t.Errorf("%s in %s: %v", name, mode, names)
			}
		}
	}
}

// TestWrongTransforms: a transform that computes otherwise is seen.
func TestWrongTransforms(t *testing.T) {
	w := transforming(t, "wrong_transforms")
	want := runOK(t, w, cubed())
	for mode, wrong := range map[string]string{"functional": "[grad grad2]", "vmap": "[grad grad2 value 0 value 1]"} {
		if names := fmt.Sprint(differing(want, inTransform(t, w, mode, cubed()))); names != wrong {
			t.Errorf("%s: %s differ, want %s", mode, names, wrong)
		}
	}
}

// TestTransformsLack demands a reason.
func TestTransformsLack(t *testing.T) {
	w := transforming(t)
	x := f32([]int{3}, 1, -2, 3)
	for _, c := range []struct {
		mode, reason string
		b            *builder
	}{
		{"vmap", "random operation", new(builder).in("x", x, false).call("y", "torch.bernoulli", ref("x")).kw("p", 0.5)},
		{"vmap", ".item()", new(builder).in("x", x, false).call("s", "torch.sum", ref("x")).call("v", "Tensor.item", ref("s"))},
		{"vmap", "detach views", new(builder).in("x", x, false).call("y", "torch.exp", ref("x")).call("z", "Tensor.detach_", ref("y"))}, // it has no rule, and falls back on views
		{"vmap", "no inputs to batch", new(builder).call("z", "torch.ones", int64(2))},
		{"functional", "doesn't have storage", new(builder).in("x", f32([]int{1, 1, 2}, -1, -2), true).in("t", tensor.Of(tensor.I64, []int{1, 1}, []int64{1}), false).
			call("y", "torch.nn.functional.ctc_loss", ref("x"), ref("t"), program.Tuple{int64(1)}, program.Tuple{int64(1)}).back("y", program.Fill{})},
		{"functional", "nothing is differentiated", new(builder).in("x", x, false).call("y", "torch.exp", ref("x"))},
	} {
		out := inTransform(t, w, c.mode, c.b)
		if out.Status != backend.Unsupported || !strings.Contains(out.Message, c.reason) {
			t.Errorf("%s: %s %s, want %s", c.mode, out.Status, out.Message, c.reason)
		}
	}
}

// TestResultsWithoutLanes: what vmap gives without a dimension for its lanes, as 2.15 does
// for the Q of a qr that has none, is told as such.
func TestResultsWithoutLanes(t *testing.T) {
	w := transforming(t)
	out := inTransform(t, w, "vmap", new(builder).in("x", f32([]int{1, 2}, 1, -2), false).call("y", "torch.linalg.qr", ref("x")).kw("mode", "r"))
	if out.Status == backend.OK && len(out.Values) > 0 {
		t.Skip("this version has lanes there")
	}
	if out.Status != backend.Raised || !strings.Contains(out.Message, "no dimension for the 3 lanes") {
		t.Errorf("%s %s", out.Status, out.Message)
	}
}

// TestCompiledTogether: cases of one request are compiled as one function, and
// each has the outcome that it has alone, though one cannot be compiled and two have
// one program.
func TestCompiledTogether(t *testing.T) {
	w := transforming(t, "compileonce")
	in, err := w.In("compile")
	if err != nil {
		t.Fatal(err)
	}
	within := new(builder).in("x", f32([]int{2}, 1, -2), true).call("y", "torch.exp", ref("x"))
	within.p.Calls[0].Scopes = []*program.Scope{{Target: "torch.no_grad"}}
	refused := new(builder).in("x", f32([]int{2}, 1, -2), false).call("y", "torch.reshape", ref("x"), int64(3))
	other := trained() // of the same program: other elements, other parameters
	other.inputs[0] = f32([]int{2, 3}, 4, 0.25, -1, 3, -2, 8)
	other.p.Seed = 7
	builders := []*builder{trained(), within, refused, other}
	var jobs []*backend.Job
	for _, b := range builders {
		jobs = append(jobs, b.job())
	}
	outs, err := backend.RunBatch(t.Context(), in, jobs)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(outs[0].Message, "ompiler") {
		t.Skip("needs a C++ compiler: ", outs[0].Message)
	}
	for _, i := range []int{0, 3} {
		if names := differing(runOK(t, w, builders[i]), outs[i]); names != nil {
			t.Errorf("case %d: %v", i, names)
		}
	}
	if outs[1].Status != backend.Unsupported || outs[2].Status != backend.Raised {
		t.Errorf("%+v\n%+v", outs[1], outs[2])
	}
}
