package native

import (
	"context"
	"math"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
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
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

func jobOf(p *program.Program) *backend.Job {
	j := &backend.Job{Program: p}
	for i := range p.Inputs {
		j.Inputs = append(j.Inputs, p.Inputs[i].Materialize())
	}
	return j
}

func outcomeOf(t *testing.T, table *op.Table, j *backend.Job) *backend.Outcome {
	t.Helper()
	out, err := New(table, nn.Modules()).Run(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return out
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
		out := outcomeOf(t, ops.Table(), jobOf(text(t, x+c.lines)))
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
	out := outcomeOf(t, table, jobOf(text(t, "x = tensor((2,), torch.float32, uniform(0, 1, key=1))\ny = torch.relu(x)")))
	if out.Status != backend.Crashed || !strings.Contains(out.Message, "index out of range") {
		t.Errorf("%s %s", out.Status, out.Message)
	}
}

// TestModuleState: initial values are those of the job, results and gradients
// follow from them, and buffers are reported after the last call.
func TestModuleState(t *testing.T) {
	p := text(t, "x = tensor((2, 2), torch.float32, [1.0, 2.0, 3.0, 4.0], requires_grad=True)\n"+
		"m = torch.nn.Linear(2, 1)\nb = torch.nn.BatchNorm1d(2)\nn = b(x)\ny = m(x)\ny.backward()")
	j := jobOf(p)
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
	check("gradient of x", out.Grads["x"], 10, 100, 10, 100)
	check("gradient of the weight", out.ParamGrads["m"][0].Tensor, 4, 6)
	check("gradient of the bias", out.ParamGrads["m"][1].Tensor, 2)
	check("initial weight", out.Initial["m"][0].Tensor, 10, 100)
	for _, n := range out.Final["b"] {
		if n.Name == "running_mean" {
			check("running mean", n.Tensor, float64(float32(2)*float32(0.1)), float64(float32(3)*float32(0.1)))
		}
	}
	out = outcomeOf(t, ops.Table(), jobOf(p))
	if s := out.Initial["m"]; len(s) != 2 || s[0].Tensor.SameBits(tensor.New(tensor.F32, 1, 2)) {
		t.Errorf("without given state the parameters are %v", s)
	}
}

// TestInputsAreNotChanged: batch_norm updates running statistics in place.
func TestInputsAreNotChanged(t *testing.T) {
	j := jobOf(text(t, "x = tensor((4, 2), torch.float32, uniform(-1, 1, key=1))\n"+
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

// TestBounds: the error of a product and of its gradients is known, that of
// exact integers is none, and it goes through functions and exact operators.
func TestBounds(t *testing.T) {
	const inputs = "x = tensor((1, 2), torch.float32, [1.5, -2.0], requires_grad=True)\n" +
		"w = tensor((2, 1), torch.float32, [-3.0, 4.0], requires_grad=True)\ny = torch.matmul(x, w)\n"
	boundsOf := func(calls string) *compare.Bounds {
		return New(ops.Table(), nn.Modules()).Bounds(jobOf(text(t, inputs+calls)), true)
	}
	b := boundsOf("z = torch.sub(y, 5)\nq = torch.div(z, 10)\ne = torch.tanh(q)\nr = torch.relu(e)\nf = torch.round(z)\nm = torch.gt(y, -12.4)\nn = torch.gt(y, -12.5)\n")
	product, difference := b.Values[0].Bound, b.Values[1].Bound
	if product == nil || product.Terms.Float(0) != 12.5 || product.Error.Float(0) != 3*12.5 {
		t.Errorf("product: %+v", product)
	}
	if got, want := difference.Error.Float(0), 3*12.5+17.5; math.Abs(got-want) > 1e-3 {
		t.Errorf("difference: error %v, want that of the product and 17.5, %v", got, want)
	}
	quotient, tanh, relu := b.Values[2].Bound, b.Values[3].Bound, b.Values[4].Bound
	slope := 1 - math.Pow(math.Tanh(-1.75), 2)
	if got, want := tanh.Error.Float(0), slope*quotient.Error.Float(0)+5*math.Tanh(1.75); math.Abs(got-want) > 1e-6*want {
		t.Errorf("tanh: error %v, want %v", got, want)
	}
	if relu.Error.Float(0) != tanh.Error.Float(0) {
		t.Errorf("relu: error %v, want that of its input, %v", relu.Error.Float(0), tanh.Error.Float(0))
	}
	for i, want := range map[int]bool{5: false, 6: true, 7: false} {
		if got := b.Values[i].Bound != nil; got != want {
			t.Errorf("call %d has a bound: %t, want %t", i, got, want)
		}
	}
	b = boundsOf("y.backward()")
	if got := b.Grads["x"]; got == nil || got.Error != nil || got.Value.Float(0) != -3 {
		t.Errorf("gradient of x, of integers: %+v", got)
	}
}

// TestBoundsOfTuples: what a tuple holds has bounds of its own.
func TestBoundsOfTuples(t *testing.T) {
	b := New(ops.Table(), nn.Modules()).Bounds(jobOf(text(t, "x = tensor((3, 4), torch.float32, uniform(-1, 1, key=1))\ns = torch.exp(x)\ny = torch.max(s, 1)\n")), true)
	if values := b.Values[1].At([]int{0}); values == nil || values.Error.Float(0) < 1 {
		t.Errorf("maxima behind exp have the bound %+v", values)
	}
	if b.Values[1].At([]int{1}) == nil || b.Values[1].At(nil) != nil || b.Values[1].At([]int{2}) != nil {
		t.Errorf("bounds by path: %+v", b.Values[1])
	}
}

// TestBoundsOfFormulas: softmax and layer_norm have bounds, and so have their
// gradients.
func TestBoundsOfFormulas(t *testing.T) {
	for _, call := range []string{"torch.softmax(x, 1)", "torch.log_softmax(x, 1)", "torch.nn.functional.layer_norm(x, (4,))", "torch.nn.functional.batch_norm(x, None, None, training=True)", "torch.nn.functional.gelu(x)"} {
		b := New(ops.Table(), nn.Modules()).Bounds(jobOf(text(t, "x = tensor((3, 4), torch.float32, uniform(-1, 1, key=1), requires_grad=True)\n"+
			"y = "+call+"\ny.backward(uniform(-1, 1, key=2))")), true)
		for name, bound := range map[string]*compare.Bound{"value": b.Values[0].Bound, "gradient": b.Grads["x"]} {
			if bound == nil || bound.Error == nil {
				t.Errorf("%s: the %s has no bound", call, name)
				continue
			}
			for i := range bound.Error.Len() {
				if e := bound.Error.Float(i); !(e > 0 && e < 2000) {
					t.Errorf("%s: the %s of element %d has error %v", call, name, i, e)
				}
			}
		}
	}
}
