package mutants

import (
	"plumb/op"
	"plumb/tensor"
)

func square(v op.Value) bool {
	s := v.Shape()
	return len(s) >= 2 && s[len(s)-1] == s[len(s)-2]
}

// transposedSquare exchanges the last two dimensions of a square matrix.
func transposedSquare(_ *op.Run, t *tensor.Tensor) {
	if square(t) {
		t.CopyFrom(t.Transpose(t.Dim()-2, t.Dim()-1).Clone())
	}
}

// gates exchanges two of the parts, n of them, of the rows of what is there.
func gates(b op.Builder, a op.Args, n, first, second int) op.Args {
	for _, name := range []string{"w_ih", "w_hh", "b_ih", "b_hh"} {
		v := a.Value(name)
		if v == nil {
			continue
		}
		rows := b.All("chunk", v, n)
		if len(rows) == n {
			rows[first], rows[second] = rows[second], rows[first]
			a = With(a, name, b.Op("cat", rows))
		}
	}
	return a
}

var matrixMutants = []Mutant{
	{Name: "matmul reads a transposed right side in memory order", In: "matmul", Kind: Layout, Op: unstrided("other", always), Minimal: Minimal{2, 4}},
	{Name: "matmul of a vector and a matrix is a matrix", In: "matmul", Kind: Size, Minimal: Minimal{1, 1},
		Op: inferred(func(a op.Args, out []op.Meta) {
			if len(a.Value("input").Shape()) == 1 && len(a.Value("other").Shape()) == 2 {
				out[0] = op.Meta{DType: out[0].DType, Shape: []int{1, out[0].Shape[0]}}
			}
		})},
	{Name: "mm is computed in bfloat16", In: "mm", Kind: Precision, Op: through(tensor.F32, tensor.BF16, "input", "mat2"), Minimal: Minimal{1, 1}},
	{Name: "linear reads a square weight transposed", In: "linear", Kind: Axis, Op: inputs("weight", transposedSquare), Minimal: Minimal{1, 4}},
	{Name: "linear ignores the bias of a single feature", In: "linear", Kind: Size, Minimal: Minimal{1, 1},
		Op: seenForward("bias", func(a op.Args) any {
			if v := a.Value("bias"); v != nil && tensor.NumElements(v.Shape()) == 1 {
				return nil
			}
			return a.Any("bias")
		})},
	{Name: "addmm ignores beta", In: "addmm", Kind: Attribute, Op: fixed("beta", one), Minimal: Minimal{1, 1}},
	{Name: "baddbmm's gradient ignores alpha", In: "baddbmm", Kind: Gradient, Op: seenBackward("alpha", func(op.Args) any { return one }), Minimal: Minimal{1, 1}},
	{Name: "addmv ignores alpha", In: "addmv", Kind: Attribute, Op: fixed("alpha", one), Minimal: Minimal{1, 1}},
	{Name: "bmm's gradient of a square right side is transposed", In: "bmm", Kind: Gradient, Minimal: Minimal{1, 4},
		Op: gradOf("mat2", func(g *op.Grad, d op.Value) op.Value {
			if square(d) {
				return g.Op("transpose", d, 1, 2)
			}
			return d
		})},
	{Name: "tensordot of no dimension contracts one", In: "tensordot", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: seen("dims", func(a op.Args) any {
			if n, ok := a.Any("dims").(int); ok {
				return max(n, 1)
			}
			return a.Any("dims")
		})},
	{Name: "inverse's gradient lacks the minus", In: "inverse", Kind: Gradient, Op: scaled("input", -1), Minimal: Minimal{1, 1}},
	{Name: "det's gradient is transposed", In: "det", Kind: Gradient, Minimal: Minimal{1, 4},
		Op: gradOf("input", func(g *op.Grad, d op.Value) op.Value { return g.Op("transpose", d, -1, -2) })},
	{Name: "matrix_power of 0 is the matrix", In: "matrix_power", Kind: Size, Minimal: Minimal{1, 1},
		Op: seen("n", func(a op.Args) any {
			if n := a.Int("n"); n != 0 {
				return n
			}
			return 1
		})},
	{Name: "cross without dim takes the last dimension", In: "cross", Kind: Axis, Minimal: Minimal{1, 6},
		Op: seen("dim", func(a op.Args) any {
			if a.Has("dim") {
				return a.Int("dim")
			}
			return -1
		})},
	{Name: "kron takes its arguments for each other", In: "kron", Kind: Axis, Op: exchanged("input", "other"), Minimal: Minimal{1, 2}},
	{Name: "bilinear ignores its bias", In: "bilinear", Kind: Attribute, Op: fixed("bias", nil), Minimal: Minimal{1, 1}},
	{Name: "trace's gradient covers the whole matrix", In: "trace", Kind: Gradient, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To("input", func() op.Value { return g.Expand(g.G(), g.Value("input").Shape()) })
	})},
	{Name: "attention ignores is_causal", In: "scaled_dot_product_attention", Kind: Attribute, Op: fixed("is_causal", false), Minimal: Minimal{1, 2}},
	{Name: "attention ignores scale", In: "scaled_dot_product_attention", Kind: Attribute, Op: fixed("scale", nil), Minimal: Minimal{1, 2}},
	{Name: "gru_cell updates with 1 - z", In: "gru_cell", Kind: Attribute, Minimal: Minimal{1, 3},
		Op: parts(func(b op.Builder, a op.Args, compose func(op.Builder, op.Args) []op.Value) []op.Value {
			for _, name := range []string{"w_ih", "w_hh", "b_ih", "b_hh"} {
				v := a.Value(name)
				if v == nil {
					continue
				}
				rows := b.All("chunk", v, 3)
				if len(rows) == 3 {
					a = With(a, name, b.Op("cat", []op.Value{rows[0], b.Neg(rows[1]), rows[2]}))
				}
			}
			return compose(b, a)
		})},
	{Name: "lstm_cell takes the input gate for the forget gate", In: "lstm_cell", Kind: Attribute, Minimal: Minimal{1, 4},
		Op: parts(func(b op.Builder, a op.Args, compose func(op.Builder, op.Args) []op.Value) []op.Value {
			return compose(b, gates(b, a, 4, 0, 1))
		})},
	{Name: "outer reads its arguments for each other", In: "outer", Kind: Axis, Op: exchanged("input", "vec2"), Minimal: Minimal{1, 2}},
}
