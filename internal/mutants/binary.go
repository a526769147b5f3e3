package mutants

import (
	"math"

	"plumb/op"
	"plumb/tensor"
)

var binaryMutants = []Mutant{
	{Name: "add ignores alpha", In: "add", Kind: Attribute, Op: fixed("alpha", one), Minimal: Minimal{1, 1}},
	{Name: "add's gradient ignores alpha", In: "add", Kind: Gradient, Op: seenBackward("alpha", func(op.Args) any { return one }), Minimal: Minimal{1, 1}},
	{Name: "sub gives its gradients to the wrong sides", In: "sub", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To("input", func() op.Value { return g.Neg(g.G()) })
		g.To("other", g.G)
	})},
	{Name: "mul's gradient of a broadcast argument is that of its first use", In: "mul", Kind: Broadcast, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		sides := [][2]string{{"input", "other"}, {"other", "input"}}
		for _, s := range sides {
			g.To(s[0], func() op.Value {
				return firstOnly(g, g.Mul(g.G(), g.Any(s[1])), g.Value(s[0]).Shape())
			})
		}
	})},
	{Name: "add's gradient of a broadcast argument is that of its first use", In: "add", Kind: Broadcast, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		if g.Value("input") == nil || g.Value("other") == nil || tensor.NumElements(g.G().Shape()) == 0 {
			rule(g)
			return
		}
		g.To("input", func() op.Value { return firstOnly(g, g.G(), g.Value("input").Shape()) })
		g.To("other", func() op.Value {
			return firstOnly(g, g.Mul(g.G(), g.Any("alpha")), g.Value("other").Shape())
		})
	})},
	{Name: "div rounds down where it shall truncate", In: "div", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: seen("rounding_mode", func(a op.Args) any {
			if a.Str("rounding_mode") == "trunc" {
				return "floor"
			}
			return a.Any("rounding_mode")
		})},
	{Name: "div of integers is an integer", In: "div", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if p := a.Promoted("input", "other"); p.IsInt() {
				return p
			}
			return d
		})},
	{Name: "div's gradient of the divisor lacks the minus", In: "div", Kind: Gradient, Op: scaled("other", -1), Minimal: Minimal{1, 1}},
	{Name: "floor_divide truncates", In: "floor_divide", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if y == 0 {
				return v
			}
			return math.Trunc(x / y)
		})},
	{Name: "remainder has the sign of the dividend", In: "remainder", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if y == 0 {
				return v
			}
			return math.Mod(x, y)
		})},
	{Name: "fmod has the sign of the divisor", In: "fmod", Kind: Rounding, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if v != 0 && (v < 0) != (y < 0) {
				return v + y
			}
			return v
		})},
	{Name: "pow of zero by zero is zero", In: "pow", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: zipped("input", "exponent", func(x, y, v float64) float64 {
			if x == 0 && y == 0 {
				return 0
			}
			return v
		})},
	{Name: "pow has no gradient of its exponent", In: "pow", Kind: Gradient, Op: dropped("exponent"), Minimal: Minimal{1, 1}},
	{Name: "maximum drops NaN", In: "maximum", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			switch {
			case math.IsNaN(x):
				return y
			case math.IsNaN(y):
				return x
			}
			return v
		})},
	{Name: "fmax keeps NaN", In: "fmax", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 { return v + 0*(x+y) })},
	{Name: "maximum gives the whole gradient of equal elements to the first", In: "maximum", Kind: Ties, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		x, y := g.Value("input"), g.Value("other")
		g.To("input", func() op.Value { return g.Op("where", g.Op("ge", x, y), g.G(), 0.0) })
		g.To("other", func() op.Value { return g.Op("where", g.Op("lt", x, y), g.G(), 0.0) })
	})},
	{Name: "atan2 takes its arguments for each other", In: "atan2", Kind: Attribute, Op: exchanged("input", "other"), Minimal: Minimal{1, 1}},
	{Name: "where has no gradient of other", In: "where", Kind: Gradient, Op: dropped("other"), Minimal: Minimal{2, 1}},
	{Name: "eq of two NaN is true", In: "eq", Kind: NonFinite, Minimal: Minimal{2, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if math.IsNaN(x) && math.IsNaN(y) {
				return 1
			}
			return v
		})},
	{Name: "ge of equal elements is false", In: "ge", Kind: Ties, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if x == y {
				return 0
			}
			return v
		})},
	{Name: "logical_and compares bits", In: "logical_and", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if x == math.Trunc(x) && y == math.Trunc(y) && int64(x)&int64(y) == 0 {
				return 0
			}
			return v
		})},
	{Name: "bitwise_right_shift of a negative number shifts in zeros", In: "bitwise_right_shift", Kind: Overflow, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if x < 0 && y > 0 && y < 32 {
				return float64(uint32(int32(x)) >> uint(y))
			}
			return v
		})},
	{Name: "copysign takes -0 for positive", In: "copysign", Kind: ZeroSign, Minimal: Minimal{2, 1},
		Op: zipped("input", "other", func(_, y, v float64) float64 {
			if y == 0 {
				return math.Abs(v)
			}
			return v
		})},
	{Name: "lerp runs from end to input", In: "lerp", Kind: Attribute, Op: exchanged("input", "end"), Minimal: Minimal{1, 1}},
	{Name: "addcmul ignores value", In: "addcmul", Kind: Attribute, Op: fixed("value", one), Minimal: Minimal{1, 1}},
	{Name: "addcdiv's gradient of the divisor lacks the minus", In: "addcdiv", Kind: Gradient, Op: scaled("tensor2", -1), Minimal: Minimal{1, 1}},
	{Name: "heaviside is 1 at zero", In: "heaviside", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: zipped("input", "values", func(x, _, v float64) float64 {
			if x == 0 {
				return 1
			}
			return v
		})},
	{Name: "xlogy of zero is NaN", In: "xlogy", Kind: NonFinite, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, y, v float64) float64 {
			if x == 0 {
				return x * math.Log(y)
			}
			return v
		})},
	{Name: "mul lets the dtype of a scalar tensor win", In: "mul", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			x, y := a.Value("input"), a.Value("other")
			if x == nil || y == nil || len(x.Shape()) == len(y.Shape()) {
				return d
			}
			return tensor.Promote(x.DType(), y.DType())
		})},
	{Name: "add of integers and floats is an integer", In: "add", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if x := a.Value("input"); x != nil && x.DType().IsInt() && d.IsFloat() {
				return x.DType()
			}
			return d
		})},
	{Name: "gcd of negative numbers is negative", In: "gcd", Kind: ZeroSign, Minimal: Minimal{1, 1},
		Op: zipped("input", "other", func(x, _, v float64) float64 { return math.Copysign(v, x) })},
	{Name: "isclose ignores rtol", In: "isclose", Kind: Attribute, Op: fixed("rtol", 0.0), Minimal: Minimal{1, 1}},
	{Name: "float_power of float32 is float32", In: "float_power", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if x := a.Value("input"); x != nil && x.DType() == tensor.F32 && d == tensor.F64 {
				return tensor.F32
			}
			return d
		})},
}
