package nn

import "plumb/op"

var bilinearModules = []*Def{{
	Names: []string{"torch.nn.Bilinear"},
	Sig:   "Bilinear(int in1_features, int in2_features, int out_features, bool? bias=True, device? device=None, dtype? dtype=None)",
	Doc:   "Applies bilinear.",
	State: func(a op.Args) []Slot {
		return weights(a, []int{a.Int("out_features"), a.Int("in1_features"), a.Int("in2_features")}, a.Int("out_features"))
	},
	ForwardSig: "forward(Tensor input1, Tensor input2)",
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		return one(b.Op("bilinear", a.Value("input1"), a.Value("input2"), m.param("weight"), m.param("bias")))
	},
}}
