package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// scoped adds a with statement to the last call.
func (b *builder) scoped(target string) *builder {
	b.p.Calls[len(b.p.Calls)-1].Scopes = []*program.Scope{{Target: target}}
	return b
}

// TestAskedGradients: gradients for which a program itself asks are PyTorch's on a
// framework without a tape, and so are leaves that calls make and change; also where
// the program is one function.
func TestAskedGradients(t *testing.T) {
	own, w := torch(t), adapted(t, "torchown")
	x := func() *builder { return new(builder).in("x", f32([]int{2, 3}, 1, -2, 3, 0.5, 2, -1), true) }
	squares := func() *builder {
		return x().call("s", "torch.mul", ref("x"), ref("x")).call("h", "torch.tanh", ref("s")).call("y", "torch.sum", ref("h"))
	}
	step := func(b *builder, n int) *builder {
		name := func(s string) string { return fmt.Sprint(s, n) }
		return b.call(name("p"), "torch.mul", ref("x"), ref("w")).call(name("e"), "torch.exp", ref(name("p"))).call(name("l"), "torch.mean", ref(name("e"))).
			call(name("b"), "Tensor.backward", ref(name("l"))).call(name("g"), "getattr", ref("w"), "grad").
			call(name("d"), "torch.mul", ref(name("g")), 0.1).call(name("u"), "Tensor.sub_", ref("w"), ref(name("d"))).scoped("torch.no_grad").
			call(name("z"), "Tensor.mul_", ref(name("g")), 0.0)
	}
	for name, b := range map[string]*builder{
		"backward adds to what there is": squares().call("a", "Tensor.backward", ref("y")).kw("retain_graph", true).call("b", "torch.autograd.backward", ref("y"), ref("y")).kw("retain_graph", true).
			call("g", "getattr", ref("x"), "grad").back("y", program.Fill{}),
		"of a leaf and of what lies between": squares().call("g", "torch.autograd.grad", ref("y"), program.List{ref("x"), ref("s"), ref("x")}).kw("retain_graph", true).
			call("i", "operator.getitem", ref("g"), int64(1)).back("y", program.Fill{}),
		"of second order": squares().call("t", "torch.mul", ref("s"), ref("x")).call("q", "torch.sum", ref("t")).call("g", "torch.autograd.grad", ref("q"), ref("x")).kw("create_graph", true).
			call("i", "operator.getitem", ref("g"), int64(0)).call("r", "torch.mul", ref("i"), ref("i")).back("r", program.Fill{}),
		"of second order, of what lies between": squares().call("g", "torch.autograd.grad", ref("y"), ref("s")).kw("create_graph", true).call("i", "operator.getitem", ref("g"), int64(0)).
			call("r", "torch.sum", ref("i")).call("k", "torch.autograd.grad", ref("r"), ref("s")),
		"of a cotangent": squares().call("g", "torch.autograd.grad", ref("h"), ref("x"), ref("c")).kw("create_graph", true).call("i", "operator.getitem", ref("g"), int64(0)).
			call("r", "torch.sum", ref("i")).call("k", "torch.autograd.grad", ref("r"), program.List{ref("c"), ref("x")}),
		"what is not used": squares().in("v", f32([]int{1}, 1), true).call("g", "torch.autograd.grad", ref("y"), program.List{ref("v"), ref("x")}).kw("allow_unused", true),
		"of leaves that calls make": x().call("w", "torch.zeros", program.Tuple{int64(3)}).kw("requires_grad", true).call("c", "torch.nn.Parameter", ref("k")).
			call("p", "torch.mul", ref("x"), ref("w")).call("q", "torch.add", ref("p"), ref("c")).call("r", "torch.exp", ref("q")).back("r", program.Fill{}),
		"of steps that change a leaf": step(step(x().in("i", f32([]int{3}, 1, 2, -1), false).call("w", "Tensor.requires_grad_", ref("i")), 1), 2).
			call("f", "getattr", ref("w"), "is_leaf").call("n", "setattr", ref("w"), "grad", nil).call("m", "getattr", ref("w"), "grad"),
		"by a batch of cotangents": squares().call("j", "torch.autograd.grad", ref("h"), program.List{ref("x"), ref("s")}, ref("b")).kw("is_grads_batched", true).kw("create_graph", true).
			call("i", "operator.getitem", ref("j"), int64(0)).call("r", "torch.mul", ref("i"), ref("i")).back("r", program.Fill{}),
		"that others than leaves keep": squares().call("n", "Tensor.retain_grad", ref("s")).call("o", "Tensor.retain_grad", ref("y")).call("a", "Tensor.backward", ref("y")).kw("retain_graph", true).
			call("g", "getattr", ref("s"), "grad").call("e", "getattr", ref("h"), "grad").call("z", "Tensor.backward", ref("y")).call("k", "getattr", ref("s"), "grad").call("l", "getattr", ref("y"), "grad"),
		"once more, through calls that keep nothing": x().call("p", "torch.add", ref("x"), 1.0).call("q", "torch.reshape", ref("p"), program.Tuple{int64(6)}).call("y", "torch.sum", ref("q")).
			call("a", "Tensor.backward", ref("y")).call("b", "Tensor.backward", ref("y")).call("g", "getattr", ref("x"), "grad").back("y", program.Fill{}),
		"once more, to another leaf": x().in("v", f32([]int{2, 3}, 1, 2, -1, 0.5, 1, 1), true).call("e", "torch.exp", ref("x")).call("n", "torch.tanh", ref("v")).call("z", "torch.add", ref("e"), ref("n")).
			call("y", "torch.sum", ref("z")).call("g", "torch.autograd.grad", ref("y"), ref("x")).call("h", "torch.autograd.grad", ref("y"), ref("v")),
		"refused: once more":                   squares().call("a", "Tensor.backward", ref("y")).call("b", "Tensor.backward", ref("y")),
		"refused: once more, from another end": squares().call("a", "Tensor.backward", ref("y")).call("w", "torch.sum", ref("s")).call("g", "torch.autograd.grad", ref("w"), ref("x")),
		"refused: kept of what requires none":  new(builder).in("x", f32([]int{2}, 1, 2), false).call("y", "torch.sum", ref("x")).call("b", "Tensor.retain_grad", ref("y")),
		"refused: nothing requires one":        new(builder).in("x", f32([]int{2}, 1, 2), false).call("y", "torch.sum", ref("x")).call("b", "Tensor.backward", ref("y")),
		"refused: no scalar":                   x().call("y", "torch.exp", ref("x")).call("b", "Tensor.backward", ref("y")),
		"refused: not used":                    squares().in("v", f32([]int{1}, 1), true).call("g", "torch.autograd.grad", ref("y"), ref("v")),
	} {
		if strings.Contains(name, "calls make") {
			b.in("k", f32([]int{3}, 0.5, 0.25, 1), false)
		}
		if strings.HasSuffix(name, "cotangent") {
			b.in("c", f32([]int{2, 3}, 1, 2, -1, 0.5, 1, 1), true)
		}
		if strings.Contains(name, "batch") {
			b.in("b", f32([]int{2, 2, 3}, 1, 2, -1, 0.5, 1, 1, 0, 3, 1, -2, 1, 4), true)
		}
		asTorch(t, name, own, w, b)
	}
}

