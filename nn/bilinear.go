package nn

import (
	"plumb/internal/arg"
	"plumb/op"
)

var bilinearModules = []*Def{{
	Names: []string{"torch.nn.Bilinear"},
	Sig:   "Bilinear(int in1_features, int in2_features, int out_features, bool? bias=True, device? device=None, dtype? dtype=None)",
	Doc:   "Applies bilinear.",
	State: func(a op.Args) []Slot {
		return weights(a, []int{a.Int(arg.OutFeatures), a.Int(arg.In1Features), a.Int(arg.In2Features)}, a.Int(arg.OutFeatures))
	},
	ForwardSig: "forward(Tensor input1, Tensor input2)",
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		return one(b.Op("bilinear", a.Value(arg.Input1), a.Value(arg.Input2), m.param("weight"), m.param("bias")))
	},
}}
