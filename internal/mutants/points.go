package mutants

import (
	"math"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var one = op.ScalarOf(int64(1))

var pointMutants = []Mutant{
	{Name: "relu makes NaN zero", In: "relu", Kind: NonFinite, Op: reals(noNaN(0)), Minimal: Minimal{2, 1}},
	{Name: "relu has gradient 1 at zero", In: "relu", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value { return g.Op("where", g.Op("ge", g.Value(arg.Input), 0), g.G(), 0.0) })
	})},
	{Name: "leaky_relu has gradient 1 at zero", In: "leaky_relu", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value {
			return g.Op("where", g.Op("ge", g.Value(arg.Input), 0), g.G(), g.Mul(g.G(), g.Float(arg.NegativeSlope)))
		})
	})},
	{Name: "log1p computes log(1 + x) in float32", In: "log1p", Kind: Precision, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, _ float64) float64 { return math.Log(float64(1 + float32(x))) })},
	{Name: "expm1 computes exp(x) - 1 in float32", In: "expm1", Kind: Precision, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, _ float64) float64 { return float64(float32(math.Exp(x)) - 1) })},
	{Name: "round rounds halves away from zero", In: "round", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, _ float64) float64 { return math.Round(x) })},
	{Name: "floor rounds negative numbers towards zero", In: "floor", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, _ float64) float64 { return math.Trunc(x) })},
	{Name: "round ignores negative decimals", In: "round.decimals", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: seen(arg.Decimals, func(a op.Args) any { return max(a.Int(arg.Decimals), 0) })},
	{Name: "sign of zero is 1", In: "sign", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if x == 0 {
				return 1
			}
			return y
		})},
	{Name: "neg of zero is +0", In: "neg", Kind: ZeroSign, Minimal: Minimal{1, 1}, Op: reals(func(v float64) float64 { return v + 0 })},
	{Name: "ceil of -0.5 is +0", In: "ceil", Kind: ZeroSign, Minimal: Minimal{1, 1}, Op: reals(func(v float64) float64 { return v + 0 })},
	{Name: "abs keeps the sign of zero", In: "abs", Kind: ZeroSign, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if x == 0 {
				return x
			}
			return y
		})},
	{Name: "abs has gradient 1 at zero", In: "abs", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value {
			return g.Op("where", g.Op("ge", g.Value(arg.Input), 0), g.G(), g.Neg(g.G()))
		})
	})},
	{Name: "sqrt of a negative number is zero", In: "sqrt", Kind: NonFinite, Minimal: Minimal{1, 1}, Op: reals(noNaN(0))},
	{Name: "log of zero is the lowest finite number", In: "log", Kind: NonFinite, Minimal: Minimal{1, 1},
		Op: reals(func(v float64) float64 { return max(v, -math.MaxFloat32) })},
	{Name: "gelu ignores approximate", In: "gelu", Kind: Attribute, Op: fixed(arg.Approximate, "none"), Minimal: Minimal{1, 1}},
	{Name: "elu ignores alpha", In: "elu", Kind: Attribute, Op: fixed(arg.Alpha, 1.0), Minimal: Minimal{1, 1}},
	{Name: "elu's gradient ignores alpha", In: "elu", Kind: Gradient, Op: seenBackward(arg.Alpha, func(op.Args) any { return 1.0 }), Minimal: Minimal{1, 1}},
	{Name: "hardtanh has a gradient at min_val", In: "hardtanh", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value {
			x := g.Value(arg.Input)
			inside := g.Op("logical_and", g.Op("ge", x, g.Float(arg.MinVal)), g.Op("lt", x, g.Float(arg.MaxVal)))
			return g.Op("where", inside, g.G(), 0.0)
		})
	})},
	{Name: "softplus ignores beta", In: "softplus", Kind: Attribute, Op: fixed(arg.Beta, 1.0), Minimal: Minimal{1, 1}},
	{Name: "threshold keeps an element that equals it", In: "threshold", Kind: Ties, Minimal: Minimal{1, 1},
		Op: elements(func(c *op.Run, i int, v complex128) complex128 {
			if x := c.Tensor(arg.Input).At(i); real(x) == c.Float(arg.ThresholdFloat) {
				return x
			}
			return v
		})},
	{Name: "hardshrink ignores lambd", In: "hardshrink", Kind: Attribute, Op: fixed(arg.Lambd, 0.5), Minimal: Minimal{1, 1}},
	{Name: "clamp makes NaN the minimum", In: "clamp", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: elements(func(c *op.Run, _ int, v complex128) complex128 {
			if math.IsNaN(real(v)) && c.Has(arg.Min) {
				return c.Scalar(arg.Min).Complex()
			}
			return v
		})},
	{Name: "clamp has no gradient at its bounds", In: "clamp", Kind: Gradient, Minimal: Minimal{1, 1},
		Op: gradOf(arg.Input, func(g *op.Grad, d op.Value) op.Value {
			for _, bound := range []op.Handle{arg.Min, arg.Max} {
				if g.Has(bound) {
					d = g.Op("where", g.Op("eq", g.Value(arg.Input), g.Any(bound)), 0.0, d)
				}
			}
			return d
		})},
	{Name: "clamp with min above max gives min", In: "clamp", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: elements(func(c *op.Run, _ int, v complex128) complex128 {
			if c.Has(arg.Min) && c.Has(arg.Max) && c.Scalar(arg.Min).Float() > c.Scalar(arg.Max).Float() {
				return c.Scalar(arg.Min).Complex()
			}
			return v
		})},
	{Name: "silu's gradient is that of sigmoid", In: "silu", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value {
			s := g.Op("sigmoid", g.Value(arg.Input))
			return g.Mul(g.G(), g.Mul(s, g.Sub(1, s)))
		})
	})},
	{Name: "hardsigmoid's gradient lacks the division by 6", In: "hardsigmoid", Kind: Gradient, Op: scaled(arg.Input, 6), Minimal: Minimal{1, 1}},
	{Name: "tanh leaves the last n mod 8 elements", In: "tanh", Kind: Stale, Minimal: Minimal{1, 9},
		Op: elements(func(c *op.Run, i int, v complex128) complex128 {
			if n := c.Out[0].Len(); n > 8 && i >= n-n%8 {
				return 0
			}
			return v
		})},
	{Name: "sin reads a transposed tensor in memory order", In: "sin", Kind: Layout, Op: unstrided(arg.Input, always), Minimal: Minimal{2, 4}},
	{Name: "cos of a scalar has one dimension", In: "cos", Kind: Size, Minimal: Minimal{1, 1},
		Op: inferred(func(_ op.Args, out []op.Meta) {
			if len(out[0].Shape) == 0 {
				out[0] = op.Meta{DType: out[0].DType, Shape: []int{1}}
			}
		})},
	{Name: "exp overflows where float16 would", In: "exp", Kind: Overflow, Minimal: Minimal{1, 1},
		Op: reals(func(v float64) float64 {
			if v > 65504 {
				return math.Inf(1)
			}
			return v
		})},
	{Name: "exp flushes small results to zero", In: "exp", Kind: Overflow, Minimal: Minimal{1, 1},
		Op: reals(func(v float64) float64 {
			if v < 1e-6 {
				return 0
			}
			return v
		})},
	{Name: "erf's gradient lacks 2/sqrt(pi)", In: "erf", Kind: Gradient, Op: scaled(arg.Input, math.Sqrt(math.Pi)/2), Minimal: Minimal{1, 1}},
	{Name: "reciprocal of zero is NaN", In: "reciprocal", Kind: NonFinite, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if x == 0 {
				return math.NaN()
			}
			return y
		})},
	{Name: "isinf misses -inf", In: "isinf", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if math.IsInf(x, -1) {
				return 0
			}
			return y
		})},
	{Name: "nan_to_num ignores posinf", In: "nan_to_num", Kind: Attribute, Op: fixed(arg.Posinf, nil), Minimal: Minimal{2, 1}},
	{Name: "rsqrt is computed in float16", In: "rsqrt", Kind: Precision, Op: through(tensor.F32, tensor.F16, arg.Input), Minimal: Minimal{1, 1}},
	{Name: "sinc of zero is NaN", In: "sinc", Kind: Size, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if x == 0 {
				return math.NaN()
			}
			return y
		})},
	{Name: "logit ignores eps", In: "logit", Kind: Attribute, Op: fixed(arg.Eps, nil), Minimal: Minimal{1, 1}},
	{Name: "frac of a negative number is positive", In: "frac", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, _ float64) float64 { return x - math.Floor(x) })},
	{Name: "signbit of -0 is false", In: "signbit", Kind: ZeroSign, Minimal: Minimal{2, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if x == 0 {
				return 0
			}
			return y
		})},
	{Name: "square writes its result over its input", In: "square", Kind: Aliasing, Minimal: Minimal{1, 1},
		Op: after(func(c *op.Run) {
			if x := c.Tensor(arg.Input); x.DType() == c.Out[0].DType() {
				x.CopyFrom(c.Out[0])
			}
		})},
	{Name: "log2 of integers is float64", In: "log2", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if a.Value(arg.Input).DType().IsInt() {
				return tensor.F64
			}
			return d
		})},
	{Name: "sigmoid of float64 is float32", In: "sigmoid", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(_ op.Args, d tensor.DType) tensor.DType {
			if d == tensor.F64 {
				return tensor.F32
			}
			return d
		})},
	{Name: "sigmoid refuses tensors without elements", In: "sigmoid", Kind: Checks, Minimal: Minimal{1, 0},
		Op: refuses(func(a op.Args) bool { return tensor.NumElements(a.Value(arg.Input).Shape()) == 0 })},
	{Name: "logical_not of NaN is true", In: "logical_not", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if math.IsNaN(x) {
				return 1
			}
			return y
		})},
	{Name: "to rounds numbers to the nearest integer", In: "to", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: viewed(func(a op.Args, t *tensor.Tensor) *tensor.Tensor {
			x, ok := a.Value(arg.Input).(*tensor.Tensor)
			if !ok || !t.DType().IsInt() || !x.DType().IsFloat() {
				return t
			}
			for i := range t.Len() {
				t.SetInt(i, int64(math.RoundToEven(x.Float(i))))
			}
			return t
		})},
	{Name: "byte saturates", In: "byte", Kind: Overflow, Minimal: Minimal{1, 1},
		Op: viewed(func(a op.Args, t *tensor.Tensor) *tensor.Tensor {
			x, ok := a.Value(arg.Input).(*tensor.Tensor)
			if !ok || !x.DType().IsInt() || x.DType() == tensor.U8 {
				return t
			}
			for i := range t.Len() {
				t.SetInt(i, min(max(x.Int(i), 0), 255))
			}
			return t
		})},
}
