//go:build unix

package worker

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/program"
)

// captures are the modes of the worker that capture programs here.
func captures(t *testing.T) map[string]backend.Backend {
	t.Helper()
	w := torch(t)
	all := map[string]backend.Backend{}
	for _, mode := range []string{"jit.trace", "jit.script", "fx"} {
		b, err := w.In(mode)
		if err != nil {
			t.Fatal(err)
		}
		if b.Info().Own() != mode || w.Info().Own() != backend.Eager {
			t.Errorf("mode %s: %s, the worker is in %s", mode, b.Info().Own(), w.Info().Own())
		}
		all[mode] = b
	}
	return all
}

func captured(t *testing.T, b backend.Backend, j *backend.Job) *backend.Outcome {
	t.Helper()
	out, err := b.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var ones = program.Fill{Dist: program.Uniform, Lo: 0.5, Hi: 1, Key: 3}

// TestCapturesGiveWhatCallsGive: values, changes, state, gradients of the first
// and second order and the optimizer's step.
func TestCapturesGiveWhatCallsGive(t *testing.T) {
	w := torch(t)
	x := f32([]int{2, 3}, 1, -2, 3, 0.5, 2, -1)
	programs := map[string]func() *builder{
		"module and step": func() *builder {
			b := (&builder{}).in("x", x, true).call("m", "torch.nn.Linear", int64(3), int64(2)).call("n", "torch.nn.BatchNorm1d", int64(2)).
				call("y", "Module.__call__", ref("m"), ref("x")).call("z", "Module.__call__", ref("n"), ref("y")).
				call("s", "torch.max", ref("z"), int64(0)).back("z", ones)
			b.p.Step = program.Step{LR: 0.5, Momentum: 0.9}
			return b
		},
		"second order": func() *builder {
			b := (&builder{}).in("x", x, true).call("y", "torch.square", ref("x")).call("z", "operator.mul", ref("y"), ref("x")).back("z", program.Fill{})
			b.p.Second = program.Fill{Dist: program.Integer, Lo: 1, Hi: 4, Key: 3} // small numbers: sums are exact in any order
			return b
		},
		"in place": func() *builder {
			return (&builder{}).in("x", x, false).call("y", "torch.neg", ref("x")).call("v", "Tensor.t", ref("y")).
				call("w", "Tensor.mul_", ref("v"), 2.0).call("u", "Tensor.add_", ref("x"), 1.0).call("e", "torch.exp", ref("y"))
		},
	}
	for name, make := range programs {
		want := runOK(t, w, make())
		for mode, b := range captures(t) {
			got := captured(t, b, make().job())
			got.Elapsed = want.Elapsed
			if !backend.Same(got, want) {
				t.Errorf("%s in %s: %s %s\n%+v\nwant\n%+v", name, mode, got.Status, got.Message, got, want)
			}
		}
	}
	if out := runOK(t, w, programs["module and step"]()); len(out.Of(backend.PartStep, "m")) != 2 || out.Of(backend.PartStep, "m")[0].Tensor.SameBits(out.Of(backend.PartState, "m")[0].Tensor) {
		t.Errorf("the step left the parameters as they were: %+v", out.Slots)
	}
}

// TestCapturesShowPyTorchsOwnFaults pins faults that are known (package known):
// that they show proves that the captured graph is what runs, and that it runs
// optimised.
func TestCapturesShowPyTorchsOwnFaults(t *testing.T) {
	zeros := func() *builder {
		return (&builder{}).in("x", f32([]int{1}, 3), false).call("c", "operator.gt", ref("x"), 0.5).
			call("y", "torch.where", ref("c"), 0.0, ref("x")).call("z", "torch.where", ref("c"), negativeZero, ref("x"))
	}
	augmented := func() *builder {
		return (&builder{}).in("x", f32([]int{1}, 3), false).in("y", f32([]int{1}, 4), false).call("z", "operator.iadd", ref("x"), ref("y"))
	}
	for mode, make := range map[string]func() *builder{"jit.trace": zeros, "jit.script": zeros, "fx": augmented} {
		want := runOK(t, torch(t), make())
		got := captured(t, captures(t)[mode], make().job())
		if got.Status != backend.OK || backend.Same(got, want) {
			t.Errorf("%s: %s %s: as call by call; is the fault mended, or is nothing captured?", mode, got.Status, got.Message)
		}
	}
}

var negativeZero = math.Copysign(0, -1)

// TestTorchScriptsOwn: x[...] is written in TorchScript's language, which has no
// lone ellipsis; a method that gives a tuple there, and a tensor elsewhere, does so.
func TestTorchScriptsOwn(t *testing.T) {
	scripted := captures(t)["jit.script"]
	x := f32([]int{2}, 1, -2)
	for _, index := range []any{program.Ellipsis{}, program.Tuple{program.Ellipsis{}}} {
		out := captured(t, scripted, (&builder{}).in("x", x, false).call("c", "torch.clone", ref("x")).call("p", "operator.getitem", ref("c"), index).
			call("y", "Tensor.abs_", ref("c")).call("z", "torch.neg", ref("p")).job())
		if out.Status != backend.OK || numbers(last(out)) != "-1 -2" {
			t.Errorf("%v: %+v", index, out)
		}
	}
	out := captured(t, scripted, (&builder{}).in("x", x, false).call("y", "Tensor.__getitem__", ref("x"), program.Slice{Start: int64(1)}).job())
	if out.Status != backend.OK || numbers(last(out)) != "-2" {
		t.Errorf("__getitem__: %+v", out)
	}
	out = captured(t, scripted, (&builder{}).in("x", x, false).call("y", "Tensor.unique_consecutive", ref("x")).job())
	if out.Status != backend.OK || len(out.Values[0].Tuple) != 3 || numbers(out.Values[0].Tuple[0].Tensor) != "1 -2" {
		t.Errorf("unique_consecutive: %+v", out)
	}
}

// TestNotCaptured demands a reason.
func TestNotCaptured(t *testing.T) {
	x := f32([]int{3}, 1, -2, 3)
	item := func() *builder {
		return (&builder{}).in("x", x, false).call("s", "torch.sum", ref("x")).call("v", "Tensor.item", ref("s")).call("y", "operator.add", ref("x"), ref("v"))
	}
	within := func() *builder {
		b := (&builder{}).in("x", x, true).call("y", "torch.exp", ref("x"))
		b.p.Calls[0].Scopes = []*program.Scope{{Target: "torch.no_grad"}}
		return b
	}
	leaf := func() *builder {
		return (&builder{}).in("x", x, false).call("p", "torch.nn.Parameter", ref("x"))
	}
	late := func() *builder {
		return (&builder{}).in("x", x, false).call("m", "torch.nn.ReLU").call("y", "Module.__call__", ref("m"), ref("x")).call("e", "Module.eval", ref("m"))
	}
	unpacked := func() *builder {
		return (&builder{}).in("x", x, false).call("y", "operator.setitem", ref("x"), int64(0), 1.0).call("z", "torch.exp", ref("x"))
	}
	for _, c := range []struct {
		mode, reason string
		make         func() *builder
	}{
		{"jit.trace", "Converting a tensor to a Python number might cause the trace to be incorrect", item},
		{"jit.trace", "does not record the with statement of torch.no_grad", within},
		{"fx", "does not record the with statement of torch.no_grad", within},
		{"jit.script", "no place for torch.nn.Parameter", leaf},
		{"jit.trace", "Module.eval comes after a call of the module", late},
		{"fx", "does not support item assignment", unpacked},
	} {
		out := captured(t, captures(t)[c.mode], c.make().job())
		if out.Status != backend.Unsupported || !strings.Contains(out.Message, c.reason) {
			t.Errorf("%s: %s %s, want %s", c.mode, out.Status, out.Message, c.reason)
		}
	}
}

// TestRefusalsInGraphs: what is refused call by call is refused with the same class.
func TestRefusalsInGraphs(t *testing.T) {
	bad := func() *builder {
		return (&builder{}).in("x", f32([]int{2}, 1, 2), false).in("y", f32([]int{3}, 1, 2, 3), false).call("z", "operator.add", ref("x"), ref("y"))
	}
	want := run(t, torch(t), bad())
	for mode, b := range captures(t) {
		if got := captured(t, b, bad().job()); got.Status != want.Status || got.Class != want.Class || got.Call != want.Call {
			t.Errorf("%s: %s %s at %d, want %s %s at %d", mode, got.Status, got.Class, got.Call, want.Status, want.Class, want.Call)
		}
	}
}

func TestUnknownMode(t *testing.T) {
	w := torch(t)
	var e *backend.ModeError
	if _, err := w.In("jit.magic"); !errors.As(err, &e) || !slices.Contains(e.Modes, "jit.trace") {
		t.Errorf("%v", err)
	}
}

// TestCompiledTogetherForTooLong: cases that are compiled as one have longer than one
// alone; where that is not enough, halves of them are compiled, not each alone, which
// would take as long again.
func TestCompiledTogetherForTooLong(t *testing.T) {
	hello := `plumb-worker 1 {"name":"fake","version":"0","devices":["cpu"],"modes":["eager","compile"],"features":{"together":"compile"}}`
	w := fake(t, Config{Mode: "compile", CaseTimeout: 500 * time.Millisecond, Env: []string{"PLUMB_FAKE_WORKER=" + hello}})
	var jobs []*backend.Job
	for i := range 8 {
		jobs = append(jobs, fakeJob(strconv.Itoa(i)))
	}
	outs, err := w.RunBatch(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, out := range outs {
		if out.Status != backend.OK || out.Values[0].Plain != int64(i) {
			t.Errorf("case %d: %+v", i, out)
		}
	}
	if out, err := w.Run(t.Context(), jobs[0]); err != nil || out.Status != backend.TimedOut {
		t.Errorf("one alone has the time of several: %+v, %v", out, err)
	}
}
