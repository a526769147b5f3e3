package mutants

import (
	"plumb/internal/arg"
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
	for _, name := range []op.TensorArg{arg.WIH, arg.WHH, arg.BIH, arg.BHH} {
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
	{Name: "matmul reads a transposed right side in memory order", In: "matmul", Kind: Layout, Op: unstrided(arg.Other, always), Minimal: Minimal{2, 4}},
	{Name: "matmul of a vector and a matrix is a matrix", In: "matmul", Kind: Size, Minimal: Minimal{1, 1},
		Op: inferred(func(a op.Args, out []op.Meta) {
			if len(a.Value(arg.Input).Shape()) == 1 && len(a.Value(arg.Other).Shape()) == 2 {
				out[0] = op.Meta{DType: out[0].DType, Shape: []int{1, out[0].Shape[0]}}
			}
		})},
	{Name: "mm is computed in bfloat16", In: "mm", Kind: Precision, Op: through(tensor.F32, tensor.BF16, arg.Input, arg.Mat2), Minimal: Minimal{1, 1}},
	{Name: "linear reads a square weight transposed", In: "linear", Kind: Axis, Op: inputs(arg.Weight, transposedSquare), Minimal: Minimal{1, 4}},
	{Name: "linear ignores the bias of a single feature", In: "linear", Kind: Size, Minimal: Minimal{1, 1},
		Op: seenForward(arg.Bias, func(a op.Args) any {
			if v := a.Value(arg.Bias); v != nil && tensor.NumElements(v.Shape()) == 1 {
				return nil
			}
			return a.Any(arg.BiasBool)
		})},
	{Name: "addmm ignores beta", In: "addmm", Kind: Attribute, Op: fixed(arg.Beta, one), Minimal: Minimal{1, 1}},
	{Name: "baddbmm's gradient ignores alpha", In: "baddbmm", Kind: Gradient, Op: seenBackward(arg.Alpha, func(op.Args) any { return one }), Minimal: Minimal{1, 1}},
	{Name: "addmv ignores alpha", In: "addmv", Kind: Attribute, Op: fixed(arg.Alpha, one), Minimal: Minimal{1, 1}},
	{Name: "bmm's gradient of a square right side is transposed", In: "bmm", Kind: Gradient, Minimal: Minimal{1, 4},
		Op: gradOf(arg.Mat2, func(g *op.Grad, d op.Value) op.Value {
			if square(d) {
				return g.Op("transpose", d, 1, 2)
			}
			return d
		})},
	{Name: "tensordot of no dimension contracts one", In: "tensordot", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: seen(arg.Dims, func(a op.Args) any {
			if n, ok := a.Any(arg.Dims).(int); ok {
				return max(n, 1)
			}
			return a.Any(arg.Dims)
		})},
	{Name: "inverse's gradient lacks the minus", In: "inverse", Kind: Gradient, Op: scaled(arg.Input, -1), Minimal: Minimal{1, 1}},
	{Name: "det's gradient is transposed", In: "det", Kind: Gradient, Minimal: Minimal{1, 4},
		Op: gradOf(arg.Input, func(g *op.Grad, d op.Value) op.Value { return g.Op("transpose", d, -1, -2) })},
	{Name: "matrix_power of 0 is the matrix", In: "matrix_power", Kind: Size, Minimal: Minimal{1, 1},
		Op: seen(arg.N, func(a op.Args) any {
			if n := a.Int(arg.N); n != 0 {
				return n
			}
			return 1
		})},
	{Name: "cross without dim takes the last dimension", In: "cross", Kind: Axis, Minimal: Minimal{1, 6},
		Op: seen(arg.Dim, func(a op.Args) any {
			if a.Has(arg.Dim) {
				return a.Int(arg.Dim)
			}
			return -1
		})},
	{Name: "kron takes its arguments for each other", In: "kron", Kind: Axis, Op: exchanged(arg.Input, arg.Other), Minimal: Minimal{1, 2}},
	{Name: "bilinear ignores its bias", In: "bilinear", Kind: Attribute, Op: fixed(arg.Bias, nil), Minimal: Minimal{1, 1}},
	{Name: "trace's gradient covers the whole matrix", In: "trace", Kind: Gradient, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value { return g.Expand(g.G(), g.Value(arg.Input).Shape()) })
	})},
	{Name: "logdet takes the logarithm of |det|", In: "logdet", Kind: NonFinite, Minimal: Minimal{1, 1},
		Op: parts(func(b op.Builder, a op.Args, _ func(op.Builder, op.Args) []op.Value) []op.Value {
			return []op.Value{b.All("slogdet", a.Value(arg.Input))[1]}
		})},
	{Name: "gru_cell updates with 1 - z", In: "gru_cell", Kind: Attribute, Minimal: Minimal{1, 3},
		Op: parts(func(b op.Builder, a op.Args, compose func(op.Builder, op.Args) []op.Value) []op.Value {
			for _, name := range []op.TensorArg{arg.WIH, arg.WHH, arg.BIH, arg.BHH} {
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
	{Name: "outer reads its arguments for each other", In: "outer", Kind: Axis, Op: exchanged(arg.Input, arg.Vec2), Minimal: Minimal{1, 2}},
}
