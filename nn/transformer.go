package nn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
)

const (
	layerParams = "int d_model, int nhead, int dim_feedforward=2048, float dropout=0.1, str activation='relu', float layer_norm_eps=1e-05, bool batch_first=False, bool norm_first=False, device? device=None, dtype? dtype=None"
	targetMasks = "Tensor? tgt_mask=None, Tensor? memory_mask=None, Tensor? tgt_key_padding_mask=None, Tensor? memory_key_padding_mask=None"
)

var transformerModules = []*Def{encoderLayer, decoderLayer, encoderModule, decoderModule, transformerModule}

var encoderLayer = &Def{
	Names:      []string{"torch.nn.TransformerEncoderLayer"},
	Sig:        "TransformerEncoderLayer(" + layerParams + ")",
	Doc:        "Applies self-attention and a feed-forward network, each with a residual connection and layer_norm.",
	Random:     true,
	Reject:     checkTransformer,
	Parts:      func(a op.Args) ([]Named, error) { return layerParts(a, "self_attn", 2) },
	ForwardSig: "forward(Tensor src, Tensor? src_mask=None, Tensor? src_key_padding_mask=None)",
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		l := layer{b, m}
		x := l.residual(1, a.Value(arg.Src), func(x op.Value) op.Value {
			return l.attention("self_attn", x, x, a.Any(arg.SrcMask), a.Any(arg.SrcKeyPaddingMask))
		})
		return one(l.residual(2, x, l.feedForward))
	},
}

var decoderLayer = &Def{
	Names:      []string{"torch.nn.TransformerDecoderLayer"},
	Sig:        "TransformerDecoderLayer(" + layerParams + ")",
	Doc:        "Applies self-attention, attention to an encoder's results, and a feed-forward network, each with a residual connection and layer_norm.",
	Random:     true,
	Reject:     checkTransformer,
	Parts:      func(a op.Args) ([]Named, error) { return layerParts(a, "self_attn multihead_attn", 3) },
	ForwardSig: "forward(Tensor tgt, Tensor memory, " + targetMasks + ")",
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		l := layer{b, m}
		x := l.residual(1, a.Value(arg.Tgt), func(x op.Value) op.Value {
			return l.attention("self_attn", x, x, a.Any(arg.TgtMask), a.Any(arg.TgtKeyPaddingMask))
		})
		x = l.residual(2, x, func(x op.Value) op.Value {
			return l.attention("multihead_attn", x, a.Value(arg.Memory), a.Any(arg.MemoryMask), a.Any(arg.MemoryKeyPaddingMask))
		})
		return one(l.residual(3, x, l.feedForward))
	},
}

var encoderModule = &Def{
	Names:      []string{"torch.nn.TransformerEncoder"},
	Sig:        "TransformerEncoder(Data encoder_layer, int num_layers, Data? norm=None, bool enable_nested_tensor=True, bool mask_check=True)",
	Doc:        "Applies copies of an encoder layer one after the other, then norm.",
	Random:     true,
	Parts:      func(a op.Args) ([]Named, error) { return stackParts(a, arg.EncoderLayer) },
	ForwardSig: "forward(Tensor src, Tensor? mask=None, Tensor? src_key_padding_mask=None)",
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		return one(stack(b, m, a.Value(arg.Src), nil, op.Kw("src_mask", a.Any(arg.Mask)), op.Kw("src_key_padding_mask", a.Any(arg.SrcKeyPaddingMask))))
	},
}

var decoderModule = &Def{
	Names:      []string{"torch.nn.TransformerDecoder"},
	Sig:        "TransformerDecoder(Data decoder_layer, int num_layers, Data? norm=None)",
	Doc:        "Applies copies of a decoder layer one after the other, then norm.",
	Random:     true,
	Parts:      func(a op.Args) ([]Named, error) { return stackParts(a, arg.DecoderLayer) },
	ForwardSig: "forward(Tensor tgt, Tensor memory, " + targetMasks + ")",
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		return one(stack(b, m, a.Value(arg.Tgt), []any{a.Value(arg.Memory)}, masksOf(a)...))
	},
}

