package nn

import (
	"plumb/internal/arg"
	"plumb/op"
)

var paddingModules = []*Def{
	pads("ConstantPad1d", "(int[2] padding, float value)", "constant"),
	pads("ConstantPad2d", "(int[4] padding, float value)", "constant"),
	pads("ConstantPad3d", "(int[6] padding, float value)", "constant"),
	pads("ZeroPad2d", "(int[4] padding)", "constant"),
	pads("ReflectionPad1d", "(int[2] padding)", "reflect"),
	pads("ReflectionPad2d", "(int[4] padding)", "reflect"),
	pads("ReflectionPad3d", "(int[6] padding)", "reflect"),
	pads("ReplicationPad1d", "(int[2] padding)", "replicate"),
	pads("ReplicationPad2d", "(int[4] padding)", "replicate"),
	pads("ReplicationPad3d", "(int[6] padding)", "replicate"),
}

// pads is a module that applies pad in one mode.
func pads(name, params, mode string) *Def {
	return pointwise(name, params, "Applies pad with mode '"+mode+"'.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		args := []any{x, a.Ints(arg.Padding), mode}
		if a.Sig.Takes(arg.Value) {
			args = append(args, a.Float(arg.ValueFloat))
		}
		return b.Op("pad", args...)
	})
}
