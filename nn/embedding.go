package nn

import (
	"fmt"

	"plumb/op"
)

var embeddingModules = []*Def{
	{
		Names:  []string{"torch.nn.Embedding"},
		Sig:    "Embedding(int num_embeddings, int embedding_dim, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False, Tensor? _weight=None, device? device=None, dtype? dtype=None)",
		Doc:    "Applies embedding to a weight of num_embeddings rows.",
		Reject: checkPaddingIndex,
		State: func(a op.Args) []Slot {
			return []Slot{{Name: "weight", Kind: Param, DType: stateType(a), Shape: []int{a.Int("num_embeddings"), a.Int("embedding_dim")}}}
		},
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			c := m.Args
			return one(b.Op("embedding", a.Value("input"), m.param("weight"), c.Any("padding_idx"), c.Any("max_norm"), c.Float("norm_type"), c.Bool("scale_grad_by_freq"), c.Bool("sparse")))
		},
	},
	{
		Names:  []string{"torch.nn.EmbeddingBag"},
		Sig:    "EmbeddingBag(int num_embeddings, int embedding_dim, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? _weight=None, bool include_last_offset=False, int? padding_idx=None, device? device=None, dtype? dtype=None)",
		Doc:    "Applies embedding_bag to a weight of num_embeddings rows.",
		Reject: checkPaddingIndex,
		State: func(a op.Args) []Slot {
			return []Slot{{Name: "weight", Kind: Param, DType: stateType(a), Shape: []int{a.Int("num_embeddings"), a.Int("embedding_dim")}}}
		},
		ForwardSig: "forward(Tensor input, Tensor? offsets=None, Tensor? per_sample_weights=None)",
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			c := m.Args
			return one(b.Op("embedding_bag", a.Value("input"), m.param("weight"), a.Any("offsets"), c.Any("max_norm"), c.Float("norm_type"), c.Bool("scale_grad_by_freq"), c.Str("mode"), c.Bool("sparse"), a.Any("per_sample_weights"), c.Bool("include_last_offset"), c.Any("padding_idx")))
		},
	},
}

func checkPaddingIndex(a op.Args) error {
	if a.Has("_weight") {
		return fmt.Errorf("argument _weight is %w", ErrUnsupported)
	}
	n := a.Int("num_embeddings")
	if pad := a.Int("padding_idx"); a.Has("padding_idx") && (pad >= n || pad < -n) {
		return &op.Error{Class: "AssertionError", Msg: "argument 'padding_idx' must be within num_embeddings"}
	}
	return nil
}
