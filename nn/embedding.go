package nn

import (
	"fmt"

	"plumb/internal/arg"
	"plumb/op"
)

var embeddingModules = []*Def{
	{
		Names:  []string{"torch.nn.Embedding"},
		Sig:    "Embedding(int num_embeddings, int embedding_dim, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False, Tensor? _weight=None, device? device=None, dtype? dtype=None)",
		Doc:    "Applies embedding to a weight of num_embeddings rows.",
		Reject: checkPaddingIndex,
		State: func(a op.Args) []Slot {
			return []Slot{{Name: "weight", Kind: Param, DType: stateType(a), Shape: []int{a.Int(arg.NumEmbeddings), a.Int(arg.EmbeddingDim)}}}
		},
		Mutates: true,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			c, id := m.Args, "embedding"
			if c.Has(arg.MaxNorm) {
				id = "embedding.renorm"
			}
			return one(b.Op(id, a.Value(arg.Input), m.param("weight"), c.Any(arg.PaddingIdx), c.Any(arg.MaxNorm), c.Float(arg.NormType), c.Bool(arg.ScaleGradByFreq), c.Bool(arg.Sparse)))
		},
	},
	{
		Names:  []string{"torch.nn.EmbeddingBag"},
		Sig:    "EmbeddingBag(int num_embeddings, int embedding_dim, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? _weight=None, bool include_last_offset=False, int? padding_idx=None, device? device=None, dtype? dtype=None)",
		Doc:    "Applies embedding_bag to a weight of num_embeddings rows.",
		Reject: checkPaddingIndex,
		State: func(a op.Args) []Slot {
			return []Slot{{Name: "weight", Kind: Param, DType: stateType(a), Shape: []int{a.Int(arg.NumEmbeddings), a.Int(arg.EmbeddingDim)}}}
		},
		ForwardSig: "forward(Tensor input, Tensor? offsets=None, Tensor? per_sample_weights=None)",
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			c := m.Args
			return one(b.Op("embedding_bag", a.Value(arg.Input), m.param("weight"), a.Any(arg.Offsets), c.Any(arg.MaxNorm), c.Float(arg.NormType), c.Bool(arg.ScaleGradByFreq), c.Str(arg.Mode), c.Bool(arg.Sparse), a.Any(arg.PerSampleWeights), c.Bool(arg.IncludeLastOffset), c.Any(arg.PaddingIdx)))
		},
	},
}

func checkPaddingIndex(a op.Args) error {
	if a.Has(arg.PrivateWeight) {
		return fmt.Errorf("argument _weight is %w", ErrUnsupported)
	}
	n := a.Int(arg.NumEmbeddings)
	if pad := a.Int(arg.PaddingIdx); a.Has(arg.PaddingIdx) && (pad >= n || pad < -n) {
		return &op.Error{Class: "AssertionError", Msg: "argument 'padding_idx' must be within num_embeddings"}
	}
	return nil
}
