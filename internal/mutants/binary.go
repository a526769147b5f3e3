package mutants

import (
	"math"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var binaryMutants = []Mutant{
	{Name: "add ignores alpha", In: "add", Kind: Attribute, Op: fixed(arg.Alpha, one), Minimal: Minimal{1, 1}},
	{Name: "add's gradient ignores alpha", In: "add", Kind: Gradient, Op: seenBackward(arg.Alpha, func(op.Args) any { return one }), Minimal: Minimal{1, 1}},
	{Name: "sub gives its gradients to the wrong sides", In: "sub", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value { return g.Neg(g.G()) })
		g.To(arg.Other, g.G)
	})},
	{Name: "mul's gradient of a broadcast argument is that of its first use", In: "mul", Kind: Broadcast, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		sides := [][2]op.TensorArg{{arg.Input, arg.Other}, {arg.Other, arg.Input}}
		for _, s := range sides {
			g.To(s[0], func() op.Value {
				return firstOnly(g, g.Mul(g.G(), g.Any(s[1])), g.Value(s[0]).Shape())
			})
		}
	})},
	{Name: "add's gradient of a broadcast argument is that of its first use", In: "add", Kind: Broadcast, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		if g.Value(arg.Input) == nil || g.Value(arg.Other) == nil || tensor.NumElements(g.G().Shape()) == 0 {
			rule(g)
			return
		}
		g.To(arg.Input, func() op.Value { return firstOnly(g, g.G(), g.Value(arg.Input).Shape()) })
		g.To(arg.Other, func() op.Value {
			return firstOnly(g, g.Mul(g.G(), g.Any(arg.Alpha)), g.Value(arg.Other).Shape())
		})
	})},
	{Name: "div rounds down where it shall truncate", In: "div", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: seen(arg.RoundingMode, func(a op.Args) any {
			if a.Str(arg.RoundingMode) == "trunc" {
				return "floor"
			}
			return a.Any(arg.RoundingMode)
		})},
	{Name: "div of integers is an integer", In: "div", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if p := a.Promoted(arg.Input, arg.Other); p.IsInt() {
				return p
			}
			return d
		})},
	{Name: "div's gradient of the divisor lacks the minus", In: "div", Kind: Gradient, Op: scaled(arg.Other, -1), Minimal: Minimal{1, 1}},
	{Name: "floor_divide truncates", In: "floor_divide", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if y == 0 {
				return v
			}
			return math.Trunc(x / y)
		})},
	{Name: "remainder has the sign of the dividend", In: "remainder", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if y == 0 {
				return v
			}
			return math.Mod(x, y)
		})},
	{Name: "fmod has the sign of the divisor", In: "fmod", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if v != 0 && (v < 0) != (y < 0) {
				return v + y
			}
			return v
		})},
	{Name: "pow of zero by zero is zero", In: "pow", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Exponent, func(x, y, v float64) float64 {
			if x == 0 && y == 0 {
				return 0
			}
			return v
		})},
	{Name: "pow has no gradient of its exponent", In: "pow", Kind: Gradient, Op: dropped(arg.Exponent), Minimal: Minimal{1, 1}},
	{Name: "maximum drops NaN", In: "maximum", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			switch {
			case math.IsNaN(x):
				return y
			case math.IsNaN(y):
				return x
			}
			return v
		})},
	{Name: "fmax keeps NaN", In: "fmax", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 { return v + 0*(x+y) })},
	{Name: "maximum gives the whole gradient of equal elements to the first", In: "maximum", Kind: Ties, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		x, y := g.Value(arg.Input), g.Value(arg.Other)
		g.To(arg.Input, func() op.Value { return g.Op("where", g.Op("ge", x, y), g.G(), 0.0) })
		g.To(arg.Other, func() op.Value { return g.Op("where", g.Op("lt", x, y), g.G(), 0.0) })
	})},
	{Name: "atan2 takes its arguments for each other", In: "atan2", Kind: Attribute, Op: exchanged(arg.Input, arg.Other), Minimal: Minimal{1, 1}},
	{Name: "where has no gradient of other", In: "where", Kind: Gradient, Op: dropped(arg.Other), Minimal: Minimal{2, 1}},
	{Name: "eq of two NaN is true", In: "eq", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if math.IsNaN(x) && math.IsNaN(y) {
				return 1
			}
			return v
		})},
	{Name: "ge of equal elements is false", In: "ge", Kind: Ties, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if x == y {
				return 0
			}
			return v
		})},
	{Name: "logical_and compares bits", In: "logical_and", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if x == math.Trunc(x) && y == math.Trunc(y) && int64(x)&int64(y) == 0 {
				return 0
			}
			return v
		})},
	{Name: "bitwise_right_shift of a negative number shifts in zeros", In: "bitwise_right_shift", Kind: Overflow, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if x < 0 && y > 0 && y < 32 {
				return float64(uint32(int32(x)) >> uint(y))
			}
			return v
		})},
	{Name: "copysign takes -0 for positive", In: "copysign", Kind: ZeroSign, Minimal: Minimal{2, 1},
		Op: zipped(arg.Input, arg.Other, func(_, y, v float64) float64 {
			if y == 0 {
				return math.Abs(v)
			}
			return v
		})},
	{Name: "lerp runs from end to input", In: "lerp", Kind: Attribute, Op: exchanged(arg.Input, arg.End), Minimal: Minimal{1, 1}},
	{Name: "addcmul ignores value", In: "addcmul", Kind: Attribute, Op: fixed(arg.Value, one), Minimal: Minimal{1, 1}},
	{Name: "addcdiv's gradient of the divisor lacks the minus", In: "addcdiv", Kind: Gradient, Op: scaled(arg.Tensor2, -1), Minimal: Minimal{1, 1}},
	{Name: "heaviside is 1 at zero", In: "heaviside", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Values, func(x, _, v float64) float64 {
			if x == 0 {
				return 1
			}
			return v
		})},
	{Name: "xlogy of zero is NaN", In: "xlogy", Kind: NonFinite, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, y, v float64) float64 {
			if x == 0 {
				return x * math.Log(y)
			}
			return v
		})},
	{Name: "mul lets the dtype of a scalar tensor win", In: "mul", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			x, y := a.Value(arg.Input), a.Value(arg.Other)
			if x == nil || y == nil || len(x.Shape()) == len(y.Shape()) {
				return d
			}
			return tensor.Promote(x.DType(), y.DType())
		})},
	{Name: "add of integers and floats is an integer", In: "add", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if x := a.Value(arg.Input); x != nil && x.DType().IsInt() && d.IsFloat() {
				return x.DType()
			}
			return d
		})},
	{Name: "gcd of negative numbers is negative", In: "gcd", Kind: ZeroSign, Minimal: Minimal{1, 1},
		Op: zipped(arg.Input, arg.Other, func(x, _, v float64) float64 { return math.Copysign(v, x) })},
	{Name: "isclose ignores rtol", In: "isclose", Kind: Attribute, Op: fixed(arg.Rtol, 0.0), Minimal: Minimal{1, 1}},
	{Name: "float_power of float32 is float32", In: "float_power", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if x := a.Value(arg.Input); x != nil && x.DType() == tensor.F32 && d == tensor.F64 {
				return tensor.F32
			}
			return d
		})},
}
