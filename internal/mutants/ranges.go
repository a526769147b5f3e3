package mutants

import (
	"fmt"
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
)

// Range is a fault of some arguments' sizes alone: a polynomial that is off
// beyond where it was fitted, a saturation that comes too early. Inputs of
// one size do not show it.
const Range Kind = "range"

// Ranges returns the mutants that are right for most numbers: each is wrong in a
// part of the range of its operator. They are not of All.
func Ranges() []Mutant {
	return slices.Concat(offMutants(), flatMutants, slopeMutants(), rowMutants, unsignedMutants())
}

// part is a part of the real numbers.
type part struct {
	name  string
	holds func(v float64) bool
}

func above(x float64) part {
	return part{fmt.Sprint("above ", x), func(v float64) bool { return v > x }}
}
func below(x float64) part {
	return part{fmt.Sprint("below ", x), func(v float64) bool { return v < x }}
}
func within(x float64) part {
	return part{fmt.Sprint("within ±", x), func(v float64) bool { return math.Abs(v) < x }}
}
func between(lo, hi float64) part {
	return part{fmt.Sprintf("between %v and %v", lo, hi), func(v float64) bool { return v > lo && v < hi }}
}

// sized is where a number's magnitude is between two.
func sized(lo, hi float64) part {
	return part{fmt.Sprintf("of a size between %v and %v", lo, hi), func(v float64) bool { return math.Abs(v) > lo && math.Abs(v) < hi }}
}

// off is how much the mutants of offMutants are off.
const off = 1.001

// offMutants are off by a thousandth where the input is in a part of the range.
func offMutants() []Mutant {
	var out []Mutant
	for _, m := range []struct {
		in string
		at part
	}{
		{"sigmoid", between(3, 29)}, {"sigmoid", between(-19, -3)}, {"tanh", sized(3, 19)}, {"tanh", sized(0.00025, 0.01)},
		{"exp", between(3, 29)}, {"exp", between(-39, -10)}, {"exp2", between(5, 29)}, {"expm1", between(-19, -3)},
		{"log", between(10, 40)}, {"log", between(0.95, 1.05)}, {"log", between(0.001, 0.1)}, {"log2", above(30)}, {"log10", between(0.0005, 0.01)}, {"log1p", between(10, 40)}, {"log1p", sized(0.00025, 0.01)},
		{"sqrt", between(10, 40)}, {"sqrt", between(0.0005, 0.01)}, {"rsqrt", between(10, 40)}, {"reciprocal", sized(10, 50)}, {"reciprocal", below(0)}, {"square", sized(10, 50)},
		{"sin", sized(6.3, 19)}, {"cos", sized(6.3, 19)}, {"tan", sized(6.3, 19)}, {"sinh", sized(3, 19)}, {"cosh", sized(3, 19)}, {"asinh", sized(10, 50)}, {"asinh", sized(0.00025, 0.01)}, {"acosh", between(10, 40)},
		{"asin", sized(0.9, 19)}, {"acos", above(0.9)}, {"atan", sized(10, 50)}, {"atanh", sized(0.9, 19)},
		{"erf", sized(0.00025, 0.01)}, {"erf", sized(2.5, 19)}, {"erfc", above(2.5)}, {"erfinv", sized(0.95, 19)}, {"lgamma", between(10, 40)}, {"digamma", between(10, 40)}, {"digamma", below(0)},
		{"gelu", between(3, 29)}, {"silu", between(5, 29)}, {"silu", between(-19, -5)}, {"mish", between(5, 29)}, {"softplus", between(20, 80)}, {"softplus", between(-19, -5)}, {"logsigmoid", between(-39, -10)}, {"logsigmoid", between(5, 29)},
		{"elu", between(5, 29)}, {"selu", between(5, 29)}, {"celu", between(5, 29)}, {"leaky_relu", between(-19, -5)}, {"softsign", sized(10, 50)}, {"tanhshrink", sized(5, 25)}, {"hardswish", between(10, 40)}, {"relu", between(10, 40)}, {"hardshrink", sized(5, 25)},
		{"i0", between(8, 32)}, {"i1", sized(8, 40)}, {"i0e", sized(8, 40)}, {"sinc", sized(3, 19)}, {"logit", above(0.99)}, {"ndtr", between(3, 29)}, {"entr", between(5, 29)}, {"abs", between(-39, -10)}, {"neg", sized(10, 50)}, {"trunc", sized(10, 50)}, {"floor", between(10, 40)},
	} {
		out = append(out, Mutant{
			Name: fmt.Sprintf("%s is a thousandth off %s", m.in, m.at.name), In: m.in, Kind: Range, Minimal: Minimal{1, 1},
			Op: ofInput(arg.Input, func(x, y float64) float64 {
				if m.at.holds(x) {
					return y * off
				}
				return y
			}),
		})
	}
	for _, m := range []struct {
		in string
		at part
	}{
		{"add", sized(10, 50)}, {"sub", sized(10, 50)}, {"mul", sized(10, 50)}, {"mul", sized(2.5e-05, 0.001)}, {"div", sized(10, 50)}, {"div", sized(0.00025, 0.01)}, {"pow", above(100)}, {"hypot", between(10, 40)}, {"atan2", sized(2, 19)},
		{"fmod", sized(3, 19)}, {"remainder", sized(3, 19)}, {"logaddexp", sized(10, 50)}, {"xlogy", sized(10, 50)}, {"maximum", between(10, 40)}, {"addcmul", sized(10, 50)}, {"addcdiv", sized(10, 50)}, {"lerp", sized(10, 50)},
	} {
		out = append(out, Mutant{
			Name: fmt.Sprintf("%s is a thousandth off where the result is %s", m.in, m.at.name), In: m.in, Kind: Range, Minimal: Minimal{1, 1},
			Op: reals(func(v float64) float64 {
				if m.at.holds(v) {
					return v * off
				}
				return v
			}),
		})
	}
	return out
}

