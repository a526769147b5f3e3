package ops_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestNearestInVolumes: halfway between two elements the even one is the nearest, as
// PyTorch 2.9 printed.
func TestNearestInVolumes(t *testing.T) {
	x := tensor.Float64s(tensor.F32, []int{1, 1, 1, 1, 4}, 0, 1, 2, 3)
	places := tensor.Float64s(tensor.F32, []int{1, 1, 1, 2, 3}, -0.5, 0, 0, 0.5, 0, 0)
	got := call(t, "grid_sample", []any{x, places, "nearest"})
	if got.Float(0) != 0 || got.Float(1) != 2 {
		t.Errorf("elements %v and %v, want 0 and 2", got.Float(0), got.Float(1))
	}
}

// TestKnownValues compares results with those that PyTorch 1.13.1 printed.
func TestKnownValues(t *testing.T) {
	x := tensor.Float64s(tensor.F32, []int{2, 3}, -2, -1, 0, 1, 2, 3)
	i := tensor.Of(tensor.I64, []int{4}, []int64{-7, 7, -3, 0})
	j := tensor.Of(tensor.I64, []int{4}, []int64{2, -2, 2, 5})
	f := tensor.Float64s(tensor.F32, []int{4}, math.NaN(), -1, 0, 2)
	u := tensor.Of(tensor.U8, []int{2}, []uint8{200, 100})
	b := tensor.Of(tensor.Bool, []int{4}, []bool{true, false, true, true})
	index := tensor.Of(tensor.I64, []int{2, 2}, []int64{2, 0, 1, 1})
	for _, c := range []struct {
		id     string
		args   []any
		result string
		values string
	}{
		{"slice", []any{x, 1, 0, 3, 2}, "float32[2, 2]", "-2 0 1 3"},
		{"slice", []any{x, 1, -2}, "float32[2, 2]", "-1 0 2 3"},
		{"narrow", []any{x, 1, 1, 2}, "float32[2, 2]", "-1 0 2 3"},
		{"transpose", []any{x, 0, -1}, "float32[3, 2]", "-2 1 -1 2 0 3"},
		{"permute", []any{x, []int{1, 0}}, "float32[3, 2]", "-2 1 -1 2 0 3"},
		{"flatten", []any{x}, "float32[6]", "-2 -1 0 1 2 3"},
		{"reshape", []any{x, []int{3, -1}}, "float32[3, 2]", "-2 -1 0 1 2 3"},
		{"unsqueeze", []any{x, -1}, "float32[2, 3, 1]", "-2 -1 0 1 2 3"},
		{"expand", []any{x, []int{2, -1, 3}}, "float32[2, 2, 3]", "-2 -1 0 1 2 3 -2 -1 0 1 2 3"},
		{"t", []any{x}, "float32[3, 2]", "-2 1 -1 2 0 3"},
		{"slice_scatter", []any{x, x.Narrow(1, 1, 1, 1), 1, 2, 3}, "float32[2, 3]", "-2 -1 -1 1 2 2"},
		{"cat", []any{[]any{x, x.Narrow(1, 1, 1, 1)}, 1}, "float32[2, 4]", "-2 -1 0 -1 1 2 3 2"},
		{"gather", []any{x, 1, index}, "float32[2, 2]", "0 -2 2 2"},
		{"scatter.value", []any{x, 1, index, 9.0}, "float32[2, 3]", "9 -1 9 1 9 3"},
		{"scatter_add", []any{x, 1, index, x}, "float32[2, 3]", "-3 -1 -2 1 5 3"},
		{"sum", []any{x, 0}, "float32[3]", "-1 1 3"},
		{"sum", []any{x, []int{-1}, true}, "float32[2, 1]", "-3 6"},
		{"sum", []any{b}, "int64[]", "3"},
		{"sum", []any{x}, "float32[]", "3"},
		{"mean", []any{x, 1}, "float32[2]", "-1 2"},
		{"max", []any{f}, "float32[]", "nan"},
		{"max", []any{x}, "float32[]", "3"},
		{"max.dim", []any{x, 0}, "float32[3]", "1 2 3"},
		{"sub", []any{i, j, op.Kw("alpha", 3)}, "int64[4]", "-13 13 -9 -15"},
		{"add", []any{i, 1.5}, "float32[4]", "-5.5 8.5 -1.5 1.5"},
		{"add", []any{u, u}, "uint8[2]", "144 200"},
		{"mul", []any{b, b}, "bool[4]", "1 0 1 1"},
		{"mul", []any{x, i.Narrow(0, 0, 3, 1)}, "float32[2, 3]", "14 -7 -0 -7 14 -9"},
		{"div", []any{i, j}, "float32[4]", "-3.5 -3.5 -1.5 0"},
		{"div", []any{i, j, op.Kw("rounding_mode", "trunc")}, "int64[4]", "-3 -3 -1 0"},
		{"div", []any{i, j, op.Kw("rounding_mode", "floor")}, "int64[4]", "-4 -4 -2 0"},
		{"div", []any{x, -1.5, op.Kw("rounding_mode", "floor")}, "float32[2, 3]", "1 0 -0 -1 -2 -2"},
		{"pow", []any{i, 2}, "int64[4]", "49 49 9 0"},
		{"pow", []any{j, i}, "int64[4]", "0 -128 0 1"},
		{"pow", []any{2, j}, "int64[4]", "4 0 4 32"},
		{"pow", []any{x, 3.0}, "float32[2, 3]", "-8 -1 0 1 8 27"},
		{"pow", []any{x, 0.5}, "float32[2, 3]", "nan nan 0 1 1.41421354 1.73205078"},
		{"maximum", []any{f, f.Narrow(0, 1, 1, 1)}, "float32[4]", "nan -1 0 2"},
		{"where", []any{b, f, 5}, "float32[4]", "nan 5 0 2"},
		{"gt", []any{i, j}, "bool[4]", "0 1 0 0"},
		{"ne", []any{f, f}, "bool[4]", "1 0 0 0"},
		{"le", []any{i, -3.0}, "bool[4]", "1 0 1 0"},
		{"neg", []any{u}, "uint8[2]", "56 156"},
		{"abs", []any{i}, "int64[4]", "7 7 3 0"},
		{"sign", []any{f}, "float32[4]", "0 -1 0 1"},
		{"relu", []any{f}, "float32[4]", "nan 0 0 2"},
		{"leaky_relu", []any{f, 0.5}, "float32[4]", "nan -0.5 0 2"},
		{"sqrt", []any{f}, "float32[4]", "nan nan 0 1.41421354"},
		{"log", []any{j}, "float32[4]", "0.693147182 nan 0.693147182 1.60943794"},
		{"to", []any{f.Narrow(0, 1, 3, 1), tensor.I32}, "int32[3]", "-1 0 2"},
		{"bool", []any{f}, "bool[4]", "1 1 0 1"},
		{"zeros_like", []any{i}, "int64[4]", "0 0 0 0"},
		{"max.dim", []any{f, 0, true}, "float32[1]", "nan"},
		{"erf", []any{x}, "float32[2, 3]", "-0.995322287 -0.842700779 0 0.842700779 0.995322287 0.999977887"},
		{"tanh", []any{x}, "float32[2, 3]", "-0.964027584 -0.761594176 0 0.761594176 0.964027584 0.995054781"},
		{"sigmoid", []any{x}, "float32[2, 3]", "0.119202919 0.268941432 0.5 0.731058598 0.880797029 0.952574134"},
		{"exp", []any{x}, "float32[2, 3]", "0.135335281 0.36787945 1 2.71828175 7.38905621 20.085537"},
		{"gelu", []any{x}, "float32[2, 3]", "-0.0455000997 -0.158655286 0 0.841344714 1.95449996 2.99595022"},
		{"gelu", []any{x, op.Kw("approximate", "tanh")}, "float32[2, 3]", "-0.0454022884 -0.158807993 0 0.841192007 1.95459771 2.99636269"},
	} {
		t.Run(fmt.Sprint(c.id, c.args), func(t *testing.T) {
			got := call(t, c.id, c.args)
			if got.String() != c.result {
				t.Fatalf("got %s, want %s", got, c.result)
			}
			for k, field := range strings.Fields(c.values) {
				want, err := strconv.ParseFloat(field, 64)
				if err != nil {
					t.Fatal(err)
				}
				if v := got.Float(k); v != want && !(math.Abs(v-want) <= 3e-7*math.Max(math.Abs(want), 1)) && !(v != v && want != want) {
					t.Errorf("element %d is %v, want %v", k, v, want)
				}
			}
		})
	}
}

