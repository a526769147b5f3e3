package ops_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestKinks compares values and gradients at kinks, bounds and special numbers
// with those that PyTorch 1.13.1 printed in float32.
func TestKinks(t *testing.T) {
	for _, c := range []struct {
		id             string
		input          string
		args           []any
		values, slopes string
	}{
		{"relu6", "0 6 -0 nan -inf inf", nil, "0 6 -0 nan 0 6", "0 0 0 1 0 0"},
		{"hardtanh", "-1 1 nan -inf inf", nil, "-1 1 nan -1 1", "0 0 1 0 0"},
		{"clamp", "-1 1 nan -inf inf 0", []any{-1, 1}, "-1 1 nan -1 1 0", "1 1 0 0 0 1"},
		{"clamp", "-1 1 1.5 2 3 nan", []any{2, 1}, "1 1 1 1 1 nan", "0 0 0 0 0 0"},
		{"clamp", "-1 1 nan", []any{math.NaN(), 1}, "nan nan nan", "0 0 0"},
		{"clamp_min", "-1 1 nan", []any{-1}, "-1 1 nan", "1 1 0"},
		{"clamp_max", "-1 1 nan -inf inf", []any{1}, "-1 1 nan -inf 1", "1 1 0 1 0"},
		{"hardswish", "-3 0 nan -inf inf", nil, "-0 0 nan nan inf", "-0.5 0.5 1 0 1"},
		{"hardsigmoid", "-3 3 0 nan -inf inf", nil, "0 1 0.5 nan 0 1", "0 0 0.16666667 0 0 0"},
		{"elu", "0 nan -inf inf -1", nil, "0 nan -1 inf -0.63212055", "1 1 0 1 0.36787945"},
		{"elu", "0 -1 1", []any{-2.0}, "0 1.2642411 1", "-2 -0.735758901 1"},
		{"celu", "0 -1 1", []any{2.0}, "0 -0.78693867 1", "1 0.60653067 1"},
		{"selu", "0 -1 nan 1", nil, "0 -1.1113307 nan 1.0507010", "1.7580993 0.64676863 1.0507010 1.0507010"},
		{"softshrink", "-0.5 0.5 0 nan -inf inf", nil, "0 0 0 0 -inf inf", "0 0 0 1 1 1"},
		{"hardshrink", "-0.5 0.5 0 nan -inf inf", nil, "0 0 0 nan -inf inf", "0 0 0 1 1 1"},
		{"hardshrink", "-1 0.5 nan 1", []any{-1.0}, "-1 0.5 nan 1", "1 1 1 1"},
		{"threshold", "1 0.5 2 nan", []any{1.0, 9.0}, "9 9 2 nan", "0 0 1 1"},
		{"softplus", "20 21 nan -inf inf", nil, "20 21 nan 0 inf", "1 1 nan 0 1"},
		{"softplus", "0.5 0.4 0.6", []any{2.0, 1.0}, "0.65663081 0.58555031 0.6", "0.7310586 0.68997449 1"},
		{"softplus", "1 -30", []any{0.0, 20.0}, "inf inf", "0.5 0.5"},
		{"logsigmoid", "0 nan -inf inf -90", nil, "-0.69314718 nan -inf 0 -90", "0.5 nan 1 0 1"},
		{"silu", "0 nan -inf inf", nil, "0 nan nan inf", "0.5 nan nan nan"},
		{"mish", "0 nan -inf inf", nil, "0 nan nan inf", "0.6 nan nan nan"},
		{"softsign", "0 nan inf", nil, "0 nan nan", "1 nan nan"},
		{"tanhshrink", "0 nan inf", nil, "0 nan inf", "0 nan 1"},
		{"reciprocal", "0 -0 2", nil, "inf -inf 0.5", "-inf -inf -0.25"},
		{"rsqrt", "0 -0 2 -1", nil, "inf -inf 0.70710677 nan", "-inf inf -0.17677668 nan"},
		{"frac", "-1.5 -1 1.5 inf -0", nil, "-0.5 0 0.5 nan 0", "1 1 1 1 1"},
		{"round", "0.5 1.5 -0.5", nil, "0 2 -0", "0 0 0"},
		{"log1p", "-1 -2 0", nil, "-inf nan 0", "inf -1 1"},
		{"acosh", "1 0.5", nil, "0 nan", "inf nan"},
		{"asin", "1 2", nil, "1.5707964 nan", "inf nan"},
		{"atanh", "1 2", nil, "inf nan", "inf -0.33333334"},
	} {
		t.Run(fmt.Sprint(c.id, c.args), func(t *testing.T) {
			value, gradient := valueAndGradient(t, c.id, numbers(t, c.input), c.args)
			sameNumbers(t, "value", c.input, value, numbers(t, c.values))
			sameNumbers(t, "gradient", c.input, gradient, numbers(t, c.slopes))
		})
	}
}