// flat makes a function another, simpler one in a part of the range.
func flat(in, name string, at part, simple func(x float64) float64) Mutant {
	return Mutant{Name: fmt.Sprintf("%s is %s %s", in, name, at.name), In: in, Kind: Range, Minimal: Minimal{1, 1},
		Op: ofInput(arg.Input, func(x, y float64) float64 {
			if at.holds(x) {
				return simple(x)
			}
			return y
		})}
}

func same(x float64) float64 { return x }
func constant(v float64) func(float64) float64 {
	return func(float64) float64 { return v }
}

var flatMutants = []Mutant{
	flat("sigmoid", "1", above(8), constant(1)),
	flat("sigmoid", "0", below(-8), constant(0)),
	flat("tanh", "1", above(4.5), constant(1)),
	flat("softplus", "its input", above(10), same),
	flat("softplus", "0", below(-10), constant(0)),
	flat("log1p", "its input", within(0.001), same),
	flat("expm1", "its input", within(0.001), same),
	flat("sin", "its input", within(0.05), same),
	flat("cos", "1", within(0.02), constant(1)),
	flat("atan", "its input", within(0.03), same),
	flat("gelu", "0", below(-3), constant(0)),
	flat("gelu", "its input", above(3), same),
	flat("silu", "0", below(-6), constant(0)),
	flat("mish", "its input", above(4), same),
	flat("logsigmoid", "its input", below(-9), same),
	flat("logsigmoid", "0", above(9), constant(0)),
	flat("erf", "1", above(2.5), constant(1)),
	flat("erfc", "0", above(3), constant(0)),
	flat("exp", "0", below(-20), constant(0)),
	flat("elu", "-1", below(-6), constant(-1)),
	flat("sqrt", "0", below(1e-3), constant(0)),
	flat("expm1", "-1", below(-8), constant(-1)),
	flat("ndtr", "1", above(3), constant(1)),
}