var transformerModule = &Def{
	Names: []string{"torch.nn.Transformer"},
	Sig: "Transformer(int d_model=512, int nhead=8, int num_encoder_layers=6, int num_decoder_layers=6, int dim_feedforward=2048, float dropout=0.1, str activation='relu', " +
		"Data? custom_encoder=None, Data? custom_decoder=None, float layer_norm_eps=1e-05, bool batch_first=False, bool norm_first=False, device? device=None, dtype? dtype=None)",
	Doc:        "Applies a TransformerEncoder to src, and a TransformerDecoder to tgt and the encoder's results.",
	Random:     true,
	Reject:     checkTransformer,
	Parts:      transformerParts,
	ForwardSig: "forward(Tensor src, Tensor tgt, Tensor? src_mask=None, Tensor? tgt_mask=None, Tensor? memory_mask=None, Tensor? src_key_padding_mask=None, Tensor? tgt_key_padding_mask=None, Tensor? memory_key_padding_mask=None)",
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		src, tgt := a.Value(arg.Src), a.Value(arg.Tgt)
		checkSequences(m, src.Shape(), tgt.Shape())
		memory := m.calls(b, "encoder", []any{src}, op.Kw("mask", a.Any(arg.SrcMask)), op.Kw("src_key_padding_mask", a.Any(arg.SrcKeyPaddingMask)))
		return one(m.calls(b, "decoder", []any{tgt, memory}, masksOf(a)...))
	},
}

// masksOf are the masks of a decoder's call.
func masksOf(a op.Args) []op.Kwarg {
	return []op.Kwarg{
		op.Kw("tgt_mask", a.Any(arg.TgtMask)), op.Kw("memory_mask", a.Any(arg.MemoryMask)),
		op.Kw("tgt_key_padding_mask", a.Any(arg.TgtKeyPaddingMask)), op.Kw("memory_key_padding_mask", a.Any(arg.MemoryKeyPaddingMask)),
	}
}

func checkTransformer(a op.Args) error {
	if f := a.Str(arg.Activation); f != "relu" && f != "gelu" {
		return op.RuntimeError("activation should be relu/gelu, not %s", f)
	}
	return nil
}

// layerParts are the modules of a layer: attentions, the feed-forward network,
// and as many norms and dropouts as it has residual connections.
func layerParts(a op.Args, attentions string, residuals int) ([]Named, error) {
	made := parts{dtype: op.Kw("dtype", a.Any(arg.DType))}
	model, inner, p := a.Int(arg.DModel), a.Int(arg.DimFeedforward), a.Float(arg.Dropout)
	for _, name := range strings.Fields(attentions) {
		made.add(name, attentionModules[0], []any{model, a.Int(arg.Nhead)}, op.Kw("dropout", p), op.Kw("batch_first", a.Bool(arg.BatchFirst)), made.dtype)
	}
	made.add("linear1", linearModule, []any{model, inner}, made.dtype)
	made.add("dropout", dropoutModules[0], []any{p})
	made.add("linear2", linearModule, []any{inner, model}, made.dtype)
	for i := range residuals {
		made.add(fmt.Sprintf("norm%d", i+1), layerNormModule, []any{model, a.Float(arg.LayerNormEps)}, made.dtype)
	}
	for i := range residuals {
		made.add(fmt.Sprintf("dropout%d", i+1), dropoutModules[0], []any{p})
	}
	return made.list, made.err
}

// parts collects the modules that a constructor makes, up to the first error.
type parts struct {
	list  []Named
	dtype op.Kwarg
	err   error
}

func (p *parts) add(name string, d *Def, args []any, kwargs ...op.Kwarg) *Module {
	if p.err != nil {
		return nil
	}
	m, err := d.New(args, kwargs)
	p.err = err
	p.list = append(p.list, Named{name, m})
	return m
}

// stackParts are copies of the layer that an argument is, and the norm.
func stackParts(a op.Args, of op.AnyArg) ([]Named, error) {
	first, ok := a.Any(of).(*Module)
	if !ok {
		return nil, op.TypeError("argument '%s' must be a module, not %s", of, op.TypeName(a.Any(of)))
	}
	var copies []any
	for range a.Int(arg.NumLayers) {
		copies = append(copies, first.copied())
	}
	list := parts{}
	list.add("layers", moduleList, []any{copies})
	if norm, ok := a.Any(arg.Norm).(*Module); ok {
		list.list = append(list.list, Named{"norm", norm})
	}
	return list.list, list.err
}

