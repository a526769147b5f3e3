package interp

import (
	"context"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// text parses a program without its header.
func text(t *testing.T, lines string) *program.Program {
	t.Helper()
	p, err := program.Parse("p.py", lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func outcomeOf(t *testing.T, table *op.Table, j *backend.Job) *backend.Outcome {
	t.Helper()
	return New(table, nn.Modules()).Eager(context.Background(), j)
}

func TestHowRunsEnd(t *testing.T) {
	x := "x = tensor((2, 3), torch.float32, uniform(-1, 1, key=1), requires_grad=True)\n"
	for _, c := range []struct {
		lines   string
		status  backend.Status
		class   string
		message string
		call    int
	}{
		{"y = torch.relu(x)", backend.OK, "", "", 0},
		{"y = torch.nosuch(x)", backend.Unsupported, "", "unknown operator torch.nosuch", 0},
		{"m = torch.nn.NoSuch(3)", backend.Unsupported, "", "unknown operator torch.nn.NoSuch", 0},
		{"y = torch.relu(x)\nz = torch.reshape(y, (4,))", backend.Raised, "RuntimeError", "reshape", 1},
		{"y = torch.sum(x, dim=5)", backend.Raised, "IndexError", "sum", 0},
		{"y = torch.relu(x, 1, 2)", backend.Raised, "TypeError", "relu", 0},
		{"y = torch.max(x, dim=1)\nz = y[2]", backend.Raised, "IndexError", "tuple index out of range", 1},
		{"y = torch.max(x, dim=1)\nz = y.indices\nz.backward()", backend.Raised, "RuntimeError", "does not require grad", 2},
	} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, x+c.lines)))
		if out.Status != c.status || out.Class != c.class || !strings.Contains(out.Message, c.message) || out.Call != c.call {
			t.Errorf("%s: %s %s %q in call %d", c.lines, out.Status, out.Class, out.Message, out.Call)
		}
	}
}

func TestPanicIsACrash(t *testing.T) {
	broken := *ops.Table().Def("relu")
	broken.Kernels = []op.Kernel{{Name: "broken", Run: func(*op.Run) error { panic("index out of range") }}}
	table, err := op.NewTable(&broken)
	if err != nil {
		t.Fatal(err)
	}
	out := outcomeOf(t, table, backend.NewJob(text(t, "x = tensor((2,), torch.float32, uniform(0, 1, key=1))\ny = torch.relu(x)")))
	if out.Status != backend.Crashed || !strings.Contains(out.Message, "index out of range") {
		t.Errorf("%s %s", out.Status, out.Message)
	}
}

// TestModuleState: initial values are those of the job, results and gradients
// follow from them, and buffers are reported after the last call.
func TestModuleState(t *testing.T) {
	p := text(t, "x = tensor((2, 2), torch.float32, [1.0, 2.0, 3.0, 4.0], requires_grad=True)\n"+
		"m = torch.nn.Linear(2, 1)\nb = torch.nn.BatchNorm1d(2)\nn = b(x)\ny = m(x)\ny.backward()")
	j := backend.NewJob(p)
	weight, bias := tensor.Float64s(tensor.F32, []int{1, 2}, 10, 100), tensor.Float64s(tensor.F32, []int{1}, 0.5)
	j.State = map[string]backend.State{"m": {{Name: "weight", Tensor: weight}, {Name: "bias", Tensor: bias}}}
	out := outcomeOf(t, ops.Table(), j)
	if out.Status != backend.OK {
		t.Fatal(out.Message)
	}
	check := func(what string, got *tensor.Tensor, want ...float64) {
		t.Helper()
		if got == nil || got.Len() != len(want) {
			t.Fatalf("%s is %v", what, got)
		}
		for i, w := range want {
			if got.Float(i) != w {
				t.Errorf("%s[%d] is %v, want %v", what, i, got.Float(i), w)
			}
		}
	}
	check("y", out.Values[3].Tensor, 210.5, 430.5)
	check("gradient of x", out.Grad("x"), 10, 100, 10, 100)
	check("gradient of the weight", out.Of(backend.PartParamGrad, "m")[0].Tensor, 4, 6)
	check("gradient of the bias", out.Of(backend.PartParamGrad, "m")[1].Tensor, 2)
	check("initial weight", out.Initial["m"][0].Tensor, 10, 100)
	for _, n := range out.Of(backend.PartState, "b") {
		if n.Name == "running_mean" {
			check("running mean", n.Tensor, float64(float32(2)*float32(0.1)), float64(float32(3)*float32(0.1)))
		}
	}
	out = outcomeOf(t, ops.Table(), backend.NewJob(p))
	if s := out.Initial["m"]; len(s) != 2 || s[0].Tensor.SameBits(tensor.New(tensor.F32, 1, 2)) {
		t.Errorf("without given state the parameters are %v", s)
	}
}

