package ops_test

import (
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestNormsOfMixedTypes: beside an input of a half type, weight and bias may be float32, as
// in PyTorch 2: the values are those of float32, rounded to the type of the input, and the
// gradient of the weight is not rounded.
func TestNormsOfMixedTypes(t *testing.T) {
	x := tensor.Float64s(tensor.BF16, []int{2, 4}, 1, -2, 0.5, 3, -1.5, 2, 0.25, -0.75)
	w := tensor.Float64s(tensor.F32, []int{4}, 1.001, -0.503, 2.007, 0.333)
	for id, other := range map[string]any{"layer_norm": []int{4}, "group_norm": 2, "group_norm.torch": 2, "rms_norm": []int{4}} {
		args := func(x *tensor.Tensor) []any {
			if id == "rms_norm" {
				return []any{x, other, w, 1e-5}
			}
			return []any{x, other, w, w}
		}
		got, want := call(t, id, args(x)), call(t, id, args(x.Convert(tensor.F32))).Convert(tensor.BF16)
		if got.DType() != tensor.BF16 || !sameFloats(got, want) {
			t.Errorf("%s: %v of %s, want %v", id, got.Float(0), got.DType(), want.Float(0))
		}
		slope, exact := gradientOf(t, id, args(x), 2), gradientOf(t, id, args(x.Convert(tensor.F32)), 2)
		if slope.DType() != tensor.F32 || !sameFloats(slope, exact) {
			t.Errorf("%s: the gradient of weight is %v of %s, want %v", id, slope.Float(0), slope.DType(), exact.Float(0))
		}
		if id == "rms_norm" { // which takes any
			continue
		}
		for _, refused := range [][2]tensor.DType{{tensor.F32, tensor.BF16}, {tensor.F16, tensor.F16}, {tensor.F64, tensor.F64}} {
			if failure(id, x, other, w.Convert(refused[0]), w.Convert(refused[1])) == nil {
				t.Errorf("%s: beside bfloat16, a weight of %s and a bias of %s", id, refused[0], refused[1])
			}
		}
	}
}

// TestBagsOfAnyIntegers: beside offsets of int64, rows may be numbered in any integers.
func TestBagsOfAnyIntegers(t *testing.T) {
	w, offsets := tensor.Float64s(tensor.BF16, []int{2, 1}, 3, 5), tensor.Of(tensor.I64, []int{2}, []int64{0, 1})
	for _, d := range []tensor.DType{tensor.Bool, tensor.U8, tensor.I32} {
		rows := tensor.Float64s(d, []int{3}, 1, 0, 1)
		if got := call(t, "embedding_bag", []any{rows, w, offsets, op.Kw("mode", "sum")}); got.Float(0) != 5 || got.Float(1) != 8 {
			t.Errorf("%s: sums %v and %v, want 5 and 8", d, got.Float(0), got.Float(1))
		}
	}
}

// failure is why a call of an operator, by id, is refused.
func failure(id string, args ...any) error {
	pos, kws := split(args)
	c, err := ops.Table().ResolveID(id, pos, kws)
	if err == nil {
		_, err = c.Execute()
	}
	return err
}

func sameFloats(a, b *tensor.Tensor) bool {
	for i := range a.Len() {
		if a.Float(i) != b.Float(i) {
			return false
		}
	}
	return a.Len() == b.Len()
}
