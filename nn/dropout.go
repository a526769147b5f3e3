package nn

import (
	"plumb/internal/arg"
	"plumb/op"
)

var dropoutModules = []*Def{
	dropoutModule("Dropout", "dropout"),
	dropoutModule("Dropout1d", "dropout1d"),
	dropoutModule("Dropout2d", "dropout2d"),
	dropoutModule("Dropout3d", "dropout3d"),
	dropoutModule("AlphaDropout", "alpha_dropout"),
	dropoutModule("FeatureAlphaDropout", "feature_alpha_dropout"),
	{
		Names:  []string{"torch.nn.RReLU"},
		Sig:    "RReLU(float lower=0.125, float upper=0.3333333333333333, bool inplace=False)",
		Doc:    "Applies rrelu; in evaluation with the mean slope.",
		Random: true,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op("rrelu", a.Value(arg.Input), m.Args.Float(arg.Lower), m.Args.Float(arg.UpperFloat), m.Training, m.Args.Bool(arg.Inplace)))
		},
	},
}

// dropoutModule is a module that drops in training and does nothing in evaluation.
func dropoutModule(name, id string) *Def {
	return &Def{
		Names:  []string{"torch.nn." + name},
		Sig:    name + "(float p=0.5, bool inplace=False)",
		Doc:    "Applies " + id + " in training.",
		Random: true,
		Reject: func(a op.Args) error {
			if p := a.Float(arg.P); p < 0 || p > 1 {
				return op.ValueError("argument 'p' has to be between 0 and 1, but is %v", p)
			}
			return nil
		},
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op(id, a.Value(arg.Input), m.Args.Float(arg.P), m.Training, m.Args.Bool(arg.Inplace)))
		},
	}
}