// TestChangedModules: what programs do to the parameters and buffers of modules, training
// loops above all, is what PyTorch does, on a framework without a tape.
func TestChangedModules(t *testing.T) {
	own, w := torch(t), adapted(t, "torchown")
	linear := func() *builder {
		return new(builder).in("x", f32([]int{2, 3}, 1, -2, 3, 0.5, 2, -1), false).in("c", f32([]int{2, 3}, 1, 2, -1, 0.5, 1, 1), false).
			call("m", "torch.nn.Linear", int64(3), int64(2))
	}
	loss := func(b *builder, n int) *builder {
		name := func(s string) string { return fmt.Sprint(s, n) }
		return b.call(name("y"), "Module.__call__", ref("m"), ref("x")).call(name("s"), "torch.mul", ref(name("y")), ref(name("y"))).call(name("l"), "torch.mean", ref(name("s")))
	}
	step := func(b *builder, n int) *builder {
		name := func(s string) string { return fmt.Sprint(s, n) }
		return loss(b, n).call(name("b"), "Tensor.backward", ref(name("l"))).call(name("w"), "getattr", ref("m"), "weight").call(name("g"), "getattr", ref(name("w")), "grad").
			call(name("d"), "torch.mul", ref(name("g")), 0.1).call(name("u"), "Tensor.sub_", ref(name("w")), ref(name("d"))).scoped("torch.no_grad").
			call(name("n"), "setattr", ref(name("w")), "grad", nil)
	}
	weight := func() *builder { return linear().call("w", "getattr", ref("m"), "weight") }
	for name, b := range map[string]*builder{
		"trained":             step(step(step(linear(), 1), 2), 3).call("w", "getattr", ref("m"), "weight"),
		"trained, then asked": loss(step(linear(), 1), 2).back("l2", program.Fill{}),
		"in a container":      loss(step(linear(), 1).call("q", "torch.nn.Sequential", ref("m")).call("z", "Module.__call__", ref("q"), ref("x")), 2).back("z", program.Fill{}),
		"in one made before":  step(linear().call("q", "torch.nn.Sequential", ref("m")), 1).call("z", "Module.__call__", ref("q"), ref("x")).back("z", program.Fill{}),
		"given another":       loss(linear().call("p", "torch.nn.Parameter", ref("c")).call("n", "setattr", ref("m"), "weight", ref("p")), 1).back("l1", program.Fill{}),
		"tied":                loss(weight().call("k", "torch.nn.Linear", int64(3), int64(2)).call("n", "setattr", ref("k"), "weight", ref("w")).call("z", "Module.__call__", ref("k"), ref("x")), 1).call("a", "torch.add", ref("z"), ref("l1")).back("a", program.Fill{}),
		"data written to":     loss(weight().call("d", "getattr", ref("w"), "data").call("f", "Tensor.mul_", ref("d"), 0.5), 1).back("l1", program.Fill{}),
		"other data":          loss(weight().call("h", "torch.mul", ref("c"), 2.0).call("n", "setattr", ref("w"), "data", ref("h")), 1).call("v", "getattr", ref("m"), "weight").back("l1", program.Fill{}),
		"a row written to":    loss(weight().call("r", "operator.getitem", ref("w"), int64(1)).scoped("torch.no_grad").call("f", "Tensor.mul_", ref("r"), 0.25).scoped("torch.no_grad"), 1).call("v", "getattr", ref("m"), "weight").back("l1", program.Fill{}),
		"frozen":              loss(weight().call("f", "Tensor.requires_grad_", ref("w"), false), 1).call("t", "getattr", ref("w"), "requires_grad").back("l1", program.Fill{}),
		"frozen and thawed":   loss(weight().call("f", "Tensor.requires_grad_", ref("w"), false).call("g", "Tensor.requires_grad_", ref("w"), true), 1).back("l1", program.Fill{}),
		"twice backward":      step(loss(linear(), 7).call("b7", "Tensor.backward", ref("l7")), 1),
		"a buffer written to": linear().call("k", "torch.nn.BatchNorm1d", int64(3)).call("r", "getattr", ref("k"), "running_mean").call("f", "Tensor.add_", ref("r"), 0.5).call("e", "Module.eval", ref("k")).call("z", "Module.__call__", ref("k"), ref("x")).back("z", program.Fill{}),
		"of what is detached": linear().call("w", "getattr", ref("m"), "weight").call("d", "Tensor.detach", ref("w")).call("p", "torch.nn.Parameter", ref("d")).
			call("y", "Module.__call__", ref("m"), ref("x")).call("z", "torch.nn.functional.linear", ref("x"), ref("p")).call("u", "torch.add", ref("z"), ref("y")).back("u", program.Fill{}),
		"moved": linear().call("k", "torch.nn.Linear", int64(3), int64(2)).call("d", "Module.to", ref("k"), tensor.F64).call("e", "Module.to", ref("d"), "cpu").
			call("v", "getattr", ref("k"), "bias").call("x2", "Tensor.double", ref("x")).call("z", "Module.__call__", ref("e"), ref("x2")).back("z", program.Fill{}),
		"without a bias":        linear().call("c", "torch.nn.LSTMCell", int64(3), int64(2), false).call("n", "getattr", ref("c"), "bias_ih"),
		"takes anything":        linear().call("i", "torch.nn.Identity", int64(54)).kw("unused", 0.1).call("n", "Module.__call__", ref("i"), ref("x")),
		"of another dtype":      linear().call("k", "torch.nn.Linear", int64(3), int64(2)).call("w", "getattr", ref("k"), "weight").call("q", "torch.nn.Sequential", ref("k")).call("d", "Module.double", ref("q")).call("v", "getattr", ref("k"), "bias").call("x2", "Tensor.double", ref("x")).call("z", "Module.__call__", ref("d"), ref("x2")).back("z", program.Fill{}),
		"a turned view":         linear().call("t", "Tensor.transpose", ref("c"), int64(0), int64(1)).call("r", "operator.getitem", ref("t"), int64(2)).call("f", "Tensor.mul_", ref("r"), 3.0).call("a", "torch.exp", ref("c")),
		"a row assigned":        linear().call("k", "torch.nn.Linear", int64(3), int64(2)).kw("bias", false).call("w", "getattr", ref("k"), "weight").call("f", "operator.setitem", ref("w"), int64(0), 0.0).scoped("torch.no_grad").call("z", "Module.__call__", ref("k"), ref("x")).back("z", program.Fill{}),
		"a part":                linear().call("t", "torch.chunk", ref("c"), int64(3), int64(1)).call("r", "operator.getitem", ref("t"), int64(1)).call("f", "Tensor.mul_", ref("r"), 3.0).call("a", "torch.exp", ref("c")),
		"a view with gradients": linear().call("e", "torch.mul", ref("d"), 2.0).call("t", "Tensor.transpose", ref("e"), int64(0), int64(1)).call("f", "Tensor.mul_", ref("t"), 3.0).call("a", "torch.tanh", ref("e")).back("a", program.Fill{}),
		"a buffer before calls": linear().call("k", "torch.nn.BatchNorm1d", int64(3)).call("r", "getattr", ref("k"), "running_mean").call("z", "Module.__call__", ref("k"), ref("x")).call("q", "torch.mul", ref("r"), 2.0),
	} {
		if strings.HasSuffix(name, "gradients") {
			b.in("d", f32([]int{2, 3}, 1, 2, -1, 0.5, 1, 1), true)
		}
		asTorch(t, name, own, w, b)
	}
}

