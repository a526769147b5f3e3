package nn

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
)

const reductionParams = "bool? size_average=None, bool? reduce=None, str reduction='mean'"

var lossModules = []*Def{
	loss("MSELoss", reductionParams, "mse_loss"),
	loss("L1Loss", reductionParams, "l1_loss"),
	loss("SmoothL1Loss", reductionParams+", float beta=1.0", "smooth_l1_loss"),
	loss("HuberLoss", "str reduction='mean', float delta=1.0", "huber_loss"),
	loss("BCELoss", "Tensor? weight=None, "+reductionParams, "binary_cross_entropy"),
	loss("BCEWithLogitsLoss", "Tensor? weight=None, "+reductionParams+", Tensor? pos_weight=None", "binary_cross_entropy_with_logits"),
	loss("KLDivLoss", reductionParams+", bool log_target=False", "kl_div"),
	loss("SoftMarginLoss", reductionParams, "soft_margin_loss"),
	loss("PoissonNLLLoss", "bool log_input=True, bool full=False, bool? size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean'", "poisson_nll_loss").
		takes("log_input", "target"),
	loss("GaussianNLLLoss", "*, bool full=False, float eps=1e-06, str reduction='mean'", "gaussian_nll_loss").
		takes("input", "target", "var"),
	loss("NLLLoss", "Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean'", "nll_loss"),
	loss("CrossEntropyLoss", "Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0", "cross_entropy"),
	loss("CTCLoss", "int blank=0, str reduction='mean', bool zero_infinity=False", "ctc_loss").
		takes("log_probs", "targets", "input_lengths", "target_lengths").
		alsoTakes("forward(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths)"),
	loss("HingeEmbeddingLoss", "float margin=1.0, "+reductionParams, "hinge_embedding_loss"),
	loss("MarginRankingLoss", "float margin=0.0, "+reductionParams, "margin_ranking_loss").takes("input1", "input2", "target"),
	loss("CosineEmbeddingLoss", "float margin=0.0, "+reductionParams, "cosine_embedding_loss").takes("input1", "input2", "target"),
	loss("TripletMarginLoss", "float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, "+reductionParams, "triplet_margin_loss").
		takes("anchor", "positive", "negative"),
	loss("MultiLabelSoftMarginLoss", "Tensor? weight=None, "+reductionParams, "multilabel_soft_margin_loss"),
	loss("MultiMarginLoss", "int p=1, float margin=1.0, Tensor? weight=None, "+reductionParams, "multi_margin_loss").refuses(func(a op.Args) error {
		switch p, w := a.Int(arg.PInt), a.Value(arg.Weight); {
		case p != 1 && p != 2:
			return op.ValueError("argument 'p' must be 1 or 2, but is %d", p)
		case w != nil && len(w.Shape()) != 1:
			return &op.Error{Class: "AssertionError", Msg: "argument 'weight' must have 1 dimension"}
		}
		return nil
	}),
	loss("MultiLabelMarginLoss", reductionParams, "multilabel_margin_loss"),
}

// weightNames are the constructor's tensors, which PyTorch keeps as buffers.
var weightNames = []string{"weight", "pos_weight"}

// loss is a module that calls an operator of input and target with the
// constructor's arguments.
func loss(name, params, id string) *Def {
	d := &Def{
		Names: []string{"torch.nn." + name},
		Sig:   name + "(" + params + ")",
		Doc:   "Applies " + id + ".",
		State: givenWeights,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return one(b.Op(id, append(slices.Clone(a.Vals), m.lossArguments()...)...))
		},
	}
	return d.takes("input", "target")
}

// takes sets the tensors of a call.
func (d *Def) takes(names ...string) *Def {
	d.ForwardSig = "forward("
	for i, n := range names {
		if i > 0 {
			d.ForwardSig += ", "
		}
		d.ForwardSig += "Tensor " + n
	}
	d.ForwardSig += ")"
	return d
}

// alsoTakes adds a signature of a call.
func (d *Def) alsoTakes(sig string) *Def {
	d.ForwardMore = append(d.ForwardMore, sig)
	return d
}

// refuses sets the check of the constructor.
func (d *Def) refuses(check func(op.Args) error) *Def {
	d.Reject = check
	return d
}

// lossArguments are the constructor's arguments by keyword, and buffers in place of tensors.
func (m *Module) lossArguments() []any {
	var out []any
	for i, p := range m.Args.Sig.Params {
		v := m.Args.Vals[i]
		if slices.Contains(weightNames, p.Name) {
			v = m.param(p.Name)
		}
		if v != nil {
			out = append(out, op.Kw(p.Name, v))
		}
	}
	return out
}

// givenWeights are the buffers that the constructor's tensors become.
func givenWeights(a op.Args) []Slot {
	var s []Slot
	for _, name := range weightNames {
		at := a.Sig.Index(op.TensorArg(name))
		if at < 0 || a.Vals[at] == nil {
			continue
		}
		v := a.Vals[at].(op.Value)
		s = append(s, Slot{Name: name, Kind: Buffer, DType: v.DType(), Shape: v.Shape(), Given: v})
	}
	return s
}
