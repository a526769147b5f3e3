package derive_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/derive"
	"plumb/backend/native"
	"plumb/backend/worker"
	"plumb/internal/gradcheck"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// forward is native without its gradients, and without some operators.
type forward struct {
	*native.Backend
	lacks  string // in a target
	raises string
	asks   bool // it does not know calls about gradients
}

func (f *forward) Info() backend.Info {
	info := f.Backend.Info()
	info.ForwardOnly = true
	return info
}

func (f *forward) Signatures(string) ([]*op.Sig, error) { return nil, nil }

func (f *forward) In(string) (backend.Backend, error) { return f, nil }

func (f *forward) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	return backend.RunEach(ctx, f, jobs)
}

func (f *forward) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	p := *job.Program
	p.Backward, p.Second = nil, program.Fill{}
	p.Inputs = slices.Clone(p.Inputs)
	for i := range p.Inputs {
		p.Inputs[i].RequiresGrad = false
	}
	for i := range p.Calls {
		if f.lacks != "" && strings.Contains(p.Calls[i].Target, f.lacks) {
			return &backend.Outcome{Status: backend.Unsupported, Message: "no " + f.lacks, Call: i, ForwardOnly: true}, nil
		}
		if f.asks && (p.Calls[i].IsBackward() || slices.Contains([]string{"torch.autograd.grad", "Tensor.retain_grad", "getattr"}, p.Calls[i].Target)) {
			return &backend.Outcome{Status: backend.Unsupported, Message: "no gradients within a program", Call: i, ForwardOnly: true}, nil
		}
		if f.raises != "" && strings.Contains(p.Calls[i].Target, f.raises) {
			return &backend.Outcome{Status: backend.Raised, Message: "wrong", Call: i, ForwardOnly: true}, nil
		}
	}
	out, err := f.Backend.Run(ctx, &backend.Job{Program: &p, Inputs: job.Inputs, State: job.State})
	out.ForwardOnly = true
	out.Slots = slices.DeleteFunc(out.Slots, func(s backend.Slot) bool { return s.Part.IsGradient() })
	return out, err
}

func derived(f *forward) backend.Backend { return derive.New(f, ops.Table(), nn.Modules()) }

// TestGradientsOfTheTable: the gradients that a forward-only subject computes by
// programs are those of native to the bit, of every operator whose gradient traces.
func TestGradientsOfTheTable(t *testing.T) {
	table := ops.Table()
	whole := native.New(table, nn.Modules())
	subject := derived(&forward{Backend: whole})
	compared, left := 0, map[string]string{}
	for _, d := range table.Defs() {
		if !d.Differentiable() {
			continue
		}
		c, err := gradcheck.Draw(table, d, tensor.F64, 0, 0)
		if err != nil {
			t.Errorf("%s: %v", d.ID(), err)
			continue
		}
		job := &backend.Job{Program: c.Program(program.OwnPrefix + d.ID()), Inputs: c.Inputs()}
		want, _ := whole.Run(t.Context(), job)
		got, err := subject.Run(t.Context(), job)
		if err != nil || got.Status != want.Status {
			t.Errorf("%s: %v, %s %s, want %s", d.ID(), err, got.Status, got.Message, want.Status)
			continue
		}
		if got.NoGradients != "" {
			left[d.ID()] = got.NoGradients
			continue
		}
		for _, s := range want.Slots {
			if !s.Part.IsGradient() || s.Tensor == nil {
				continue
			}
			compared++
			if g := got.At(s.Place); g == nil || !g.SameBits(s.Tensor) {
				t.Errorf("%s: gradient of %s: %v, want %v", d.ID(), s.Place, g, s.Tensor)
			}
		}
	}
	for id, why := range left {
		if !slices.ContainsFunc(untraced, func(w string) bool { return strings.Contains(why, w) }) {
			t.Errorf("%s: %s", id, why)
		}
	}
	if compared < 300 {
		t.Errorf("%d gradients were compared; left were %v", compared, left)
	}
}

// untraced is why a program of forward calls does not have a gradient.
var untraced = []string{"draws", "changes its arguments", "depends on elements", "has no elements"}

// product is the gradient of x * relu(x) by x.
func product() *backend.Job {
	x := tensor.New(tensor.F32, 3)
	for i, v := range []complex128{-1, 2, 3} {
		x.Set(i, v)
	}
	return &backend.Job{Inputs: []*tensor.Tensor{x}, Program: &program.Program{
		Name:     "product",
		Inputs:   []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{3}, RequiresGrad: true}},
		Calls:    []program.Call{{Result: "y", Target: "torch.relu", Args: []any{program.Ref("x")}}, {Result: "z", Target: "torch.mul", Args: []any{program.Ref("x"), program.Ref("y")}}},
		Backward: []program.Backward{{Value: "z"}},
	}}
}

