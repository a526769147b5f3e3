package worker

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// hosted opens a framework in a mode; without a Python that has it, the test skips.
func hosted(t *testing.T, name, mode string) *Worker {
	t.Helper()
	path, _, err := Find(name, "")
	if err != nil {
		t.Skip("needs a Python with it: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	w, err := Open(t.Context(), Config{Framework: name, Python: path, Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// TestOwnFrameworks: frameworks with an interface of their own give values and
// gradients, in every mode.
func TestOwnFrameworks(t *testing.T) {
	for _, name := range []string{"jax", "mindspore", "mlx", "paddle", "tensorflow", "tinygrad"} {
		t.Run(name, func(t *testing.T) {
			w := hosted(t, name, "")
			for _, mode := range w.Info().Modes {
				b := new(builder).in("x", f32([]int{2, 2}, 1, -2, 3, 4), true).call("y", "torch.relu", program.Ref("x")).
					call("z", "torch.mul", program.Ref("y"), program.Ref("x")).call("s", "torch.sum", program.Ref("z")).kw("dim", int64(1)).back("s", program.Fill{})
				in, err := w.In(mode)
				if err != nil {
					t.Fatal(err)
				}
				out, err := in.Run(t.Context(), b.job())
				if err != nil {
					t.Fatal(err)
				}
				if out.Status != backend.OK || numbers(out.Values[2].Tensor) != "1 25" || numbers(out.Slots[0].Tensor) != "2 0 6 8" {
					t.Errorf("%s: %+v\n%s, gradient %s", mode, out, numbers(out.Values[2].Tensor), numbers(out.Slots[0].Tensor))
				}
			}
		})
	}
}

// TestONNX: an engine that runs ONNX gives the values of a program, call by call
// and as one model, and says that it lacks a dtype.
func TestONNX(t *testing.T) {
	for _, name := range []string{"onnx:ort", "onnx:openvino"} {
		t.Run(name, func(t *testing.T) {
			w := hosted(t, name, "")
			for _, mode := range []string{"eager", "graph"} {
				in, err := w.In(mode)
				if err != nil {
					t.Fatal(err)
				}
				b := new(builder).in("x", f32([]int{2, 2}, 1, -2, 3, 4), false).call("y", "torch.relu", program.Ref("x")).
					call("z", "torch.mul", program.Ref("y"), program.Ref("x")).call("s", "torch.sum", program.Ref("z")).kw("dim", int64(1))
				out, err := in.Run(t.Context(), b.job())
				if err != nil {
					t.Fatal(err)
				}
				if out.Status != backend.OK || numbers(out.Values[2].Tensor) != "1 25" {
					t.Errorf("%s: %+v", mode, out)
				}
				lacking := run(t, w, new(builder).in("x", f32([]int{1}, 1), false).call("y", "Tensor.bfloat16", program.Ref("x")))
				if lacking.Status != backend.Unsupported {
					t.Errorf("%s: bfloat16: %+v", mode, lacking)
				}
			}
		})
	}
}

// TestONNXCalls: what several nodes stand for is as PyTorch 1.13 and 2.15 have it.
func TestONNXCalls(t *testing.T) {
	w := hosted(t, "onnx:ort", "")
	const given = "x = tensor((2, 2, 2), torch.float32, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])\n" +
		"i = tensor((3,), torch.int64, [0, 1, 1])\nj = tensor((3,), torch.int64, [1, -1, 0])\nk = tensor((), torch.int64, [1])\n"
	for call, want := range map[string]string{
		"x[:, i, j]":                         "[2 3] 1 3 2 5 7 6",
		"x[i, :, j]":                         "[3 2] 1 3 5 7 4 6",
		"x[i, j]":                            "[3 2] 2 3 6 7 4 5",
		"x[1, :, i]":                         "[2 3] 4 5 5 6 7 7",
		"x[i, k, j]":                         "[3] 3 7 6",
		"x[[0, 1], 1]":                       "[2 2] 2 3 6 7",
		"torch.linspace(-1.0, 1.0, 5)":       "[5] -1 -0.5 0 0.5 1",
		"torch.linspace(3.0, 7.0, 1)":        "[1] 3",
		`x.to_local("cpu[0, 1]", "S(0)", 1)`: "[1 2 2] 4 5 6 7",
		"torch.linspace(0, 3, 4, dtype=torch.float16)": "[4] 0 1 2 3",
	} {
		p, err := program.Parse("p.py", given+"y = "+call+"\n")
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{"eager", "graph"} {
			in, err := w.In(mode)
			if err != nil {
				t.Fatal(err)
			}
			out, err := in.Run(t.Context(), backend.NewJob(p))
			if err != nil || out.Status != backend.OK {
				t.Errorf("%s, %s: %v, %+v", call, mode, err, out)
				continue
			}
			y := out.Values[len(out.Values)-1].Tensor
			if got := fmt.Sprint(y.Shape(), " ", numbers(y)); got != want {
				t.Errorf("%s, %s: %s, want %s", call, mode, got, want)
			}
		}
	}
}

// TestGraphs: what a framework with a tape captures as one program gives what its
// calls give, modules and gradients too; what it gets wrong is seen, what it
// cannot capture is a gap, and so is what no capture is faithful to.
func TestGraphs(t *testing.T) {
	w := adapted(t, "torchtape")
	x := f32([]int{2, 3}, -1, 2, -3, 4, -5, 6)
	linear := func() *builder {
		return new(builder).in("x", x, true).call("m", "torch.nn.Linear", int64(3), int64(2)).call("n", "Module.eval", program.Ref("m")).
			call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).call("s", "getattr", program.Ref("y"), "shape").
			call("v", "torch.max", program.Ref("y"), int64(1)).call("z", "operator.getitem", program.Ref("v"), int64(0)).back("z", program.Fill{})
	}
	state := map[string]backend.State{"m": {{Name: "weight", Tensor: f32([]int{2, 3}, 1, 2, 3, 4, 5, 6)}, {Name: "bias", Tensor: f32([]int{2}, 1, -1)}}}
	in := func(mode string, b *builder) *backend.Outcome {
		t.Helper()
		m, err := w.In(mode)
		if err != nil {
			t.Fatal(err)
		}
		job := b.job()
		job.State = state
		out, err := m.Run(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	calls, once, wrong := in("eager", linear()), in("once", linear()), in("wrong", linear())
	sameOutcome(t, once, calls)
	if once.Watched || len(once.Slots) == 0 {
		t.Errorf("%+v", once)
	}
	if y, z := numbers(calls.Values[2].Tensor), numbers(wrong.Values[2].Tensor); y != "-5 -13 13 26" || z != "-10 -26 26 52" {
		t.Errorf("%s, wrong %s", y, z)
	}
	for name, c := range map[string]struct {
		mode string
		b    *builder
		want string
	}{
		"refused":  {"refused", linear(), "refused: RuntimeError: no such program"},
		"in place": {"once", new(builder).in("x", x, false).call("y", "Tensor.exp_", program.Ref("x")), "changes in place"},
		"renormed": {"once", new(builder).in("x", x, false).in("i", tensor.Float64s(tensor.I64, []int{1}, 1), false).
			call("y", "torch.nn.functional.embedding", program.Ref("i"), program.Ref("x"), nil, 1.0), "does not tell what torch.nn.functional.embedding changes in place"},
		"leaf":  {"once", new(builder).in("x", x, false).call("y", "Tensor.requires_grad_", program.Ref("x")), "no place for Tensor.requires_grad_"},
		"tape":  {"once", linear().call("t", "getattr", program.Ref("y"), "is_leaf"), "does not tell is_leaf"},
		"late":  {"once", linear().call("t", "Module.train", program.Ref("m")), "comes after a call of the module"},
		"a gap": {"once", new(builder).in("x", x, false).call("y", "torch.neg", program.Ref("x")), "no such form"},
	} {
		if out := in(c.mode, c.b); out.Status != backend.Unsupported || !strings.Contains(out.Message, c.want) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestOneFlowGraph: a program as OneFlow's nn.Graph gives its values, forward only.
func TestOneFlowGraph(t *testing.T) {
	w := hosted(t, "oneflow", "graph")
	out := run(t, w, new(builder).in("x", f32([]int{2, 2}, 1, -2, 3, 4), true).call("m", "torch.nn.ReLU").
		call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).call("s", "torch.sum", program.Ref("y")).kw("dim", int64(1)).back("s", program.Fill{}))
	if out.Status != backend.OK || !out.ForwardOnly || !w.Info().ForwardOnly || numbers(out.Values[2].Tensor) != "1 7" {
		t.Errorf("%+v", out)
	}
	empty := run(t, w, new(builder).in("x", f32([]int{0}), false).call("y", "torch.relu", program.Ref("x")))
	if empty.Status != backend.Unsupported {
		t.Errorf("without elements: %+v", empty)
	}
}

// TestOwnTape: a framework with a table and a tape changes tensors in place by
// its own functions and methods that do, or says that it has none; an exception
// of the adapter's forms is a gap of a call, and of no backward pass.
func TestOwnTape(t *testing.T) {
	w := adapted(t, "torchtape")
	x, whole := f32([]int{3}, -1, 2, -3), tensor.New(tensor.I64, 3)
	for name, c := range map[string]struct {
		b      *builder
		status backend.Status
		want   string // the numbers of x after the calls, or of the message a part
	}{
		"function":    {new(builder).in("x", f32([]int{2}, 0, 0), false).call("y", "Tensor.exp_", program.Ref("x")).call("z", "torch.add", program.Ref("x"), program.Ref("y")), backend.OK, "2 2"},
		"method":      {new(builder).in("x", x, false).call("y", "Tensor.add_", program.Ref("x"), int64(1)).call("z", "torch.add", program.Ref("x"), int64(0)), backend.OK, "0 3 -2"},
		"operator":    {new(builder).in("x", x, false).call("y", "operator.iadd", program.Ref("x"), program.Ref("x")).call("z", "torch.add", program.Ref("x"), int64(0)), backend.OK, "-2 4 -6"},
		"in place":    {new(builder).in("x", x, false).call("y", "Tensor.zero_", program.Ref("x")).call("z", "torch.add", program.Ref("x"), int64(0)), backend.OK, "0 0 0"},
		"element":     {new(builder).in("x", x, false).call("y", "operator.setitem", program.Ref("x"), int64(0), 5.0).call("z", "torch.add", program.Ref("x"), int64(0)), backend.OK, "5 2 -3"},
		"alone":       {new(builder).in("x", x, false).call("y", "torch.fill", program.Ref("x"), 2.0), backend.Unsupported, "fill is there in place alone"},
		"by its flag": {new(builder).in("x", x, false).call("y", "torch.nn.functional.threshold", program.Ref("x"), 0.0, 7.0).kw("inplace", true).call("z", "torch.add", program.Ref("x"), int64(0)), backend.OK, "7 2 7"},
		"of a module": {new(builder).in("x", x, false).call("m", "torch.nn.Threshold", 0.0, 7.0, true).call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).call("z", "torch.add", program.Ref("x"), int64(0)), backend.OK, "7 2 7"},
		"none":        {new(builder).in("x", x, false).call("y", "Tensor.relu_", program.Ref("x")), backend.Unsupported, "torch has no copied_"},
		"a copy":      {new(builder).in("x", whole, false).call("y", "Tensor.add_", program.Ref("x"), 1.5), backend.Unsupported, "no change in place of this"},
		"dtype":       {new(builder).in("x", x, false).call("y", "Tensor.eq_", program.Ref("x"), program.Ref("x")), backend.Unsupported, "equal_ changes the dtype"},
		"form":        {new(builder).in("x", x, false).call("y", "torch.neg", program.Ref("x")), backend.Unsupported, "no such form"},
		"in backward": {new(builder).in("x", x, true).call("y", "torch.neg", program.Ref("x")).back("y", program.Fill{}), backend.Raised, "no such form (plumb_torchtape.py, line "},
	} {
		t.Run(name, func(t *testing.T) {
			out := run(t, w, c.b)
			if out.Status != c.status || c.status != backend.OK && !strings.Contains(out.Message, c.want) {
				t.Fatalf("%+v, want %s with %q", out, c.status, c.want)
			}
			if c.status == backend.OK && numbers(out.Values[len(out.Values)-1].Tensor) != c.want {
				t.Errorf("%s, want %s", numbers(out.Values[len(out.Values)-1].Tensor), c.want)
			}
		})
	}
}

// TestNoGradientThere: where a framework with gradients has none of a program,
// what its calls gave is told nonetheless, and why there is no more.
func TestNoGradientThere(t *testing.T) {
	out := run(t, adapted(t, "torchtape"), new(builder).in("x", f32([]int{3}, -1, 2, -3), true).call("y", "torch.abs", program.Ref("x")).back("y", program.Fill{}))
	if out.Status != backend.OK || !out.ForwardOnly || out.NoGradients != "no gradient of abs" || numbers(out.Values[0].Tensor) != "1 2 3" || len(out.Slots) != 0 {
		t.Errorf("%+v", out)
	}
}

// TestChangesAreTold: what a call changes in place is told by a subject that
// watches for it, views and all; what it left alone is not.
func TestChangesAreTold(t *testing.T) {
	b := new(builder).in("x", f32([]int{2}, 0, 0), false).in("z", f32([]int{2}, 1, 2), false).
		call("w", "torch.add", program.Ref("x"), program.Ref("z")).call("y", "Tensor.exp_", program.Ref("x")).
		call("u", "Tensor.unsqueeze_", program.Ref("z"), int64(0))
	out := run(t, adapted(t, "torchtape"), b)
	if !out.Watched {
		t.Fatalf("not watched: %+v", out)
	}
	at := func(call int, owner string) *tensor.Tensor {
		return out.At(backend.Place{Part: backend.PartChange, Call: call, Owner: owner})
	}
	if at(0, "x") != nil || at(1, "z") != nil || at(1, "w") != nil {
		t.Errorf("changes of what was left alone: %+v", out.Slots)
	}
	if c := at(2, "z"); c == nil || len(c.Shape()) != 2 {
		t.Errorf("z is changed in its shape alone by unsqueeze_: %+v", out.Slots)
	}
	if c := at(1, "x"); c == nil || numbers(c) != "1 1" {
		t.Errorf("x is changed by exp_: %+v", out.Slots)
	}
}

// TestWeightsOfLosses: the weights of a loss are no parameters: they get no gradient.
func TestWeightsOfLosses(t *testing.T) {
	b := new(builder).in("x", f32([]int{2}, 0.25, 0.5), true).in("target", f32([]int{2}, 0, 1), false).in("weight", f32([]int{2}, 2, 3), false).
		call("m", "torch.nn.BCELoss", program.Ref("weight")).call("y", "Module.__call__", program.Ref("m"), program.Ref("x"), program.Ref("target")).
		back("y", program.Fill{})
	job := b.job()
	job.State = map[string]backend.State{"m": {{Name: "weight", Tensor: f32([]int{2}, 2, 3)}}}
	out, err := adapted(t, "torchtape").Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if out.Status != backend.OK {
		t.Fatalf("%+v", out)
	}
	if named := out.Of(backend.PartParamGrad, "m"); len(named) > 0 {
		t.Errorf("gradients of %+v", named)
	}
}

// TestAskedOfTheTape: an adapter answers what calls ask of its tape; tensors and
// modules tell their gradients and their state; operands come one by one or as
// one argument; a parameter may be called from; embeddings are watched.
func TestAskedOfTheTape(t *testing.T) {
	w := adapted(t, "torchtape")
	x := f32([]int{2}, 1, 2)
	for name, c := range map[string]struct {
		b    *builder
		want string
	}{
		"gradient":   {new(builder).in("x", x, true).call("y", "torch.einsum", "i,i->", program.Ref("x"), program.Ref("x")).call("g", "torch.autograd.grad", program.Ref("y"), program.Ref("x")).call("z", "operator.getitem", program.Ref("g"), int64(0)), "2 4"},
		"one by one": {new(builder).in("x", x, false).call("y", "torch.einsum", "i,i->i", program.Ref("x"), program.Ref("x")), "1 4"},
		"a tuple":    {new(builder).in("x", x, false).call("y", "torch.einsum", "i,i->i", program.Tuple{program.Ref("x"), program.Ref("x")}), "1 4"},
		"from":       {new(builder).in("x", x, false).call("y", "Tensor.uniform_", program.Ref("x"), 3.0, 3.0), "3 3"},
		"state":      {new(builder).call("m", "torch.nn.Linear", int64(2), int64(1)).call("y", "getattr", program.Ref("m"), "weight"), "5 6"},
	} {
		job := c.b.job()
		job.State = map[string]backend.State{"m": {{Name: "weight", Tensor: f32([]int{1, 2}, 5, 6)}, {Name: "bias", Tensor: f32([]int{1}, 7)}}}
		out, err := w.Run(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if out.Status != backend.OK || numbers(last(out)) != c.want {
			t.Errorf("%s: %+v, want %s", name, out, c.want)
		}
	}
	index := tensor.New(tensor.I64, 1)
	out := run(t, w, new(builder).in("x", f32([]int{1, 2}, 3, 4), false).in("i", index, false).
		call("y", "torch.nn.functional.embedding", program.Ref("i"), program.Ref("x"), nil, 1.0))
	if changed := out.Of(backend.PartChange, "x"); len(changed) != 1 {
		t.Errorf("embedding renormalises its weight: %+v", out)
	}
}

// last returns the value of the last call.
func last(out *backend.Outcome) *tensor.Tensor { return out.Values[len(out.Values)-1].Tensor }

// TestOneFlowForms: what OneFlow takes in another form is called so, what Python
// does in its stead is a gap, and an error of its own code is none.
func TestOneFlowForms(t *testing.T) {
	w := hosted(t, "oneflow", "")
	x := f32([]int{2}, -2, 4)
	for name, c := range map[string]struct {
		b      *builder
		status backend.Status
		want   string // of the last value, or of the message a part
	}{
		"by position": {new(builder).in("x", x, false).call("y", "torch.nn.functional.leaky_relu", program.Ref("x"), 0.5), backend.OK, "-1 4"},
		"a tuple":     {new(builder).in("x", x, false).call("y", "torch.einsum", "i,i->i", program.Tuple{program.Ref("x"), program.Ref("x")}), backend.OK, "4 16"},
		"a warning": {new(builder).in("x", x, false).call("m", "torch.nn.Hardtanh").kw("inplace", true).
			call("y", "Module.__call__", program.Ref("m"), program.Ref("x")), backend.Unsupported, "do not support inplace"},
		"a dtype": {new(builder).in("i", tensor.New(tensor.I16, 1), false).call("y", "torch.neg", program.Ref("i")), backend.Unsupported, "oneflow has no int16"},
		"a dtype in place": {new(builder).in("i", tensor.New(tensor.I32, 1), false).call("c", "torch.clone", program.Ref("i")).
			call("y", "torch.floor_", program.Ref("c")), backend.Unsupported, "of int32"},
		"half in place": {new(builder).in("x", tensor.New(tensor.F16, 2), false).call("c", "torch.clone", program.Ref("x")).
			call("y", "torch.sin_", program.Ref("c")), backend.Unsupported, "output type oneflow.float16"},
		"no dimension": {new(builder).in("x", x, false).in("v", f32(nil, 0), false).call("y", "torch.searchsorted", program.Ref("x"), program.Ref("v")), backend.Unsupported, "positive dimension"},
		"in place":     {new(builder).in("x", x, false).call("y", "operator.imod", program.Ref("x"), 3.0), backend.Unsupported, "no operator.imod"},
		"names":        {new(builder).in("x", f32([]int{2, 2}, 1, 2, 3, 4), false).call("y", "torch.linalg.diagonal").kw("A", program.Ref("x")), backend.OK, "1 4"},
		"names of a method": {new(builder).in("x", f32([]int{1, 1, 2}, 1, 2), false).in("z", f32([]int{1, 2, 1}, 3, 4), false).
			call("y", "Tensor.bmm", program.Ref("x")).kw("mat2", program.Ref("z")), backend.OK, "11"},
		"names in place": {new(builder).in("x", x, false).call("c", "torch.clone", program.Ref("x")).
			call("y", "Tensor.clamp_max_", program.Ref("c")).kw("max", 1.0), backend.OK, "-2 1"},
		"its own": {new(builder).in("x", f32([]int{1, 2}, 1, 2), false).call("m", "torch.nn.RNNCell", int64(2), int64(3)).
			call("y", "Module.__call__", program.Ref("m"), program.Ref("x")), backend.Raised, "not callable"},
	} {
		out := run(t, w, c.b)
		if out.Status != c.status || c.status != backend.OK && !strings.Contains(out.Message, c.want) || c.status == backend.OK && numbers(last(out)) != c.want {
			t.Errorf("%s: %+v, want %s with %q", name, out, c.status, c.want)
		}
	}
}

// TestConstantsOfACase: TensorFlow makes a number of the constant that it made of an
// equal one before, as of 0 and -0, but not of one of another case.
func TestConstantsOfACase(t *testing.T) {
	w := hosted(t, "tensorflow", "")
	for _, v := range []float64{math.Copysign(0, -1), 0} {
		b := new(builder).in("x", f32([]int{1}, 1), false).call("y", "torch.gt", program.Ref("x"), 0.5).
			call("z", "torch.where", program.Ref("y"), v, program.Ref("x"))
		out, err := w.Run(t.Context(), b.job())
		if err != nil || out.Status != backend.OK {
			t.Fatal(err, out)
		}
		if z := real(last(out).At(0)); z != 0 || math.Signbit(z) != math.Signbit(v) {
			t.Errorf("%v became %v", v, z)
		}
	}
}

// TestNoTape: a program that asks a subject without gradients of its own for some is a gap of it, and no finding.
func TestNoTape(t *testing.T) {
	w := framework(t, "numpy", "numpy")
	b := new(builder).in("x", f32([]int{2}, 1, 2), true).call("y", "torch.mul", program.Ref("x"), program.Ref("x")).call("s", "torch.sum", program.Ref("y"))
	if out := run(t, w, b.call("g", "Tensor.backward", program.Ref("s"))); out.Status != backend.Unsupported || !strings.Contains(out.Message, "tells no gradients within a program") {
		t.Errorf("%+v", out)
	}
}

// TestNumPyReadsAsPyTorch: what NumPy sums or solves otherwise is asked of it so that it means the same, or is a gap.
func TestNumPyReadsAsPyTorch(t *testing.T) {
	w := framework(t, "numpy", "numpy")
	i, b, x := tensor.Of(tensor.I16, []int{2, 2}, []int16{1, 2, 3, 4}), tensor.Of(tensor.I16, []int{2}, []int16{1, 1}), f32([]int{2, 1, 1}, 1, 2)
	for name, c := range map[string]struct {
		call   *builder
		status backend.Status
		dtype  tensor.DType
	}{
		"summed alone":     {new(builder).in("i", i, false).call("y", "torch.einsum", "ij->i", program.Ref("i")), backend.OK, tensor.I64},
		"a trace":          {new(builder).in("i", i, false).call("y", "torch.einsum", "ii", program.Ref("i")), backend.OK, tensor.I64},
		"not summed":       {new(builder).in("i", i, false).call("y", "torch.einsum", "ij->ji", program.Ref("i")), backend.OK, tensor.I16},
		"summed with more": {new(builder).in("i", i, false).in("b", b, false).call("y", "torch.einsum", "ij,j->i", program.Ref("i"), program.Ref("b")), backend.OK, tensor.I16},
		"complex draws":    {new(builder).call("y", "torch.rand", int64(2)).kw("dtype", tensor.C64), backend.Unsupported, 0},
		"vectors":          {new(builder).in("x", x, false).in("v", f32([]int{2, 1}, 3, 4), false).call("y", "torch.linalg.solve", program.Ref("x"), program.Ref("v")), backend.Unsupported, 0},
	} {
		out := run(t, w, c.call)
		if out.Status != c.status || out.Status == backend.OK && last(out).DType() != c.dtype {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestOneTensorTwice: results of one captured program that are the same tensor are differentiated together.
func TestOneTensorTwice(t *testing.T) {
	w, err := framework(t, "paddle", "paddle").In("to_static")
	if err != nil {
		t.Fatal(err)
	}
	b := new(builder).in("x", f32([]int{1, 2}, 1, 2), true).call("y", "torch.atleast_1d", program.Ref("x")).call("z", "torch.atleast_2d", program.Ref("x")).back("y", program.Fill{}).back("z", program.Fill{})
	if out, err := w.Run(t.Context(), b.job()); err != nil || out.Status != backend.OK || len(out.Slots) == 0 || numbers(out.Slots[0].Tensor) != "2 2" {
		t.Errorf("%v %+v", err, out)
	}
}

// TestLossesOfClasses: what JAX has no function for is made of those that it has, as PyTorch defines it.
func TestLossesOfClasses(t *testing.T) {
	w := framework(t, "jax", "jax")
	x, weight := f32([]int{3, 2}, -1, -2, -3, -4, -5, -6), f32([]int{2}, 1, 3)
	target := tensor.Of(tensor.I64, []int{3}, []int64{1, 0, 7})
	for _, c := range []struct {
		name, target, want string
		args               []any
		kwargs             map[string]any
	}{
		{"weighed", "torch.nn.functional.nll_loss", "2.25", []any{program.Ref("x"), program.Ref("t"), program.Ref("w")}, map[string]any{"ignore_index": int64(7)}},
		{"each", "torch.nn.functional.nll_loss", "2 3 0", []any{program.Ref("x"), program.Ref("t")}, map[string]any{"ignore_index": int64(7), "reduction": "none"}},
		{"no share", "torch.addmm", "5 5 11 11 17 17", []any{program.Ref("x"), program.Ref("x"), program.Ref("m")}, map[string]any{"beta": int64(0), "alpha": int64(-1)}},
	} {
		b := new(builder).in("x", x, false).in("t", target, false).in("w", weight, false).in("m", f32([]int{2, 2}, 1, 1, 2, 2), false).call("y", c.target, c.args...)
		for name, v := range c.kwargs {
			b.kw(name, v)
		}
		if out := run(t, w, b); out.Status != backend.OK || numbers(out.Values[0].Tensor) != c.want {
			t.Errorf("%s: %+v, want %s", c.name, out, c.want)
		}
	}
}

// TestWhatTablesHave: what a framework has in another form is called by its table.
func TestWhatTablesHave(t *testing.T) {
	x, square := f32([]int{4}, 3, 1, 2, 3), f32([]int{2, 2}, 3, 4, 0, 0)
	whole := tensor.Of(tensor.I32, []int{3}, []int32{2, -3, 4})
	for _, name := range []string{"jax", "mlx", "tensorflow"} {
		t.Run(name, func(t *testing.T) {
			w := hosted(t, name, "")
			for _, c := range []struct {
				target, want string
				x            *tensor.Tensor
				args         []any
				kwargs       map[string]any
				only         string // the framework that has it
			}{
				{"torch.unique", "1 2 3", x, nil, nil, ""},
				{"torch.unique", "1 2 3|2 0 1 2|1 1 2", x, nil, map[string]any{"return_inverse": true, "return_counts": true}, ""},
				{"torch.unique", "1 2 3|1 1 2", x, nil, map[string]any{"return_counts": true}, ""},
				{"torch.unique", "1 2 3|2 0 1 2", x, nil, map[string]any{"return_inverse": true}, ""},
				{"torch.rsub", "3 13 -1", whole, []any{int64(7)}, map[string]any{"alpha": int64(2)}, "jax"},
				{"torch.rsub", "0 0 0", whole, []any{program.Ref("x")}, nil, "jax"},
				{"torch.topk", "3 3|0 3", x, []any{int64(2)}, map[string]any{"sorted": false}, "jax"},
				{"torch.topk", "1|1", x, []any{int64(1)}, map[string]any{"largest": false, "sorted": false}, "jax"},
				{"Tensor.fill_diagonal_", "7 4 0 7", square, []any{7.0}, nil, "jax"},
				{"torch.median", "2", x, nil, nil, "jax"},
				{"torch.nanmedian", "1", f32([]int{3}, 2, 1, math.NaN()), nil, nil, "jax"},
				{"torch.polar", "0", f32([]int{1}, 0), []any{program.Ref("x")}, nil, "jax"},
				{"torch.view_as_complex", "3 0", square, nil, nil, "jax"},
				{"torch.xlogy", "0 6.591673851013184", tensor.Of(tensor.I64, []int{2}, []int64{0, 6}), []any{int64(3)}, nil, "jax"},
				{"torch.rsub", "-8 -2 -5 -8", x, []any{1.0}, map[string]any{"alpha": int64(3)}, "mlx"},
				{"torch.topk", "3 3|3 0", x, []any{int64(2)}, nil, "mlx"},
				{"torch.kthvalue", "2|2", x, []any{int64(2)}, nil, "mlx"},
				{"torch.sort", "3 3 2 1|3 0 2 1", x, nil, map[string]any{"descending": true}, "mlx"},
				{"torch.addcmul", "12 2 6 12", x, []any{program.Ref("x"), program.Ref("x")}, nil, "mlx"},
				{"torch.nn.functional.threshold", "3 9 9 3", x, []any{2.5, 9.0}, nil, "mlx"},
				{"torch.nn.functional.pixel_unshuffle", "3 4 0 0", f32([]int{1, 2, 2}, 3, 4, 0, 0), []any{int64(2)}, nil, "tensorflow"},
				{"torch.kthvalue", "2|2", x, []any{int64(2)}, nil, "tensorflow"},
				{"torch.topk", "1 2|1 2", x, []any{int64(2)}, map[string]any{"largest": false}, "tensorflow"},
				{"torch.linalg.norm", "4", square, []any{int64(1)}, nil, "tensorflow"},
				{"torch.linalg.norm", "7", square, []any{math.Inf(1)}, nil, "tensorflow"},
				{"torch.linalg.norm", "5", square, []any{"fro"}, nil, "tensorflow"},
				{"torch.linalg.norm", "3 4", square, []any{int64(1), int64(0)}, nil, "tensorflow"},
				{"torch.argsort", "1 2 0 3", x, nil, map[string]any{"stable": false}, "tensorflow"},
				{"torch.nanquantile", "2.5", x, []any{0.5}, nil, "tensorflow"},
			} {
				if c.only != "" && c.only != name {
					continue
				}
				b := new(builder).in("x", c.x, false).call("y", c.target, append([]any{program.Ref("x")}, c.args...)...)
				for _, k := range slices.Sorted(maps.Keys(c.kwargs)) {
					b.kw(k, c.kwargs[k])
				}
				out := run(t, w, b)
				var got []string
				for _, v := range out.Values {
					for _, one := range append(v.Tuple, v) {
						if one.Tensor != nil {
							got = append(got, numbers(one.Tensor))
						}
					}
				}
				if out.Status != backend.OK || strings.Join(got, "|") != c.want {
					t.Errorf("%s%v: %v %+v, want %s", c.target, c.kwargs, got, out, c.want)
				}
			}
		})
	}
}

// TestWhatTinygradHas: it drops in training alone, and resizes to sizes by its own words.
func TestWhatTinygradHas(t *testing.T) {
	w := hosted(t, "tinygrad", "")
	x := f32([]int{1, 1, 4}, 1, 2, 3, 4)
	for _, c := range []struct {
		target, want string
		args         []any
	}{
		{"torch.nn.functional.dropout", "0 0 0 0", []any{1.0, true}},
		{"torch.nn.functional.dropout", "1 2 3 4", []any{1.0, false}},
		{"torch.nn.functional.interpolate", "1 3", []any{int64(2)}},
		{"torch.nn.functional.interpolate", "2 4", []any{int64(2), nil, "nearest-exact"}},
		{"torch.nn.functional.interpolate", "1.5 3.5", []any{int64(2), nil, "linear"}},
		{"torch.nn.functional.batch_norm", "-1.5 -0.5 0.5 1.5", []any{nil, nil, nil, nil, true, 0.1, -0.25}},
	} {
		out := run(t, w, new(builder).in("x", x, false).call("y", c.target, append([]any{program.Ref("x")}, c.args...)...))
		if out.Status != backend.OK || numbers(out.Values[0].Tensor) != c.want {
			t.Errorf("%s%v: %+v, want %s", c.target, c.args, out, c.want)
		}
	}
	b := new(builder).in("x", f32([]int{1, 2}, 0.5, 0.25), true).call("v", "torch.argsort", program.Ref("x")).kw("dim", int64(1)).
		call("z", "torch.add", program.Ref("v"), program.Ref("x")).
		call("s", "torch.sort", program.Ref("z"), int64(1)).call("y", "operator.getitem", program.Ref("s"), int64(0)).back("y", program.Fill{})
	if out := run(t, w, b); out.Status != backend.OK || !strings.Contains(out.NoGradients, "failed to compute gradient") {
		t.Errorf("a gradient that is not there: %+v", out)
	}
}

// TestCTC: where a framework normalises what ctc_loss takes, its loss is PyTorch's of what is normalised, and a gap of the rest.
func TestCTC(t *testing.T) {
	for _, name := range []string{"paddle", "tensorflow"} {
		t.Run(name, func(t *testing.T) {
			w := hosted(t, name, "")
			for sum, status := range map[float64]backend.Status{1: backend.OK, 1.01: backend.Unsupported} {
				// One step of two samples, whose targets follow one another: the second has none.
				x := f32([]int{1, 2, 3}, math.Log(0.25*sum), math.Log(0.5*sum), math.Log(0.25*sum), math.Log(0.125*sum), math.Log(0.375*sum), math.Log(0.5*sum))
				b := new(builder).in("x", x, true).in("t", tensor.Of(tensor.I64, []int{1}, []int64{2}), false).
					call("y", "torch.nn.functional.ctc_loss", program.Ref("x"), program.Ref("t"), program.Tuple{int64(1), int64(1)}, program.Tuple{int64(1), int64(0)}).
					kw("reduction", "sum").back("y", program.Fill{})
				out := run(t, w, b)
				if out.Status != status {
					t.Errorf("%v: %+v", sum, out)
				}
				if status != backend.OK || out.Status != status {
					continue
				}
				var got []float64
				for _, one := range []*tensor.Tensor{out.Values[0].Tensor, out.Slots[0].Tensor} {
					for i := range one.Len() {
						got = append(got, real(one.At(i)))
					}
				}
				want := []float64{math.Log(4 * 8), 0.25, 0.5, -0.75, -0.875, 0.375, 0.5}
				if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
					t.Errorf("%v, want %v", got, want)
				}
			}
		})
	}
}