// asTorch runs a program on a framework without a tape, call by call and as one function,
// and compares all with PyTorch's.
func asTorch(t *testing.T, name string, own, w *Worker, b *builder) {
	t.Helper()
	want := run(t, own, b)
	job := b.job()
	job.State = want.Initial
	for _, mode := range []string{"", "traced"} {
		of, err := w.In(mode)
		if err != nil {
			t.Fatal(err)
		}
		got, err := of.Run(t.Context(), job)
		if err != nil || got.Status != want.Status || got.Class != want.Class {
			t.Fatalf("%s, %q: %v %s %s %s, want %s %s", name, mode, err, got.Status, got.Class, got.Message, want.Status, want.Message)
		}
		if want.Status != backend.OK {
			continue
		}
		for i, v := range want.Values {
			nearlyValue(t, got.Values[i], v)
		}
		for _, s := range want.Slots {
			j := slices.IndexFunc(got.Slots, func(g backend.Slot) bool { return g.Place == s.Place })
			if s.Part == backend.PartChange {
				continue
			}
			if j < 0 || (got.Slots[j].Tensor == nil) != (s.Tensor == nil) {
				t.Fatalf("%s, %q has no %+v", name, mode, s.Place)
			}
			if s.Tensor != nil {
				nearly(t, fmt.Sprint(name, mode, s.Place), got.Slots[j].Tensor.Contiguous(), s.Tensor.Contiguous())
			}
		}
	}
}

