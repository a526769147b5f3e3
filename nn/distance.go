package nn

import (
	"plumb/internal/arg"
	"plumb/op"
)

var distanceModules = []*Def{
	{
		Names:      []string{"torch.nn.CosineSimilarity"},
		Sig:        "CosineSimilarity(int dim=1, float eps=1e-08)",
		Doc:        "Applies cosine_similarity to two inputs.",
		ForwardSig: "forward(Tensor x1, Tensor x2)",
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op("cosine_similarity", a.Value(arg.X1), a.Value(arg.X2), m.Args.Int(arg.Dim), m.Args.Float(arg.Eps)))
		},
	},
	{
		Names:      []string{"torch.nn.PairwiseDistance"},
		Sig:        "PairwiseDistance(float p=2.0, float eps=1e-06, bool keepdim=False)",
		Doc:        "Applies pairwise_distance to two inputs.",
		ForwardSig: "forward(Tensor x1, Tensor x2)",
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op("pairwise_distance", a.Value(arg.X1), a.Value(arg.X2), m.Args.Float(arg.P), m.Args.Float(arg.Eps), m.Args.Bool(arg.Keepdim)))
		},
	},
}