// copied is a copy of a module with a state of its own that begins as this one's.
func (m *Module) copied() *Module {
	c := *m
	c.slots, c.values, c.Children = slices.Clone(m.slots), maps.Clone(m.values), nil
	for i := range c.slots {
		c.slots[i].Given = m.values[c.slots[i].Name]
	}
	for _, child := range m.Children {
		c.Children = append(c.Children, child.copied())
	}
	return &c
}

func transformerParts(a op.Args) ([]Named, error) {
	made := parts{dtype: op.Kw("dtype", a.Any(arg.DType))}
	side := func(name string, custom op.AnyArg, layer, stack *Def, n op.IntArg) {
		if given, ok := a.Any(custom).(*Module); ok {
			made.list = append(made.list, Named{name, given})
			return
		}
		var inner parts
		one := inner.add("", layer, []any{a.Int(arg.DModel), a.Int(arg.Nhead), a.Int(arg.DimFeedforward), a.Float(arg.Dropout), a.Str(arg.Activation), a.Float(arg.LayerNormEps), a.Bool(arg.BatchFirst), a.Bool(arg.NormFirst)}, made.dtype)
		norm := inner.add("", layerNormModule, []any{a.Int(arg.DModel), a.Float(arg.LayerNormEps)}, made.dtype)
		if made.err = inner.err; made.err == nil {
			made.add(name, stack, []any{one, a.Int(n), norm})
		}
	}
	side("encoder", arg.CustomEncoder, encoderLayer, encoderModule, arg.NumEncoderLayers)
	if made.err == nil {
		side("decoder", arg.CustomDecoder, decoderLayer, decoderModule, arg.NumDecoderLayers)
	}
	return made.list, made.err
}

func checkSequences(m *Module, src, tgt []int) {
	batch := 1
	if m.Args.Bool(arg.BatchFirst) {
		batch = 0
	}
	if len(src) == 3 && len(tgt) == 3 && src[batch] != tgt[batch] {
		op.Fail(op.RuntimeError("the batch number of src and tgt must be equal"))
	}
	if model := m.Args.Int(arg.DModel); len(src) == 0 || len(tgt) == 0 || src[len(src)-1] != model || tgt[len(tgt)-1] != model {
		op.Fail(op.RuntimeError("the feature number of src and tgt must be equal to d_model"))
	}
}

// calls is the first result of a call of the named child.
func (m *Module) calls(b op.Builder, child string, args []any, kwargs ...op.Kwarg) op.Value {
	out, err := m.Child(child).Call(b, args, kwargs)
	if err != nil {
		op.Fail(err)
	}
	return out[0]
}

// stack applies the layers, and the norm if there is one.
func stack(b op.Builder, m *Module, x op.Value, more []any, masks ...op.Kwarg) op.Value {
	layers := m.Child("layers")
	for i := range layers.Children {
		x = layers.calls(b, layers.childName(i), append([]any{x}, more...), masks...)
	}
	if m.Child("norm") != nil {
		x = m.calls(b, "norm", []any{x})
	}
	return x
}

// layer is a layer of a transformer during a call.
type layer struct {
	op.Builder
	*Module
}

// residual adds f's result to x; the norm comes before f with norm_first, and
// else after the sum.
func (l layer) residual(i int, x op.Value, f func(x op.Value) op.Value) op.Value {
	norm, drop := fmt.Sprintf("norm%d", i), fmt.Sprintf("dropout%d", i)
	if l.Args.Bool(arg.NormFirst) {
		return l.Add(x, l.calls(l.Builder, drop, []any{f(l.calls(l.Builder, norm, []any{x}))}))
	}
	return l.calls(l.Builder, norm, []any{l.Add(x, l.calls(l.Builder, drop, []any{f(x)}))})
}

func (l layer) attention(name string, x, memory op.Value, mask, padding any) op.Value {
	return l.calls(l.Builder, name, []any{x, memory, memory}, op.Kw("attn_mask", mask), op.Kw("key_padding_mask", padding), op.Kw("need_weights", false))
}

func (l layer) feedForward(x op.Value) op.Value {
	x = l.Op(l.Args.Str(arg.Activation), l.calls(l.Builder, "linear1", []any{x}))
	return l.calls(l.Builder, "linear2", []any{l.calls(l.Builder, "dropout", []any{x})})
}