// TestAskedTwice: PyTorch frees what a gradient came by, and whether it needs that again
// depends on what its kernels save, which is not known of every one.
func TestAskedTwice(t *testing.T) {
	w := adapted(t, "torchown")
	b := new(builder).in("x", f32([]int{2}, 1, 2), true).call("e", "torch.clamp", ref("x"), 1.5, 3.0).call("y", "torch.sum", ref("e")).
		call("a", "Tensor.backward", ref("y")).call("b", "Tensor.backward", ref("y"))
	if got := run(t, w, b); got.Status != backend.Unsupported || !strings.Contains(got.Message, "another gradient") {
		t.Errorf("%s: %s", got.Status, got.Message)
	}
}

// TestChangedDTypes: comparisons and sums of integers are written in the dtype of
// the tensor that they change, which a float that is written to integers is not.
func TestChangedDTypes(t *testing.T) {
	own, w := torch(t), adapted(t, "torchown")
	whole := tensor.New(tensor.I8, 3)
	for i, v := range []complex128{100, 27, 5} {
		whole.Set(i, v)
	}
	x := func(requires bool) *builder {
		return new(builder).in("x", f32([]int{2, 2}, 1, -2, 3, 0.5), requires)
	}
	for name, b := range map[string]*builder{
		"compared":    x(false).call("v", "operator.getitem", ref("x"), int64(1)).call("y", "Tensor.ge_", ref("x"), 1.0).call("z", "torch.exp", ref("v")),
		"through":     x(true).call("h", "torch.mul", ref("x"), 2.0).call("y", "Tensor.ge_", ref("h"), 1.0).call("z", "torch.mul", ref("y"), ref("x")).back("z", program.Fill{}),
		"of integers": new(builder).in("x", whole, false).call("y", "Tensor.cumsum_", ref("x"), int64(0)).call("z", "torch.mul", ref("x"), int64(2)),
	} {
		asTorch(t, name, own, w, b)
	}
	b := new(builder).in("x", whole, false).call("y", "Tensor.mul_", ref("x"), 0.5)
	if out := run(t, w, b); out.Status != backend.Unsupported || !strings.Contains(out.Message, "shape or dtype") {
		t.Errorf("a float in integers: %+v", out)
	}
}
