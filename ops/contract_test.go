package ops_test

import (
	"errors"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func ones(d tensor.DType, shape ...int) *tensor.Tensor {
	t := tensor.New(d, shape...)
	for i := range t.Len() {
		t.Set(i, 1)
	}
	return t
}

func ones32(shape ...int) *tensor.Tensor { return ones(tensor.F32, shape...) }

// The classes are those that PyTorch 1.13.1 raises.
var rejections = []struct {
	name  string
	args  []any
	class string
}{
	{"torch.matmul", []any{ones32(), ones32(3)}, "RuntimeError"},
	{"torch.matmul", []any{ones32(2, 3), ones32(2, 3)}, "RuntimeError"},
	{"torch.matmul", []any{ones32(5, 2, 3), ones32(4, 3, 2)}, "RuntimeError"},
	{"torch.matmul", []any{ones32(2, 3), ones(tensor.F64, 3, 2)}, "RuntimeError"},
	{"torch.matmul", []any{ones(tensor.Bool, 2, 3), ones(tensor.Bool, 3, 2)}, "RuntimeError"},
	{"operator.matmul", []any{ones32(2, 3), 2}, "TypeError"},
	{"torch.mm", []any{ones32(2, 3), ones32(3)}, "RuntimeError"},
	{"torch.bmm", []any{ones32(2, 3, 4), ones32(1, 4, 3)}, "RuntimeError"},
	{"torch.nn.functional.linear", []any{ones32(2, 3), ones32(4, 2)}, "RuntimeError"},
	{"torch.nn.functional.linear", []any{ones32(2, 3), ones32(4, 3), ones32(5)}, "RuntimeError"},
	{"torch.nn.functional.linear", []any{ones32(2, 3), ones32(3), ones32(1)}, "RuntimeError"},
	{"torch.nn.functional.linear", []any{ones32(2, 3), nil}, "TypeError"},
	{"torch.conv2d", []any{ones32(7, 8), ones32(6, 4, 3, 3)}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 3, 7, 8), ones32(6, 4, 3, 3)}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 3, 3), ones32(5)}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 3, 3), nil, 0}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 3, 3), nil, 1, -1}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 3, 3), nil, 1, 0, 0}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(5, 2, 3, 3), nil, 1, 0, 1, 2}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 8, 3)}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 3, 3), nil, 2, "same"}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 3, 3), nil, 1, "SAME"}, "RuntimeError"},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 3, 3), nil, 1.5}, "TypeError"},
	{"torch.conv_transpose2d", []any{ones32(2, 4, 7, 8), ones32(4, 6, 3, 3), nil, 1, 0, 1}, "RuntimeError"},
	{"torch.conv_transpose2d", []any{ones32(2, 4, 7, 8), ones32(4, 6, 3, 3), nil, 1, 5}, "RuntimeError"},
	{"torch.conv_transpose2d", []any{ones32(2, 4, 7, 8), ones32(4, 6, 3, 3), nil, 1, "same"}, "TypeError"},
	{"torch.conv_transpose2d", []any{ones32(2, 4, 0, 8), ones32(4, 6, 3, 3)}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones32(2, 3, 7, 8), 0}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones32(2, 3, 7, 8), 3, 2, 2}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones32(2, 3, 7, 8), []any{3, 4}, 2, []any{2, 0}}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones32(2, 3, 7, 8), []any{4, 3}, 2, []any{0, 2}}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones32(2, 3, 7, 8), 9}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones32(2, 0, 7, 8), 2}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones(tensor.I64, 2, 3, 7, 8), 2}, "RuntimeError"},
	{"torch.max_pool2d", []any{ones32(2, 3, 7, 8), 2, nil, 0, 1, false, true}, "TypeError"},
	{"torch.softmax", []any{ones32(2, 3), 2}, "IndexError"},
	{"torch.softmax", []any{ones32(), 1}, "IndexError"},
	{"torch.softmax", []any{ones32(2, 3)}, "TypeError"},
	{"torch.softmax", []any{ones32(2, 3), nil}, "RuntimeError"},
	{"torch.log_softmax", []any{ones(tensor.I64, 2, 3), 1}, "RuntimeError"},
	{"torch.nn.functional.layer_norm", []any{ones32(2, 3), 3}, "TypeError"},
	{"torch.nn.functional.layer_norm", []any{ones32(2, 3), []int{}}, "RuntimeError"},
	{"torch.nn.functional.layer_norm", []any{ones32(2, 3), []int{2}}, "RuntimeError"},
	{"torch.nn.functional.layer_norm", []any{ones32(2, 3), []int{3}, ones32(1, 3)}, "RuntimeError"},
	{"torch.nn.functional.batch_norm", []any{ones32(1, 3), nil, nil, nil, nil, true}, "ValueError"},
	{"torch.nn.functional.batch_norm", []any{ones32(2, 3), nil, nil}, "RuntimeError"},
	{"torch.nn.functional.batch_norm", []any{ones32(2, 3), ones32(4), ones32(3)}, "RuntimeError"},
	{"torch.nn.functional.batch_norm", []any{ones32(3), nil, nil, nil, nil, true}, "IndexError"},
}