// call returns the first result of an operator, by id.
func call(t *testing.T, id string, args []any) *tensor.Tensor {
	t.Helper()
	pos, kws := split(args)
	c, err := ops.Table().ResolveID(id, pos, kws)
	if err != nil {
		t.Fatal(err)
	}
	return execute(t, c)[0]
}

// split takes the keyword arguments out of a list of arguments.
func split(args []any) (pos []any, kws []op.Kwarg) {
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, a)
		}
	}
	return pos, kws
}

// TestRejections names calls that PyTorch 1.13.1 rejects, with the class of its exception.
func TestRejections(t *testing.T) {
	x, z := tensor.New(tensor.F32, 2, 3), tensor.New(tensor.F32, 2, 0)
	i, b, c := tensor.New(tensor.I64, 2, 3), tensor.New(tensor.Bool, 2, 3), tensor.New(tensor.C64, 2, 3)
	for _, r := range []struct {
		name  string
		args  []any
		class string
	}{
		{"torch.add", []any{x, tensor.New(tensor.F32, 4)}, "RuntimeError"},
		{"torch.add", []any{x, nil}, "TypeError"},
		{"torch.add", []any{i, 1, op.Kw("alpha", 1.5)}, "RuntimeError"},
		{"torch.add", []any{x, 1, op.Kw("alpha", true)}, "RuntimeError"},
		{"torch.sub", []any{b, b}, "RuntimeError"},
		{"operator.sub", []any{true, x}, "RuntimeError"},
		{"torch.div", []any{i, i, op.Kw("rounding_mode", "floor")}, "RuntimeError"},
		{"torch.div", []any{x, 2, op.Kw("rounding_mode", "ceil")}, "RuntimeError"},
		{"torch.pow", []any{i, -1}, "RuntimeError"},
		{"torch.pow", []any{b, b}, "RuntimeError"},
		{"torch.neg", []any{b}, "RuntimeError"},
		{"torch.abs", []any{b}, "RuntimeError"},
		{"torch.relu", []any{c}, "RuntimeError"},
		{"torch.nn.functional.gelu", []any{x, op.Kw("approximate", "x")}, "RuntimeError"},
		{"torch.nn.functional.gelu", []any{x, "tanh"}, "TypeError"},
		{"torch.nn.functional.leaky_relu", []any{i}, "RuntimeError"},
		{"torch.gt", []any{2, x}, "TypeError"},
		{"torch.gt", []any{x, c}, "RuntimeError"},
		{"torch.maximum", []any{x, 2}, "TypeError"},
		{"torch.where", []any{x, x, x}, "RuntimeError"},
		{"torch.sum", []any{x, 2}, "IndexError"},
		{"torch.sum", []any{x, []int{0, 0}}, "RuntimeError"},
		{"torch.sum", []any{x, op.Kw("keepdim", true)}, "TypeError"},
		{"torch.mean", []any{i}, "RuntimeError"},
		{"torch.max", []any{z}, "RuntimeError"},
		{"torch.max", []any{z, 1}, "IndexError"},
		{"torch.max", []any{x, 2.0}, "TypeError"},
		{"torch.flatten", []any{x, 1, 0}, "RuntimeError"},
		{"torch.flatten", []any{x, 2}, "IndexError"},
		{"torch.reshape", []any{x, -1}, "TypeError"},
		{"torch.reshape", []any{x, []int{-1, -1}}, "RuntimeError"},
		{"torch.reshape", []any{z, []int{-1, 0}}, "RuntimeError"},
		{"Tensor.view", []any{x.Transpose(0, 1), -1}, "RuntimeError"},
		{"torch.transpose", []any{x, 0, 2}, "IndexError"},
		{"Tensor.permute", []any{x, 0, 0}, "RuntimeError"},
		{"Tensor.permute", []any{x, 0}, "RuntimeError"},
		{"Tensor.expand", []any{x, 3, 3}, "RuntimeError"},
		{"torch.cat", []any{[]any{}}, "ValueError"},
		{"torch.cat", []any{[]any{x, x}, 2}, "IndexError"},
		{"torch.cat", []any{[]any{x, z}}, "RuntimeError"},
		{"torch.narrow", []any{x, 1, 0, 4}, "RuntimeError"},
		{"torch.unsqueeze", []any{x, 3}, "IndexError"},
		{"torch.gather", []any{x, 1, tensor.Of(tensor.I64, []int{1, 1}, []int64{3})}, "RuntimeError"},
	} {
		t.Run(fmt.Sprint(r.name, r.args), func(t *testing.T) {
			if got := classOf(r.name, r.args); got != r.class {
				t.Errorf("class %q, want %q", got, r.class)
			}
		})
	}
}

// classOf returns the class of a call's rejection; "" when it is accepted.
func classOf(name string, args []any) string {
	pos, kws := split(args)
	c, err := ops.Table().Resolve(name, pos, kws)
	if err == nil {
		_, err = c.Execute()
	}
	var e *op.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}
