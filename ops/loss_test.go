package ops_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestRMSNorm compares rms_norm, which PyTorch has from 2.4 on, with its formula.
func TestRMSNorm(t *testing.T) {
	s := &op.Sampler{Source: choice.New(3), DType: tensor.F64}
	x, w := s.Tensor(-2, 2, 3, 2, 4), s.Tensor(-2, 2, 2, 4)
	call, err := ops.Table().Resolve("torch.nn.functional.rms_norm", []any{x, []int{2, 4}, w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := call.Execute()
	if err != nil {
		t.Fatal(err)
	}
	for row := range 3 {
		squares := 0.0
		for i := range 8 {
			squares += x.Float(row*8+i) * x.Float(row*8+i)
		}
		scale := 1 / math.Sqrt(squares/8+0x1p-52)
		for i := range 8 {
			want := x.Float(row*8+i) * scale * w.Float(i)
			if got := out[0].Float(row*8 + i); math.Abs(got-want) > 1e-12 {
				t.Errorf("element %d of row %d is %v, want %v", i, row, got, want)
			}
		}
	}
}

// ctcOfScores is the sum of ctc_loss of log_softmax of the scores.
func ctcOfScores(t *testing.T, x *eager.Var, s *eager.Session) op.Value {
	t.Helper()
	var loss op.Value
	err := op.Catch(func() {
		b := s.Builder()
		targets := tensor.Of(tensor.I64, []int{2, 3}, []int64{1, 1, 2, 2, 1, 3})
		loss = b.Op("ctc_loss", b.Op("log_softmax", x, 2), targets, []int{5, 4}, []int{3, 2}, 0, "sum")
	})
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// TestCTCGradient compares the gradient through log_softmax, which normalises,
// with difference quotients.
func TestCTCGradient(t *testing.T) {
	s := eager.New(ops.Table())
	x := s.Leaf((&op.Sampler{Source: choice.New(1), DType: tensor.F64}).Tensor(-2, 2, 5, 2, 4), true)
	one := tensor.Float64s(tensor.F64, nil, 1)
	grads, err := s.Backward([]op.Value{ctcOfScores(t, x, s)}, []op.Value{one}, false)
	if err != nil {
		t.Fatal(err)
	}
	g := grads[x].(*eager.Var)
	at := func(i int, v complex128) float64 {
		old := x.At(i)
		defer x.Set(i, old)
		x.Set(i, old+v)
		return ctcOfScores(t, x, eager.New(ops.Table())).(*eager.Var).Float(0)
	}
	for i := range x.Len() {
		want := (at(i, 1e-5) - at(i, -1e-5)) / 2e-5
		if math.Abs(g.Float(i)-want) > 1e-7 {
			t.Errorf("element %d: gradient %v, difference quotient %v", i, g.Float(i), want)
		}
	}
}

func TestLossRejections(t *testing.T) {
	x := tensor.Float64s(tensor.F32, []int{2, 3}, 0, 1, 2, 3, 4, 5)
	classes := tensor.Of(tensor.I64, []int{2}, []int64{1, 3})
	for _, c := range []struct {
		name  string
		args  []any
		kw    []op.Kwarg
		class string
		want  string
	}{
		{"nll_loss", []any{x, classes}, nil, "IndexError", "nll_loss: Target 3 is out of bounds"},
		{"multi_margin_loss", []any{x, classes}, nil, "RuntimeError", "multi_margin_loss: argument 'target' is out of range"},
		{"mse_loss", []any{x, x}, []op.Kwarg{op.Kw("reduction", "max")}, "ValueError", "mse_loss: max is not a valid value for argument 'reduction'"},
		{"binary_cross_entropy", []any{x, x}, nil, "RuntimeError", "binary_cross_entropy: all elements of argument 'input' should be between 0 and 1"},
		{"group_norm", []any{x, 2}, nil, "RuntimeError", "group_norm: the 3 channels of argument 'input'"},
	} {
		call, err := ops.Table().Resolve("torch.nn.functional."+c.name, c.args, c.kw)
		if err == nil {
			_, err = call.Execute()
		}
		var rejection *op.Error
		if !errors.As(err, &rejection) || rejection.Class != c.class || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s: %s", c.name, err, c.class, c.want)
		}
	}
}