func numbers(t *testing.T, text string) *tensor.Tensor {
	t.Helper()
	var vs []float64
	for _, field := range strings.Fields(text) {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	return tensor.Float64s(tensor.F32, []int{len(vs)}, vs...)
}

// valueAndGradient applies an operator and differentiates the sum of its result.
func valueAndGradient(t *testing.T, id string, x *tensor.Tensor, args []any) (value, gradient *tensor.Tensor) {
	t.Helper()
	s := eager.New(ops.Table())
	leaf := s.Leaf(x, true)
	out, err := s.Apply(id, append([]any{leaf}, args...), nil)
	if err != nil {
		t.Fatal(err)
	}
	y := out[0].(*eager.Var)
	ones := tensor.New(y.DType(), y.Shape()...)
	for i := range ones.Len() {
		ones.Set(i, 1)
	}
	grads, err := s.Backward(out, []op.Value{s.Leaf(ones, false)}, false)
	if err != nil {
		t.Fatal(err)
	}
	return y.Tensor, grads[leaf].(*eager.Var).Tensor
}

func sameNumbers(t *testing.T, what, input string, got, want *tensor.Tensor) {
	t.Helper()
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		if g != w && !(math.Abs(g-w) <= 3e-7*math.Abs(w)) && !(g != g && w != w) {
			t.Errorf("%s at element %d of %s is %v, want %v", what, i, input, g, w)
		}
	}
}

// TestRejectionsOfElementwise names calls that PyTorch 1.13.1 rejects.
func TestRejectionsOfElementwise(t *testing.T) {
	x, i, b := tensor.New(tensor.F32, 2), tensor.New(tensor.I64, 2), tensor.New(tensor.Bool, 2)
	u, z := tensor.New(tensor.U8, 2), tensor.New(tensor.C64, 2)
	for _, r := range []struct {
		name  string
		args  []any
		class string
	}{
		{"torch.floor", []any{b}, "RuntimeError"},
		{"torch.round", []any{z}, "RuntimeError"},
		{"torch.frac", []any{i}, "RuntimeError"},
		{"torch.log1p", []any{z}, "RuntimeError"},
		{"torch.clamp", []any{x}, "RuntimeError"},
		{"torch.clamp", []any{b, true}, "RuntimeError"},
		{"torch.clamp", []any{x, -1e40, 2}, "RuntimeError"},
		{"torch.clamp", []any{z, 0, 1}, "RuntimeError"},
		{"torch.clamp_min", []any{i, nil}, "TypeError"},
		{"torch.nn.functional.hardtanh", []any{u, 1, 2}, ""},
		{"torch.nn.functional.relu6", []any{b}, "RuntimeError"},
		{"torch.nn.functional.silu", []any{i}, "RuntimeError"},
		{"torch.nn.functional.mish", []any{z}, "RuntimeError"},
		{"torch.nn.functional.softsign", []any{b}, "RuntimeError"},
		{"torch.nn.functional.softshrink", []any{x, -1.0}, "RuntimeError"},
		{"torch.nn.functional.celu", []any{x, 0}, "RuntimeError"},
		{"torch.nn.functional.elu", []any{x, 1i}, "RuntimeError"},
		{"torch.nn.functional.threshold", []any{u, 300, -5}, "RuntimeError"},
		{"torch.nn.functional.threshold", []any{x, 1, 1e40}, "RuntimeError"},
	} {
		t.Run(fmt.Sprint(r.name, r.args), func(t *testing.T) {
			if got := classOf(r.name, r.args); got != r.class {
				t.Errorf("class %q, want %q", got, r.class)
			}
		})
	}
}

// TestBoundsOfEitherSign: -0 is a bound of 0 or lies at it, and is what a product
// with a mask makes of an element below 0; a library may return either.
func TestBoundsOfEitherSign(t *testing.T) {
	x := tensor.New(tensor.F32, 1)
	for name, args := range map[string][]any{
		"torch.clamp":                    {x, 0.0, 6.0},
		"torch.clip":                     {x, x, x},
		"torch.clamp_min":                {x, x},
		"torch.relu":                     {x},
		"torch.nn.functional.relu6":      {x},
		"torch.nn.functional.hardtanh":   {x, 0.0, 6.0},
		"torch.nn.functional.hardshrink": {x},
		"torch.nn.functional.hardswish":  {x},
	} {
		call, err := ops.Table().Resolve(name, args, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !call.Def.Tol.AnyZero {
			t.Errorf("%s: a zero has to have one sign", name)
		}
	}
}