// TestGaps: a gradient whose program has a call that the subject lacks is none, for
// that reason; one whose call fails is a failure of the backward pass.
func TestGaps(t *testing.T) {
	whole := native.New(ops.Table(), nn.Modules())
	run := func(f *forward) *backend.Outcome {
		out, err := derived(f).Run(t.Context(), product())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	good := run(&forward{Backend: whole})
	if g := good.Grad("x"); good.ForwardOnly || !good.Derived || g == nil || g.At(0) != 0 || g.At(1) != 4 || g.At(2) != 6 {
		t.Errorf("%+v", good)
	}
	if lacking := run(&forward{Backend: whole, lacks: "torch.where"}); !lacking.ForwardOnly || lacking.Derived || lacking.Grad("x") != nil || lacking.NoGradients != "no torch.where" || lacking.Status != backend.OK {
		t.Errorf("%+v", lacking)
	}
	if wrong := run(&forward{Backend: whole, raises: "torch.where"}); wrong.Status != backend.Raised || wrong.Call != 2 || !strings.Contains(wrong.Message, "in torch.where of the gradient: wrong") {
		t.Errorf("%+v", wrong)
	}
}

// TestProgramsThatAsk: a program that itself asks for gradients is one of forward calls as a
// whole, whose values and gradients are native's.
func TestProgramsThatAsk(t *testing.T) {
	native := native.New(ops.Table(), nn.Modules())
	const given = "x = tensor((3,), torch.float32, [-1.0, 2.0, 3.0], requires_grad=True)\ns = x * x\ny = torch.tanh(s)\nz = torch.sum(y)\n"
	for name, asked := range map[string]string{
		"steps":        "b = z.backward()\ng = x.grad\nh = torch.mul(g, 2.0)\n",
		"second order": "g = torch.autograd.grad(z, (x, s), create_graph=True)\nh = g[0]\nr = h * h\nu = torch.sum(r)\nu.backward()\n",
		"kept":         "k = s.retain_grad()\nb = z.backward()\ng = s.grad\n",
		"about them":   "r = s.requires_grad\n",
		"a short form": "a = torch.arange(3)\nb = z.backward()\ng = x.grad\nh = torch.mul(g, a)\n",
	} {
		p, err := program.Parse("p.py", given+asked)
		if err != nil {
			t.Fatal(err)
		}
		job := backend.NewJob(p)
		want, _ := native.Run(t.Context(), job)
		for _, lacks := range []string{"tanh", ""} {
			got, err := derived(&forward{Backend: native, lacks: lacks, asks: true}).Run(t.Context(), job)
			switch {
			case err != nil || want.Status != backend.OK:
				t.Fatalf("%s: %v, %+v", name, err, want)
			case lacks != "":
				if got.Status != backend.Unsupported || got.Message != "no tanh" {
					t.Errorf("%s without tanh: %s %s", name, got.Status, got.Message)
				}
				continue
			case got.Status != backend.OK || got.ForwardOnly || !got.Derived || !sameValues(got.Values, want.Values):
				t.Errorf("%s: %s %s\n%+v, want\n%+v", name, got.Status, got.Message, got.Values, want.Values)
			}
			if g, w := got.Grad("x"), want.Grad("x"); (g == nil) != (w == nil) || g != nil && !g.SameBits(w) {
				t.Errorf("%s: gradient %v, want %v", name, g, w)
			}
		}
	}
}

// TestDrawsOfProgramsThatAsk: a program that asks for gradients draws once, whose
// gradients are those of what it drew; one that does not is forward only.
func TestDrawsOfProgramsThatAsk(t *testing.T) {
	f := &forward{Backend: native.New(ops.Table(), nn.Modules()), asks: true}
	const given = "x = tensor((8,), torch.float32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], requires_grad=True)\n" +
		"y = torch.nn.functional.dropout(x, 0.5, True)\nz = torch.sum(y)\n"
	p, err := program.Parse("p.py", given+"b = z.backward()\ng = x.grad\nw = torch.mul(g, x)\n")
	if err != nil {
		t.Fatal(err)
	}
	out, err := derived(f).Run(t.Context(), backend.NewJob(p))
	if err != nil || out.Status != backend.OK {
		t.Fatalf("%v, %+v", err, out)
	}
	if y, w := out.Values[0].Tensor, out.Values[4].Tensor; !y.SameBits(w) || out.Values[3].Tensor.SameBits(y) {
		t.Errorf("drew %v, and its gradient times its input is %v", y, w)
	}
	if p, err = program.Parse("p.py", given+"z.backward()\n"); err != nil {
		t.Fatal(err)
	}
	out, err = derived(f).Run(t.Context(), backend.NewJob(p))
	if err != nil || out.Status != backend.OK || !out.ForwardOnly || !strings.Contains(out.NoGradients, "draws") {
		t.Errorf("%v, %+v", err, out)
	}
}

func sameValues(got, want []backend.Value) bool {
	return slices.EqualFunc(got, want, func(g, w backend.Value) bool {
		return (g.Tensor == nil) == (w.Tensor == nil) && (g.Tensor == nil || g.Tensor.SameBits(w.Tensor)) && g.Plain == w.Plain && sameValues(g.Tuple, w.Tuple)
	})
}

// TestONNX: an engine that runs ONNX computes gradients, call by call and as one model.
func TestONNX(t *testing.T) {
	for _, name := range []string{"onnx:ort", "onnx:openvino"} {
		t.Run(name, func(t *testing.T) {
			path, _, err := worker.Find(name, "")
			if err != nil {
				t.Skip("needs a Python with it: ", strings.SplitN(err.Error(), "\n", 2)[0])
			}
			w, err := worker.Open(t.Context(), worker.Config{Framework: name, Python: path})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if !w.ByProgram() || !w.Info().ForwardOnly {
				t.Errorf("%+v", w.Info())
			}
			b := derive.New(w, ops.Table(), nn.Modules())
			for _, mode := range []string{"eager", "graph"} {
				in, err := b.In(mode)
				if err != nil {
					t.Fatal(err)
				}
				out, err := in.Run(t.Context(), product())
				if err != nil {
					t.Fatal(err)
				}
				if g := out.Grad("x"); in.Info().ForwardOnly || out.Status != backend.OK || g == nil || g.At(0) != 0 || g.At(1) != 4 || g.At(2) != 6 {
					t.Errorf("%s: %+v", mode, out)
				}
			}
		})
	}
}
