package optim_test

import (
	"errors"
	"math"
	"testing"

	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

func one() []*optim.Param {
	return []*optim.Param{{Name: "w", Value: tensor.Float64s(tensor.F32, []int{2}, 1, 2)}}
}

func TestConstructorsReject(t *testing.T) {
	for _, c := range []struct {
		name, class string
		kwargs      []op.Kwarg
	}{
		{"SGD", "ValueError", nil},
		{"SGD", "ValueError", kw("lr", -0.1)},
		{"SGD", "ValueError", kw("lr", 0.1, "nesterov", true)},
		{"SGD", "TypeError", kw("lr", "fast")},
		{"SGD", "TypeError", kw("rate", 0.1)},
		{"Adam", "ValueError", kw("betas", []float64{0.9, 1})},
		{"Adam", "ValueError", kw("eps", -1.0)},
		{"RMSprop", "ValueError", kw("alpha", -0.1)},
		{"Adagrad", "ValueError", kw("lr_decay", math.NaN())},
		{"Adadelta", "ValueError", kw("rho", 1.5)},
	} {
		_, err := optim.Lookup(c.name).New(one(), nil, c.kwargs...)
		var e *op.Error
		if !errors.As(err, &e) || e.Class != c.class || e.Op != c.name {
			t.Errorf("%s%v: error %v, want a %s", c.name, c.kwargs, err, c.class)
		}
	}
	if _, err := optim.Lookup("Adam").New(one(), nil, kw("fused", true)...); !errors.Is(err, nn.ErrUnsupported) {
		t.Errorf("fused: error %v, want ErrUnsupported", err)
	}
	if _, err := optim.Lookup("Adam").New(nil, nil); err == nil {
		t.Error("no parameters: no error")
	}
	p := one()
	if _, err := optim.Lookup("Adam").NewGroups([]optim.GroupSpec{{Params: p}, {Params: p}}, nil); err == nil {
		t.Error("a parameter in two groups: no error")
	}
}

func TestStepChangesAllOrNothing(t *testing.T) {
	good := &optim.Param{Name: "good", Value: tensor.New(tensor.F32, 2), Grad: tensor.New(tensor.F32, 2)}
	bad := &optim.Param{Name: "bad", Value: tensor.New(tensor.F32, 2), Grad: tensor.New(tensor.F32, 3)}
	o, err := optim.Lookup("SGD").New([]*optim.Param{good, bad}, []any{0.1})
	if err != nil {
		t.Fatal(err)
	}
	was := good.Value
	var e *op.Error
	if err := o.Step(eager.New(ops.Table()).Builder()); !errors.As(err, &e) || e.Class != "RuntimeError" {
		t.Errorf("error %v, want a RuntimeError", err)
	}
	if good.Value != was || len(o.StateDict().State) != 0 {
		t.Error("the other parameter has changed")
	}
}

func TestStepSkipsAndKeepsVariables(t *testing.T) {
	s := eager.New(ops.Table())
	v := s.Leaf(tensor.Float64s(tensor.F32, []int{2}, 1, 2), true)
	moved, still := &optim.Param{Value: v, Grad: tensor.Float64s(tensor.F32, []int{2}, 1, 1)}, one()[0]
	o, err := optim.Lookup("SGD").New([]*optim.Param{moved, still}, []any{0.5})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Step(s.Builder()); err != nil {
		t.Fatal(err)
	}
	if moved.Value != op.Value(v) || v.Float(0) != 0.5 || still.Value.(*tensor.Tensor).Float(0) != 1 {
		t.Errorf("parameters %v and %v", v.Float(0), still.Value)
	}
	o.ZeroGrad(false)
	if g := moved.Grad.(*tensor.Tensor); g.Float(0) != 0 || g.Len() != 2 || still.Grad != nil {
		t.Errorf("gradients %v and %v after ZeroGrad", moved.Grad, still.Grad)
	}
	o.ZeroGrad(true)
	if moved.Grad != nil {
		t.Errorf("gradient %v after ZeroGrad to none", moved.Grad)
	}
}

func TestClipOfNonFinite(t *testing.T) {
	b := eager.New(ops.Table()).Builder()
	p := one()
	if n, err := optim.ClipGradNorm(b, p, 1, 2, true); err != nil || tensorOf(n).Float(0) != 0 {
		t.Errorf("without gradients: %v, %v", n, err)
	}
	p[0].Grad = tensor.Float64s(tensor.F32, []int{2}, 1, math.Inf(1))
	was := p[0].Grad
	var e *op.Error
	if _, err := optim.ClipGradNorm(b, p, 1, 2, true); !errors.As(err, &e) || e.Class != "RuntimeError" || p[0].Grad != was {
		t.Errorf("error %v, gradient %v", err, p[0].Grad)
	}
	n, err := optim.ClipGradNorm(b, p, 1, 2, false)
	if err != nil || !math.IsInf(tensorOf(n).Float(0), 1) || tensorOf(p[0].Grad).Float(0) != 0 {
		t.Errorf("norm %v, error %v, gradient %v", n, err, p[0].Grad)
	}
}

func TestModulesTrain(t *testing.T) {
	m, err := nn.Modules().Lookup("torch.nn.LayerNorm").New([]any{3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := eager.New(ops.Table())
	for _, slot := range m.State() {
		if err := m.Load(slot.Name, s.Leaf(m.Value(slot.Name).(*tensor.Tensor), true)); err != nil {
			t.Fatal(err)
		}
	}
	params := optim.Parameters(m)
	o, err := optim.Lookup("Adam").New(params, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Call(s.Builder(), []any{tensor.Float64s(tensor.F32, []int{1, 3}, 1, 2, 4)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cot, err := s.Backward(out, []op.Value{tensor.Float64s(tensor.F32, []int{1, 3}, 1, 1, 1)}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range params {
		p.Grad = cot[p.Value]
	}
	if err := o.Step(s.Builder()); err != nil {
		t.Fatal(err)
	}
	if got := m.Value("bias").(*eager.Var).Float(0); math.Abs(got+1e-3) > 1e-6 {
		t.Errorf("bias %v after a step of Adam, want -0.001", got)
	}
}
