package nn

import (
	"plumb/internal/arg"
	"plumb/op"
)

const inplaceOnly = "(bool inplace=False)"

var activations = []*Def{
	applies("ReLU6", inplaceOnly, "relu6"),
	applies("SiLU", inplaceOnly, "silu"),
	applies("Mish", inplaceOnly, "mish"),
	applies("Hardswish", inplaceOnly, "hardswish"),
	applies("Hardsigmoid", inplaceOnly, "hardsigmoid"),
	applies("SELU", inplaceOnly, "selu"),
	applies("ELU", "(float alpha=1.0, bool inplace=False)", "elu", arg.AlphaFloat),
	applies("CELU", "(float alpha=1.0, bool inplace=False)", "celu", arg.AlphaFloat),
	applies("Softplus", "(float beta=1.0, float threshold=20.0)", "softplus", arg.BetaFloat, arg.ThresholdFloat),
	applies("Softshrink", "(float lambd=0.5)", "softshrink", arg.Lambd),
	applies("Hardshrink", "(float lambd=0.5)", "hardshrink", arg.Lambd),
	applies("Threshold", "(float threshold, float value, bool inplace=False)", "threshold", arg.ThresholdFloat, arg.ValueFloat),
	applies("Softsign", "()", "softsign"),
	applies("LogSigmoid", "()", "logsigmoid"),
	applies("Tanhshrink", "()", "tanhshrink"),
	hardtanh(),
}

// applies is a module that calls an operator with its own arguments.
func applies(name, params, id string, attributes ...op.FloatArg) *Def {
	return pointwise(name, params, "Applies "+id+".", func(b op.Builder, x op.Value, a op.Args) op.Value {
		args := []any{x}
		for _, n := range attributes {
			args = append(args, a.Float(n))
		}
		return b.Op(id, args...)
	})
}

// hardtanh has two names for either limit; the older ones, min_value and
// max_value, go before.
func hardtanh() *Def {
	const params = "(float min_val=-1.0, float max_val=1.0, bool inplace=False, float? min_value=None, float? max_value=None)"
	d := pointwise("Hardtanh", params, "Applies hardtanh.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		lo, hi := limits(a)
		return b.Op("hardtanh", x, lo, hi)
	})
	d.Reject = func(a op.Args) error {
		if lo, hi := limits(a); lo >= hi {
			return &op.Error{Class: "AssertionError", Msg: "max_val must be greater than min_val"}
		}
		return nil
	}
	return d
}

func limits(a op.Args) (lo, hi float64) {
	lo, hi = a.Float(arg.MinVal), a.Float(arg.MaxVal)
	if a.Has(arg.MinValue) {
		lo = a.Float(arg.MinValue)
	}
	if a.Has(arg.MaxValue) {
		hi = a.Float(arg.MaxValue)
	}
	return lo, hi
}
