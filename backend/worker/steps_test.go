package worker

import (
	"fmt"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// TestListsOfTensors: where a framework has no function of lists of tensors, that of each tensor is called.
func TestListsOfTensors(t *testing.T) {
	w := framework(t, "numpy", "numpy")
	x, y := program.Tuple{program.Ref("x"), program.Ref("y")}, program.Tuple{program.Ref("y"), program.Ref("x")}
	for _, c := range []struct {
		target, want string
		args         []any
	}{
		{"torch._foreach_add", "3 4|5", []any{x, int64(2)}},
		{"torch._foreach_add", "4 5|4 5", []any{x, y}},
		{"torch._foreach_mul", "2 4|6", []any{x, int64(2)}},
		{"torch._foreach_mul", "3 6|3 6", []any{x, y}},
		{"torch._foreach_mul", "", []any{x, program.Tuple{program.Ref("x")}}},
		{"torch._foreach_mul", "", []any{program.Tuple{}, int64(2)}},
	} {
		b := new(builder).in("x", f32([]int{2}, 1, 2), false).in("y", f32([]int{1}, 3), false).call("z", c.target, c.args...)
		out := run(t, w, b)
		var got []string
		for _, v := range out.Values {
			for _, one := range v.Tuple {
				got = append(got, numbers(one.Tensor))
			}
		}
		if want := out.Status == backend.OK; strings.Join(got, "|") != c.want || want != (c.want != "") {
			t.Errorf("%s%v: %+v, want %s", c.target, c.args, out, c.want)
		}
	}
}

// TestSteps: what a table has no entry of, and is no more than others of its
// entries, is made of these; what it cannot be made of is a gap, and so is a change in place.
func TestSteps(t *testing.T) {
	w := framework(t, "numpy", "numpy")
	x := program.Ref("x")
	for _, c := range []struct {
		shape  []int // of 0, 1, 2 …
		target string
		args   []any
		want   string
	}{
		{[]int{4, 1, 2}, "torch.nn.functional.pixel_shuffle", []any{x, int64(2)}, "[1 2 4] 0 2 1 3 4 6 5 7"},
		{[]int{1, 2, 4}, "torch.nn.functional.pixel_unshuffle", []any{x, int64(2)}, "[4 1 2] 0 2 1 3 4 6 5 7"},
		{[]int{2, 2, 3}, "torch.nn.functional.pixel_unshuffle", []any{x, int64(2)}, ""},
		{[]int{1, 4, 1}, "torch.nn.functional.channel_shuffle", []any{x, int64(2)}, "[1 4 1] 0 2 1 3"},
		{[]int{3}, "torch.combinations", []any{x}, "[3 2] 0 1 0 2 1 2"},
		{[]int{2}, "torch.combinations", []any{x, int64(2), true}, "[3 2] 0 0 0 1 1 1"},
		{[]int{1}, "torch.combinations", []any{x}, ""},
		{[]int{2}, "torch.cartesian_prod", []any{x, x}, "[4 2] 0 0 0 1 1 0 1 1"},
		{[]int{2}, "torch.column_stack", []any{program.Tuple{x, x}}, "[2 2] 0 0 1 1"},
		{[]int{2, 3}, "Tensor.sum_to_size", []any{x, int64(2), int64(1)}, "[2 1] 3 12"},
		{[]int{2, 3}, "Tensor.sum_to_size", []any{x, int64(3)}, "[3] 3 5 7"},
		{[]int{2, 3}, "Tensor.sum_to_size", []any{x, int64(2)}, ""},
		{[]int{2, 2}, "torch.chain_matmul", []any{x}, "[2 2] 0 1 2 3"},
		{[]int{2, 2}, "torch.chain_matmul", []any{x, x, x}, "[2 2] 6 11 22 39"},
		{[]int{2}, "torch.chain_matmul", []any{x, x}, ""},
		{[]int{2}, "torch.addr", []any{x, x, x}, "[2 2] 0 1 0 2"},
		{[]int{2}, "Tensor.addr", []any{x, x, x}, "[2 2] 0 1 0 2"},
	} {
		var elements []float64
		for i := range tensor.NumElements(c.shape) {
			elements = append(elements, float64(i))
		}
		out := run(t, w, new(builder).in("x", f32(c.shape, elements...), false).call("y", c.target, c.args...))
		got := ""
		if out.Status == backend.OK {
			got = fmt.Sprint(last(out).Shape(), " ", numbers(last(out)))
		}
		if got != c.want || (out.Status == backend.Unsupported) != (c.want == "") {
			t.Errorf("%s of %v: %s %+v, want %s", c.target, c.shape, got, out, c.want)
		}
	}
}

// TestStepsInPlace: a step changes no tensor.
func TestStepsInPlace(t *testing.T) {
	for target, status := range map[string]backend.Status{"Tensor.addmv": backend.OK, "Tensor.addmv_": backend.Unsupported} {
		out := run(t, adapted(t, "torchtape"), new(builder).in("x", f32([]int{1}, 1), false).in("m", f32([]int{1, 1}, 1), false).
			call("y", target, program.Ref("x"), program.Ref("m"), program.Ref("x")))
		if out.Status != status {
			t.Errorf("%s: %+v", target, out)
		}
	}
}

// TestSumsOfProducts: JAX's sum of products of integers has their dtype, as PyTorch's.
func TestSumsOfProducts(t *testing.T) {
	w := hosted(t, "jax", "")
	m := tensor.Of(tensor.I8, []int{2, 1, 1}, []int8{100, 3})
	out := run(t, w, new(builder).in("x", tensor.Of(tensor.I8, []int{1, 1}, []int8{1}), false).in("m", m, false).
		call("y", "torch.addbmm", program.Ref("x"), program.Ref("m"), program.Ref("m")))
	if out.Status != backend.OK || last(out).DType() != tensor.I8 || numbers(last(out)) != "26" {
		t.Errorf("%+v", out)
	}
}
