package nn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// now applies operators at once.
type now struct{}

func (now) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := ops.Table().ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	ts, err := call.Execute()
	var out []op.Value
	for _, t := range ts {
		out = append(out, t)
	}
	return out, err
}

var builder = op.Builder{Applier: now{}}

func build(t *testing.T, name string, args []any, kwargs ...op.Kwarg) *nn.Module {
	t.Helper()
	m, err := nn.Modules().Lookup("torch.nn."+name).New(args, kwargs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func describe(m *nn.Module) string {
	var parts []string
	for _, s := range m.State() {
		parts = append(parts, fmt.Sprintf("%s %s%s", s.Name, s.DType, tensor.ShapeString(s.Shape)))
	}
	return strings.Join(parts, "; ")
}

func TestStateIsThatOfPyTorch(t *testing.T) {
	linear := build(t, "Linear", []any{3, 4})
	for _, c := range []struct {
		name   string
		args   []any
		kwargs []op.Kwarg
		state  string
	}{
		{"Linear", []any{3, 4}, nil, "weight float32[4, 3]; bias float32[4]"},
		{"Linear", []any{3, 4, false}, []op.Kwarg{op.Kw("dtype", tensor.F64)}, "weight float64[4, 3]"},
		{"Conv2d", []any{4, 6, 3}, []op.Kwarg{op.Kw("groups", 2)}, "weight float32[6, 2, 3, 3]; bias float32[6]"},
		{"Conv2d", []any{4, 6, 3, 1, "same"}, nil, "weight float32[6, 4, 3, 3]; bias float32[6]"},
		{"ConvTranspose2d", []any{4, 6, []any{3, 2}}, []op.Kwarg{op.Kw("groups", 2)}, "weight float32[4, 3, 3, 2]; bias float32[6]"},
		{"BatchNorm2d", []any{3}, nil, "weight float32[3]; bias float32[3]; running_mean float32[3]; running_var float32[3]; num_batches_tracked int64[]"},
		{"BatchNorm1d", []any{3}, []op.Kwarg{op.Kw("affine", false), op.Kw("track_running_stats", false)}, ""},
		{"LayerNorm", []any{3}, nil, "weight float32[3]; bias float32[3]"},
		{"LayerNorm", []any{[]any{2, 3}}, nil, "weight float32[2, 3]; bias float32[2, 3]"},
		{"MaxPool2d", []any{2}, nil, ""},
		{"Sequential", []any{linear, build(t, "ReLU", nil), linear}, nil, "0.weight float32[4, 3]; 0.bias float32[4]; 2.weight float32[4, 3]; 2.bias float32[4]"},
	} {
		if got := describe(build(t, c.name, c.args, c.kwargs...)); got != c.state {
			t.Errorf("%s%v: state %q, want %q", c.name, c.args, got, c.state)
		}
	}
}

func TestConstructorsRejectAsPyTorchDoes(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []any
		class string
	}{
		{"Conv2d", []any{4, 6}, "TypeError"},
		{"Conv2d", []any{4, 6, 3, 1, 0, 1, 0}, "ValueError"},
		{"Conv2d", []any{4, 6, 3, 1, 0, 1, 3}, "ValueError"},
		{"Conv2d", []any{4, 6, 3, 1, "foo"}, "ValueError"},
		{"Conv2d", []any{4, 6, 3, 2, "same"}, "ValueError"},
		{"Conv2d", []any{4, 6, -1}, "RuntimeError"},
		{"Conv2d", []any{4, 6, 3, 1, 0, 1, 1, true, "foo"}, "ValueError"},
		{"ConvTranspose2d", []any{4, 6, 3, 1, 0, 0, 4}, "ValueError"},
		{"ConvTranspose2d", []any{4, 6, 3, 1, 0, 0, 1, true, 1, "reflect"}, "ValueError"},
		{"Linear", []any{-1, 4}, "RuntimeError"},
		{"Linear", []any{3, 4, true, nil, tensor.I64}, "RuntimeError"},
		{"BatchNorm2d", nil, "TypeError"},
		{"LayerNorm", []any{1.5}, "TypeError"},
		{"Sigmoid", []any{1}, "TypeError"},
		{"Sequential", []any{1}, "TypeError"},
	} {
		_, err := nn.Modules().Lookup("torch.nn."+c.name).New(c.args, nil)
		var e *op.Error
		if !errors.As(err, &e) || e.Class != c.class || e.Op != "torch.nn."+c.name {
			t.Errorf("%s%v: error %v, want a %s of the module", c.name, c.args, err, c.class)
		}
	}
}

func TestLoadChecksAndCallNeedsState(t *testing.T) {
	m := build(t, "Sequential", []any{build(t, "Linear", []any{2, 1})})
	x := tensor.Float64s(tensor.F32, []int{1, 2}, 3, 4)
	if _, err := m.Call(builder, []any{x}, nil); err == nil || !strings.Contains(err.Error(), "weight") {
		t.Errorf("call without state: error %v, want one that names weight", err)
	}
	if err := m.Load("0.weight", tensor.New(tensor.F32, 2, 1)); err == nil || !strings.Contains(err.Error(), "weight") {
		t.Errorf("load of a wrong shape: error %v, want one that names weight", err)
	}
	if err := m.Load("1.weight", x); err == nil {
		t.Error("load of an unknown entry: no error")
	}
	for name, v := range map[string]*tensor.Tensor{"0.weight": x, "0.bias": tensor.Float64s(tensor.F32, []int{1}, 5)} {
		if err := m.Load(name, v); err != nil {
			t.Fatal(err)
		}
	}
	out, err := m.Call(builder, []any{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := out[0].(*tensor.Tensor).Float(0); got != 30 {
		t.Errorf("result %v, want 30", got)
	}
}

func TestBatchNormKeepsRunningStatistics(t *testing.T) {
	x := tensor.Float64s(tensor.F32, []int{2, 1}, 1, 3) // mean 2, unbiased variance 2
	for _, c := range []struct {
		momentum       any
		mean, variance float64 // after two calls in training
	}{
		{0.5, 1.5, 1.75},
		{nil, 2, 2},
	} {
		m := build(t, "BatchNorm1d", []any{1}, op.Kw("momentum", c.momentum))
		for _, train := range []bool{true, true, false} {
			m.Train(train)
			if _, err := m.Call(builder, []any{x}, nil); err != nil {
				t.Fatal(err)
			}
		}
		got := func(name string) float64 { return m.Value(name).(*tensor.Tensor).Float(0) }
		if got("running_mean") != c.mean || got("running_var") != c.variance || got("num_batches_tracked") != 2 {
			t.Errorf("momentum %v: mean %v, variance %v after %v batches, want %v, %v and 2", c.momentum, got("running_mean"), got("running_var"), got("num_batches_tracked"), c.mean, c.variance)
		}
	}
}

func TestOutputSizeChoosesThePadding(t *testing.T) {
	m := build(t, "ConvTranspose2d", []any{1, 1, 3, 2, 0, 0, 1, false})
	if err := m.Load("weight", tensor.New(tensor.F32, 1, 1, 3, 3)); err != nil {
		t.Fatal(err)
	}
	x := tensor.New(tensor.F32, 1, 1, 5, 5)
	out, err := m.Call(builder, []any{x, []any{11, 12}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.ShapeString(out[0].Shape()); got != "[1, 1, 11, 12]" {
		t.Errorf("shape %s, want [1, 1, 11, 12]", got)
	}
	var e *op.Error
	if _, err = m.Call(builder, []any{x, []any{13, 12}}, nil); !errors.As(err, &e) || e.Class != "ValueError" {
		t.Errorf("too large: error %v, want a ValueError", err)
	}
}

// TestInPlaceModulesArePureElsewhere: only a program's variables can be changed.
func TestInPlaceModulesArePureElsewhere(t *testing.T) {
	relu, x := build(t, "ReLU", []any{true}), tensor.Float64s(tensor.F32, []int{2}, -1, 2)
	out, err := relu.Call(builder, []any{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if y := out[0].(*tensor.Tensor); y.Float(0) != 0 || y.Float(1) != 2 || x.Float(0) != -1 {
		t.Errorf("result %v %v, input %v afterwards", y.Float(0), y.Float(1), x.Float(0))
	}
}
