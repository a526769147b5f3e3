package autograd_test

import (
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/autograd"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestInPlaceProgramsExtend expects of programs with in-place calls that their
// pure form has the same gradients.
func TestInPlaceProgramsExtend(t *testing.T) {
	for name, text := range map[string]string{
		"method":   "y = x * 2\nz = y.mul_(x)\nw = z.sin()",
		"view":     "y = x * 2\nv = y.t()\ns = v[1:]\nu = s.exp_()\nr = v.t()\nw = y * r",
		"item":     "y = x * 2\nr = x[1]\nu = operator.setitem(y, 0, r)\nw = y * y",
		"copied":   "y = x * 2\nr = y.t()\nv = r.reshape(-1)\nu = v.zero_()\nw = y * x",
		"flag":     "y = x * 2\nu = torch.nn.functional.leaky_relu(y, 0.1, inplace=True)\nw = y * x",
		"reshaped": "y = x * 2\nu = y.t_()\nw = y @ x",
		"index":    "y = x * 2\nm = x > 0\nu = y.masked_fill_(m, 1.5)\nw = y * x",
	} {
		t.Run(name, func(t *testing.T) { comparePure(t, text) })
	}
}

func comparePure(t *testing.T, text string) {
	p, err := program.Parse("p.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, uniform, tensor\ncase(\"p\", seed=1)\nx = tensor((4, 3), torch.float64, uniform(-2.0, 2.0, key=5), requires_grad=True)\n"+text+"\nw.backward(uniform(0.0, 1.0, key=7))\n")
	if err != nil {
		t.Fatal(err)
	}
	ext, err := autograd.Extend(p, ops.Table())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ext.Program.Calls {
		if op.InPlace(c.Target) {
			t.Errorf("the pure program calls %s", c.Target)
		}
	}
	want, got := outcome(t, p), outcome(t, ext.Program)
	g := valueOf(ext.Program, nil, got, ext.Grads["x"])
	if g == nil || want.Grad("x") == nil || !g.SameBits(want.Grad("x")) {
		t.Errorf("gradient %v, in place %v\n%s", g, want.Grad("x"), ext.Program)
	}
}

func outcome(t *testing.T, p *program.Program) *backend.Outcome {
	t.Helper()
	var inputs []*tensor.Tensor
	for i := range p.Inputs {
		inputs = append(inputs, p.Inputs[i].Materialize())
	}
	out, err := native.New(ops.Table(), nn.Modules()).Run(t.Context(), &backend.Job{Program: p, Inputs: inputs})
	if err != nil || out.Status != backend.OK {
		t.Fatalf("%v: %+v", err, out)
	}
	return out
}
