package ops_test

import (
	"fmt"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestNewestRules names calls of which PyTorch 2.15 does something else than 1.13.1:
// what it refuses, by class, and the dtype and the first element of what it returns.
func TestNewestRules(t *testing.T) {
	of := func(d tensor.DType, v float64, shape ...int) *tensor.Tensor {
		x := tensor.New(d, shape...)
		for i := range x.Len() {
			x.Set(i, complex(v, 0))
		}
		return x
	}
	one := func(shape ...int) *tensor.Tensor { return of(tensor.F32, 1, shape...) }
	u := of(tensor.U8, 3, 2)
	for _, c := range []struct {
		name string
		args []any
		want string
	}{
		{"torch.lerp", []any{one(2), of(tensor.F32, 3, 2), of(tensor.F64, 0.25)}, "float32 1.5"},
		{"torch.lerp", []any{one(2), one(2), of(tensor.F64, 0.25, 1)}, "RuntimeError"},
		{"torch.lerp", []any{of(tensor.I64, 1, 2), of(tensor.I64, 3, 2), of(tensor.F32, 0.25)}, "float32 1.5"},
		{"torch.lerp", []any{of(tensor.I64, 1, 2), of(tensor.I64, 3, 2), of(tensor.I64, 1)}, "RuntimeError"},
		{"torch.lerp", []any{one(), of(tensor.F32, 3), of(tensor.F64, 0.25)}, "float64 1.5"},
		{"torch.lerp", []any{one(2), of(tensor.F32, 3, 2), of(tensor.C64, 0.25)}, "complex64 1.5"},
		{"torch.lerp", []any{of(tensor.BF16, 1, 2), of(tensor.BF16, 3, 2), of(tensor.C64, 0.25)}, "RuntimeError"},
		{"torch.nn.functional.elu", []any{of(tensor.F32, 0, 1), -0.5}, "float32 0"},
		{"torch.nn.functional.celu", []any{of(tensor.F32, 0, 1), -0.5}, "float32 0"},
		{"torch.isposinf", []any{of(tensor.C64, 1, 2)}, "TypeError"},
		{"torch.maximum", []any{of(tensor.C64, 1, 2), one(7)}, "TypeError"},
		{"torch.max", []any{of(tensor.C64, 1, 2), 0}, "TypeError"},
		{"torch.min", []any{of(tensor.C64, 1, 2), 0}, "TypeError"},
		{"torch.min", []any{of(tensor.C64, 1, 2), one(2)}, "TypeError"},
		{"torch.min", []any{of(tensor.C64, 1, 2)}, "RuntimeError"},
		{"torch.histc", []any{of(tensor.C64, 1, 2)}, "TypeError"},
		{"torch.fmin", []any{of(tensor.C64, 1, 2), one(2)}, "TypeError"},
		{"torch.argmax", []any{of(tensor.C64, 1, 0)}, "TypeError"},
		{"torch.aminmax", []any{of(tensor.C64, 1, 2)}, "TypeError"},
		{"torch.sort", []any{of(tensor.C64, 1, 2)}, "TypeError"},
		{"torch.sort", []any{of(tensor.C64, 1, 2), 5}, "IndexError"},
		{"torch.topk", []any{of(tensor.C64, 1, 2), 1}, "TypeError"},
		{"torch.topk", []any{of(tensor.C64, 1, 2), 9}, "RuntimeError"},
		{"torch.view_as_complex", []any{of(tensor.C64, 1, 2)}, "TypeError"},
		{"torch.view_as_complex", []any{of(tensor.I64, 1, 2)}, "RuntimeError"},
		{"torch.dist", []any{one(2), of(tensor.F32, 3, 2), true}, "float32 4"},
		{"torch.bilinear", []any{one(1), one(1), one(1, 1, 1), of(tensor.I64, 1, 1)}, "RuntimeError"},
		{"torch.bilinear", []any{one(), one(), one(1, 1, 1), of(tensor.I64, 1, 1)}, "RuntimeError"},
		{"torch.nn.functional.linear", []any{one(3), one(4, 3), one(1, 4)}, "float32 4"},
		{"torch.nn.functional.linear", []any{one(3), one(4, 3), of(tensor.I64, 1, 4)}, "RuntimeError"},
		{"torch.nn.functional.linear", []any{one(3), one(4, 3), of(tensor.I64, 1)}, "float32 4"},
		{"torch.nn.functional.linear", []any{one(2, 2, 3), one(4, 3), one(2, 1, 4)}, "float32 4"},
		{"torch.nn.functional.linear", []any{one(2, 2, 3), one(4, 3), one(4, 4)}, "RuntimeError"},
		{"torch.nn.functional.linear", []any{one(2, 2, 3), one(3), one(1, 1)}, "float32 4"},
		{"torch.nn.functional.linear", []any{one(2, 1, 2, 3), one(4, 3), one(1, 1, 4)}, "RuntimeError"},
		{"torch.nn.functional.linear", []any{one(2, 2, 2, 3).Permute(1, 0, 2, 3), one(4, 3), one(1, 1, 4)}, "float32 4"},
		{"torch.mm", []any{one(2, 0), of(tensor.I64, 1, 0, 2)}, "RuntimeError"},
		{"torch.mv", []any{one(2, 0), of(tensor.I64, 1, 0)}, "RuntimeError"},
		{"torch.bmm", []any{one(1, 2, 0), of(tensor.I64, 1, 1, 0, 2)}, "int64 0"},
		{"torch.tensordot", []any{one(2, 0), of(tensor.I64, 1, 0, 2), 1}, "RuntimeError"},
		{"torch.addmv", []any{of(tensor.F64, 1, 2), one(2, 3), one(3)}, "RuntimeError"},
		{"torch.baddbmm", []any{of(tensor.F64, 1, 1, 2, 2), one(1, 2, 3), one(1, 3, 2)}, "RuntimeError"},
		{"torch.nn.functional.nll_loss", []any{one(3), of(tensor.I64, 1, 2)}, "ValueError"},
		{"torch.nn.functional.nll_loss", []any{one(3), one(2)}, "RuntimeError"},
		{"torch.nn.functional.cross_entropy", []any{one(3), of(tensor.I64, 1, 2)}, "ValueError"},
		{"torch.clamp_min", []any{u, -1}, "uint8 3"},
		{"torch.clamp_max", []any{u, 300}, "uint8 3"},
		{"torch.clamp_max", []any{u, -1}, "RuntimeError"},
		{"torch.clamp", []any{of(tensor.I8, 3, 2), 128}, "RuntimeError"},
		{"torch.clamp", []any{of(tensor.I8, 3, 2), -129, 1}, "int8 1"},
		{"torch.nn.functional.hardtanh", []any{u}, "uint8 1"},
		{"torch.nn.functional.hardtanh", []any{u, -1.5, 1.5}, "uint8 1"},
		{"torch.nn.functional.hardtanh", []any{u, -3, -2}, "RuntimeError"},
		{"torch.nn.functional.hardtanh", []any{u, 256, 300}, "RuntimeError"},
		{"torch.nn.functional.hardtanh", []any{u, -1e30, 2.0}, "RuntimeError"},
		{"torch.nn.functional.hardtanh", []any{one(2), 0.5, -0.5}, "ValueError"},
		{"torch.nn.functional.hardtanh", []any{one(2), 0.5, -0.5, true}, "ValueError"},
		{"torch.nn.functional.hardtanh_", []any{one(2), 0.5, -0.5}, "float32 -0.5"},
		{"torch.nn.functional.hardtanh_", []any{u, 2.5, 1}, "uint8 1"},
		{"torch.nn.functional.hardtanh_", []any{u, 300, 1}, "RuntimeError"},
		{"torch.nn.functional.hardtanh_", []any{of(tensor.I64, 1, 3), 1e30, 2.0}, "RuntimeError"},
	} {
		t.Run(fmt.Sprint(c.name, c.args), func(t *testing.T) {
			got := classOf(c.name, c.args)
			if got == "" {
				bound, _ := ops.Table().Resolve(c.name, c.args, nil)
				out := execute(t, bound)[0]
				got = fmt.Sprintf("%s %v", out.DType(), real(out.At(0)))
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	if g := gradientOf(t, "lerp", []any{one(2), of(tensor.F32, 3, 2), of(tensor.F64, 0.25)}, 2); g.DType() != tensor.F64 || g.Float(0) != 4 {
		t.Errorf("the gradient of a weight is %v of %s, want 4 of float64", g.Float(0), g.DType())
	}
	session := eager.New(ops.Table())
	end := session.Leaf(one(2), true)
	err := op.Catch(func() {
		out := session.Builder().Op("lerp", one(2), end, of(tensor.C64, 0.25))
		_, err := session.Backward([]op.Value{out}, []op.Value{of(tensor.C64, 1, 2)}, false)
		if err != nil {
			op.Fail(err)
		}
	})
	if err == nil {
		t.Error("a real end of a complex lerp has a gradient")
	}
}