func TestIllegalCallsAreRejectedAsPyTorchDoes(t *testing.T) {
	for _, c := range rejections {
		call, err := ops.Table().Resolve(c.name, c.args, nil)
		if err == nil {
			_, err = call.Execute()
		}
		var e *op.Error
		if !errors.As(err, &e) || e.Class != c.class {
			t.Errorf("%s%v: error %v, want a %s", c.name, c.args, err, c.class)
		}
	}
}

var accepted = []struct {
	name  string
	args  []any
	shape string
	first float64 // element of the result
}{
	{"torch.matmul", []any{ones32(3), ones32(5, 3, 2)}, "[5, 2]", 3},
	{"torch.matmul", []any{ones32(4, 1, 2, 3), ones32(5, 3, 4)}, "[4, 5, 2, 4]", 3},
	{"torch.matmul", []any{ones32(2, 0), ones32(0, 3)}, "[2, 3]", 0},
	{"torch.matmul", []any{ones(tensor.BF16, 3), ones(tensor.BF16, 3)}, "[]", 3},
	{"torch.matmul", []any{ones(tensor.F16, 3), ones(tensor.F16, 3)}, "[]", 3},
	{"torch.conv2d", []any{ones(tensor.F16, 1, 1, 3, 3), ones(tensor.F16, 1, 1, 2, 2)}, "[1, 1, 2, 2]", 4},
	{"torch.nn.functional.linear", []any{ones32(5, 2, 3), ones32(4, 3), ones32(1)}, "[5, 2, 4]", 4},
	{"torch.nn.functional.linear", []any{ones32(2, 3, 3), ones32(3)}, "[2, 3]", 3},
	{"torch.conv2d", []any{ones32(4, 7, 8), ones32(6, 4, 3, 3), ones32(6)}, "[6, 5, 6]", 37},
	{"torch.conv2d", []any{ones32(2, 4, 7, 8), ones32(6, 4, 2, 4), nil, 1, "same"}, "[2, 6, 7, 8]", 24},
	{"torch.conv2d", []any{ones32(2, 0, 7, 8), ones32(6, 0, 3, 3)}, "[2, 0, 5, 6]", 0},
	{"torch.conv_transpose2d", []any{ones32(2, 4, 7, 8), ones32(4, 3, 3, 3), nil, 2, 1, 1, 2}, "[2, 6, 14, 16]", 2},
	{"torch.conv_transpose2d", []any{ones32(4, 7, 8), ones32(4, 6, 3, 3), nil, 2, 0, 3, 1, 4}, "[6, 24, 26]", 4},
	{"torch.max_pool2d", []any{ones32(2, 3, 7, 8), 3, 2, 1, 1, true}, "[2, 3, 4, 5]", 1},
	{"torch.max_pool2d", []any{ones32(3, 7, 8), []any{2}, []any{}}, "[3, 3, 4]", 1},
	{"torch.softmax", []any{ones32(), -1}, "[]", 1},
	{"torch.nn.functional.softmax", []any{ones32(2, 4)}, "[2, 4]", 0.25},
	{"torch.nn.functional.layer_norm", []any{ones32(2, 3), []int{2, 3}}, "[2, 3]", 0},
	{"torch.nn.functional.batch_norm", []any{ones32(0, 3), nil, nil, nil, nil, true}, "[0, 3]", 0},
}

func TestLegalCallsHaveTheShapeAndValueOfPyTorch(t *testing.T) {
	for _, c := range accepted {
		call, err := ops.Table().Resolve(c.name, c.args, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		out, err := call.Execute()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := tensor.ShapeString(out[0].Shape()); got != c.shape {
			t.Errorf("%s%v: shape %s, want %s", c.name, c.args, got, c.shape)
		} else if out[0].Len() > 0 && out[0].Float(0) != c.first {
			t.Errorf("%s%v: first element %v, want %v", c.name, c.args, out[0].Float(0), c.first)
		}
	}
}

func TestBatchNormUpdatesTheRunningStatistics(t *testing.T) {
	x := tensor.Float64s(tensor.F32, []int{4, 1}, 1, 2, 3, 6)
	mean, variance := tensor.New(tensor.F32, 1), ones32(1)
	call, err := ops.Table().Resolve("torch.nn.functional.batch_norm", []any{x, mean, variance, nil, nil, true, 0.5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Execute(); err != nil {
		t.Fatal(err)
	}
	if mean.Float(0) != 1.5 || variance.Float(0) != float64(float32(0.5+0.5*14.0/3)) {
		t.Errorf("running mean %v and variance %v, want 1.5 and %v", mean.Float(0), variance.Float(0), 0.5+0.5*14.0/3)
	}
}