// TestBuffersChangeInPlace: a name for a buffer stands for what a later call of
// its module left in it, also of one inside another, and views follow.
func TestBuffersChangeInPlace(t *testing.T) {
	for _, bind := range []string{"b = torch.nn.BatchNorm1d(2)\nn = b.num_batches_tracked\nr = b.running_mean", "c = torch.nn.BatchNorm1d(2)\nb = torch.nn.Sequential(c)\nn = c.num_batches_tracked\nr = c.running_mean"} {
		out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, "x = tensor((2, 2), torch.float32, [1.0, 2.0, 3.0, 4.0])\n"+bind+"\nv = r[1]\ny = b(x)\nz = b(x)\nn1 = n + 0\nv1 = v + 0")))
		if out.Status != backend.OK {
			t.Fatal(out.Message)
		}
		last := len(out.Values) - 1
		if n, v := out.Values[last-1].Tensor.Float(0), out.Values[last].Tensor.Float(0); n != 2 || v == 0 {
			t.Errorf("after 2 batches num_batches_tracked is %v, running_mean[1] %v\n%s", n, v, bind)
		}
	}
}

// TestInputsAreNotChanged: batch_norm updates running statistics in place.
func TestInputsAreNotChanged(t *testing.T) {
	j := backend.NewJob(text(t, "x = tensor((4, 2), torch.float32, uniform(-1, 1, key=1))\n"+
		"mean = tensor((2,), torch.float32, [0.0, 0.0])\nvar = tensor((2,), torch.float32, [1.0, 1.0])\n"+
		"y = torch.nn.functional.batch_norm(x, mean, var, training=True)\nz = torch.add(mean, 0)"))
	out := outcomeOf(t, ops.Table(), j)
	if out.Status != backend.OK {
		t.Fatal(out.Message)
	}
	if j.Inputs[1].Float(0) != 0 {
		t.Error("the caller's tensor was changed")
	}
	if out.Values[1].Tensor.Float(0) == 0 {
		t.Error("the update is not seen by the next call")
	}
}

// TestParametersShareMemory changes a parameter, and with it the tensor that
// it was made of; views of that follow.
func TestParametersShareMemory(t *testing.T) {
	p := text(t, `v = tensor((2,), torch.float32, [1.0, 2.0])
row = v[1]
p = torch.nn.Parameter(v)
with torch.no_grad():
    q = p.sub_(1)
y = v + 0
z = row + 0
l = p.sum()
l.backward()`)
	out := outcomeOf(t, ops.Table(), backend.NewJob(p))
	if out.Status != backend.OK {
		t.Fatalf("%s %s", out.Status, out.Message)
	}
	y, z := out.Values[3].Tensor, out.Values[4].Tensor
	if y.Float(0) != 0 || y.Float(1) != 1 || z.Float(0) != 1 || out.Values[3].RequiresGrad {
		t.Errorf("v is %v, its row %v", y, z)
	}
}

// TestPartsOfModules lists what a module holds, by name and by kind.
func TestPartsOfModules(t *testing.T) {
	out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, `n = torch.nn.BatchNorm1d(2)
m = torch.nn.Sequential(n)
p = m.named_parameters()
b = m.named_buffers()
w = m.get_parameter("0.weight")
e = m.get_parameter("0.none")`)))
	if out.Status != backend.Raised || out.Class != "AttributeError" || out.Call != 5 {
		t.Fatalf("%s %s %s in call %d", out.Status, out.Class, out.Message, out.Call)
	}
	names := func(i int) (s string) {
		for _, e := range out.Values[i].Tuple {
			s += e.Tuple[0].Plain.(string) + " "
		}
		return s
	}
	if names(2) != "0.weight 0.bias " || names(3) != "0.running_mean 0.running_var 0.num_batches_tracked " || !out.Values[4].RequiresGrad {
		t.Errorf("parameters %s, buffers %s", names(2), names(3))
	}
}

// TestEmptyViewsAreViews: what is written into a view of no elements has a gradient of 0,
// as in PyTorch, though there is no storage by which the view could be told.
func TestEmptyViewsAreViews(t *testing.T) {
	out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, "x = tensor((3, 0), torch.float32, [], requires_grad=True)\nv = tensor((), torch.float32, [2.0], requires_grad=True)\ny = x.clone()\ns = operator.setitem(y, slice(None, -1, None), v)\ny.backward()")))
	if g := out.Grad("v"); out.Status != backend.OK || g == nil || g.Len() != 1 || g.Float(0) != 0 {
		t.Errorf("%s %s: gradient %v, want 0", out.Status, out.Message, g)
	}
}

// TestWeightsOfNoChannels: a weight of any size is taken where there are no channels, and
// its gradient is 0, as in PyTorch.
func TestWeightsOfNoChannels(t *testing.T) {
	out := outcomeOf(t, ops.Table(), backend.NewJob(text(t, "x = tensor((2, 0, 3), torch.float32, [], requires_grad=True)\nw = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\ny = torch.nn.functional.instance_norm(x, weight=w)\ny.backward()")))
	if g := out.Grad("w"); out.Status != backend.OK || g == nil || g.Len() != 2 || g.Float(0) != 0 || g.Float(1) != 0 {
		t.Errorf("%s %s: gradient %v, want 0, 0", out.Status, out.Message, g)
	}
}