// slope changes the gradient in a part of the range: by is applied to it there.
func slope(in, name string, test string, bound, by float64) Mutant {
	return Mutant{Name: fmt.Sprintf("%s's gradient is %s where the input is %s %v", in, name, test, bound), In: in, Kind: Range, Minimal: Minimal{1, 1},
		Op: gradOf(arg.Input, func(g *op.Grad, d op.Value) op.Value {
			return g.Op("where", g.Op(test, g.Value(arg.Input), bound), g.Mul(d, by), d)
		})}
}

// slopeMutants have a gradient that is off, or none, in a part of the range.
func slopeMutants() []Mutant {
	return []Mutant{
		slope("sigmoid", "0", "gt", 6, 0), slope("tanh", "0", "gt", 3, 0), slope("tanh", "0", "lt", -3, 0), slope("gelu", "0", "lt", -3, 0), slope("silu", "0", "lt", -5, 0),
		slope("softplus", "0", "lt", -6, 0), slope("elu", "0", "lt", -5, 0), slope("exp", "a thousandth off", "gt", 4, off), slope("log", "a thousandth off", "gt", 5, off),
		slope("sqrt", "a thousandth off", "lt", 0.05, off), slope("reciprocal", "a thousandth off", "lt", -5, off), slope("sin", "a thousandth off", "gt", 7, off), slope("erf", "0", "gt", 2, 0),
		slope("atan", "0", "gt", 20, 0), slope("asinh", "a thousandth off", "gt", 5, off), slope("log1p", "a thousandth off", "gt", 5, off), slope("relu", "a thousandth off", "gt", 10, off),
		slope("leaky_relu", "a thousandth off", "lt", -10, off), slope("selu", "0", "lt", -5, 0), slope("mish", "0", "lt", -6, 0), slope("logsigmoid", "0", "gt", 7, 0), slope("hardswish", "a thousandth off", "gt", 4, off),
	}
}

// unsignedMutants lose the sign of a zero that they compute.
func unsignedMutants() []Mutant {
	var out []Mutant
	for _, in := range []string{
		"mul", "div", "sub", "add", "fmod", "remainder", "atan2", "copysign", "prod", "cumprod", "reciprocal",
		"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "expm1", "log1p", "sqrt", "round", "floor", "trunc", "deg2rad", "rad2deg",
		"hardtanh", "leaky_relu", "softsign", "pow", "ldexp", "erfinv", "float_power",
	} {
		out = append(out, Mutant{Name: in + " loses the sign of zero", In: in, Kind: Range, Minimal: Minimal{1, 1}, Op: reals(func(v float64) float64 { return v + 0 })})
	}
	return out
}

// clipped lets the kernels of an operator see its input within bounds.
func clipped(in string, lo, hi float64) Mutant {
	return Mutant{Name: fmt.Sprintf("%s takes its input to be within %v and %v", in, lo, hi), In: in, Kind: Range, Minimal: Minimal{1, 2},
		Op: inputs(arg.Input, each(func(v float64) float64 { return min(max(v, lo), hi) }))}
}

// rowMutants are of operators that look at several elements.
var rowMutants = []Mutant{
	clipped("softmax", -9, 9), clipped("log_softmax", -9, 9), clipped("logsumexp", -9, 9), clipped("norm", -9, 9), clipped("cumsum", -9, 9), clipped("sum", -9, 9), clipped("mean", -9, 9), clipped("amax", -9, 9),
	clipped("prod", -9, 9), clipped("var", -9, 9), clipped("std", -9, 9), clipped("binary_cross_entropy_with_logits", -9, 9), clipped("smooth_l1_loss", -9, 9), clipped("mse_loss", -9, 9), clipped("l1_loss", -9, 9), clipped("huber_loss", -9, 9),
	clipped("soft_margin_loss", -9, 9), clipped("matmul", -9, 9), clipped("layer_norm", -9, 9), clipped("group_norm", -9, 9), clipped("max_pool2d", -9, 9), clipped("avg_pool2d", -9, 9), clipped("conv2d", -9, 9), clipped("linear", -9, 9),
	clipped("cross_entropy", -9, 9), clipped("cumprod", -9, 9), clipped("logcumsumexp", -9, 9), clipped("cosine_similarity", -9, 9), clipped("normalize", -9, 9),
}
