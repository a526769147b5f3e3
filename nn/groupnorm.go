package nn

import (
	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var groupNormModules = []*Def{
	{
		Names: []string{"torch.nn.GroupNorm"},
		Sig:   "GroupNorm(int num_groups, int num_channels, float eps=1e-05, bool affine=True, device? device=None, dtype? dtype=None)",
		Doc:   "Applies group_norm.",
		Reject: func(a op.Args) error {
			switch groups := a.Int(arg.NumGroups); {
			case groups == 0:
				return &op.Error{Class: "ZeroDivisionError", Msg: "num_groups is 0"}
			case a.Int(arg.NumChannels)%groups != 0:
				return op.ValueError("num_channels=%d must be divisible by num_groups=%d", a.Int(arg.NumChannels), groups)
			}
			return nil
		},
		State: func(a op.Args) []Slot {
			if !a.Bool(arg.Affine) {
				return nil
			}
			return affine(a, []int{a.Int(arg.NumChannels)})
		},
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op("group_norm", a.Value(arg.Input), m.Args.Int(arg.NumGroups), m.param("weight"), m.param("bias"), m.Args.Float(arg.Eps)))
		},
	},
	instanceNorm("InstanceNorm1d", 3),
	instanceNorm("InstanceNorm2d", 4),
	instanceNorm("InstanceNorm3d", 5),
	batchNorm("BatchNorm3d", 5, 5),
	pointwise("LocalResponseNorm", "(int size, float alpha=0.0001, float beta=0.75, float k=1.0)", "Applies local_response_norm.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		return b.Op("local_response_norm", x, a.Int(arg.SizeInt), a.Float(arg.AlphaFloat), a.Float(arg.BetaFloat), a.Float(arg.KFloat))
	}),
	{
		Names: []string{"torch.nn.RMSNorm"},
		Sig:   "RMSNorm(int[] normalized_shape, float? eps=None, bool elementwise_affine=True, device? device=None, dtype? dtype=None)",
		More:  []string{"RMSNorm(int normalized_shape, float? eps=None, bool elementwise_affine=True, device? device=None, dtype? dtype=None)"},
		Doc:   "Applies rms_norm over the last dimensions.",
		State: func(a op.Args) []Slot {
			if !a.Bool(arg.ElementwiseAffine) {
				return nil
			}
			return affine(a, normalizedShape(a))[:1]
		},
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op("rms_norm", a.Value(arg.Input), normalizedShape(m.Args), m.param("weight"), m.Args.Any(arg.Eps)))
		},
	},
	{
		Names: []string{"torch.nn.PReLU"},
		Sig:   "PReLU(int num_parameters=1, float init=0.25, device? device=None, dtype? dtype=None)",
		Doc:   "Applies prelu with a learned slope.",
		State: func(a op.Args) []Slot {
			return []Slot{{Name: "weight", Kind: Param, DType: stateType(a), Shape: []int{a.Int(arg.NumParameters)}, Fill: new(a.Float(arg.Init))}}
		},
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op("prelu", a.Value(arg.Input), m.param("weight")))
		},
	},
	pointwise("GLU", "(int dim=-1)", "Applies glu.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		return b.Op("glu", x, a.Int(arg.Dim))
	}),
	pointwise("Softmin", "(int? dim=None)", "Applies softmin along dim.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		return b.Op("softmin", x, a.Any(arg.Dim))
	}),
	pointwise("Softmax2d", "()", "Applies softmax over the channels of 3 or 4 dimensions.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		if n := len(x.Shape()); n != 3 && n != 4 {
			op.Fail(&op.Error{Class: "AssertionError", Msg: "Softmax2d requires an input of 3 or 4 dimensions"})
		}
		return b.Op("softmax.functional", x, -3)
	}),
}

// instanceNorm is instance normalisation of inputs with n dimensions, or one
// less without a batch.
func instanceNorm(name string, n int) *Def {
	return &Def{
		Names: []string{"torch.nn." + name},
		Sig:   name + "(int num_features, float eps=1e-05, float momentum=0.1, bool affine=False, bool track_running_stats=False, device? device=None, dtype? dtype=None)",
		Doc:   "Applies instance_norm per channel of each sample, and keeps running statistics in training if asked to.",
		State: batchNormState,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			x := a.Value(arg.Input)
			switch len(x.Shape()) {
			case n:
				return one(instanceNormForward(b, m, x))
			case n - 1:
				return one(b.Op("squeeze", instanceNormForward(b, m, b.Op("unsqueeze", x, 0)), 0))
			}
			op.Fail(op.ValueError("expected an input of %d or %d dimensions, but got %d", n-1, n, len(x.Shape())))
			return nil
		},
	}
}

// instanceNormForward updates the running statistics by values, not in place.
func instanceNormForward(b op.Builder, m *Module, x op.Value) op.Value {
	mean, variance := m.param("running_mean"), m.param("running_var")
	own := m.Training || mean == nil
	if !own || mean == nil {
		return b.Op("instance_norm", x, mean, variance, m.param("weight"), m.param("bias"), own, m.Args.Float(arg.Momentum), m.Args.Float(arg.Eps))
	}
	if s, features := x.Shape(), m.Args.Int(arg.NumFeatures); s[1] != features && tensor.NumElements(s) > 0 {
		op.Fail(op.RuntimeError("running_mean should contain %d elements, not %d", s[1], features))
	}
	out := b.Op("instance_norm", x, nil, nil, m.param("weight"), m.param("bias"), true, 0.0, m.Args.Float(arg.Eps))
	updated := b.All("instance_norm.update", x, mean, variance, m.Args.Float(arg.Momentum))
	m.values["running_mean"], m.values["running_var"] = updated[0], updated[1]
	return out
}
