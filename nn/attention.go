package nn

import (
	"fmt"
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var attentionModules = []*Def{{
	Names:  []string{"torch.nn.MultiheadAttention"},
	Sig:    "MultiheadAttention(int embed_dim, int num_heads, float dropout=0.0, bool bias=True, bool add_bias_kv=False, bool add_zero_attn=False, int? kdim=None, int? vdim=None, bool batch_first=False, device? device=None, dtype? dtype=None)",
	Doc:    "Applies attention in several heads to projections of query, key and value, and projects the result; returns it and the weights.",
	Random: true,
	Reject: func(a op.Args) error {
		if a.Int(arg.NumHeads) == 0 || a.Int(arg.EmbedDim) == 0 {
			return &op.Error{Class: "ZeroDivisionError", Msg: "embed_dim and num_heads must not be zero"}
		}
		if n := a.Int(arg.NumHeads); n < 1 || a.Int(arg.EmbedDim)%n != 0 {
			return assertion("embed_dim=%d must be divisible by num_heads=%d", a.Int(arg.EmbedDim), n)
		}
		return nil
	},
	State:      attentionState,
	ForwardSig: "forward(Tensor query, Tensor key, Tensor value, Tensor? key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None, bool average_attn_weights=True, bool is_causal=False)",
	Forward:    attentionForward,
}}

// assertion is the rejection of a Python assert.
func assertion(format string, args ...any) error {
	return &op.Error{Class: "AssertionError", Msg: fmt.Sprintf(format, args...)}
}

func attentionState(a op.Args) []Slot {
	e := a.Int(arg.EmbedDim)
	var slots []Slot
	param := func(name string, fill *float64, shape ...int) {
		slots = append(slots, Slot{Name: name, Kind: Param, DType: stateType(a), Shape: shape, Fill: fill})
	}
	if separate(a) {
		param("q_proj_weight", nil, e, e)
		param("k_proj_weight", nil, e, orDefault(a, arg.Kdim, e))
		param("v_proj_weight", nil, e, orDefault(a, arg.Vdim, e))
	} else {
		param("in_proj_weight", nil, 3*e, e)
	}
	if a.Bool(arg.BiasBool) {
		param("in_proj_bias", new(0.0), 3*e)
	}
	if a.Bool(arg.AddBiasKV) {
		param("bias_k", nil, 1, 1, e)
		param("bias_v", nil, 1, 1, e)
	}
	param("out_proj.weight", nil, e, e)
	if a.Bool(arg.BiasBool) {
		param("out_proj.bias", new(0.0), e)
	}
	return slots
}

func orDefault(a op.Args, name op.IntArg, n int) int {
	if a.Has(name) {
		return a.Int(name)
	}
	return n
}

// separate reports whether query, key and value have weights of their own.
func separate(a op.Args) bool {
	e := a.Int(arg.EmbedDim)
	return orDefault(a, arg.Kdim, e) != e || orDefault(a, arg.Vdim, e) != e
}

func attentionForward(b op.Builder, m *Module, a op.Args) []op.Value {
	c := m.Args
	q, k, v := a.Value(arg.Query), a.Value(arg.Key), a.Value(arg.ValueTensor)
	padding, mask := a.Value(arg.KeyPaddingMask), a.Value(arg.AttnMask)
	for _, flag := range []op.BoolArg{arg.AddBiasKV, arg.AddZeroAttn} {
		if c.Bool(flag) {
			op.Fail(unsupported(m, string(flag), true))
		}
	}
	batched := len(q.Shape()) == 3
	checkAttended(q, k, v, padding, mask)
	switch {
	case !batched:
		q, k, v = sameOf(q, k, v, func(x op.Value) op.Value { return b.Op("unsqueeze", x, 1) })
		if padding != nil {
			padding = b.Op("unsqueeze", padding, 0)
		}
	case c.Bool(arg.BatchFirst):
		q, k, v = sameOf(q, k, v, func(x op.Value) op.Value { return b.Op("transpose", x, 0, 1) })
	}
	checkEmbedding(c, q, k, v)
	h := heads{Builder: b, n: c.Int(arg.NumHeads), size: c.Int(arg.EmbedDim) / c.Int(arg.NumHeads), batch: q.Shape()[1], from: q.Shape()[0], to: k.Shape()[0]}
	added := h.mask(mask, padding, q.DType())
	out, weights := h.attend(project(b, m, q, k, v), added, m)
	if a.Bool(arg.NeedWeights) {
		weights = b.Reshape(weights, []int{h.batch, h.n, h.from, h.to})
		if a.Bool(arg.AverageAttnWeights) {
			weights = b.Div(b.Op("sum", weights, 1), h.n)
		}
	} else {
		weights = nil
	}
	switch {
	case !batched:
		out = b.Op("squeeze", out, 1)
		if weights != nil {
			weights = b.Op("squeeze", weights, 0)
		}
	case c.Bool(arg.BatchFirst):
		out = b.Op("transpose", out, 0, 1)
	}
	return []op.Value{out, weights}
}

// sameOf applies f to three values, once to those that are the same.
func sameOf(q, k, v op.Value, f func(op.Value) op.Value) (fq, fk, fv op.Value) {
	fq = f(q)
	if fk = fq; k != q {
		fk = f(k)
	}
	if fv = fk; v != k {
		fv = f(v)
	}
	return fq, fk, fv
}

func checkAttended(q, k, v, padding, mask op.Value) {
	n := len(q.Shape())
	if n != 2 && n != 3 {
		op.Fail(assertion("query must have 2 or 3 dimensions, but has %d", n))
	}
	if len(k.Shape()) != n || len(v.Shape()) != n {
		op.Fail(assertion("key and value must have %d dimensions as query, but have %d and %d", n, len(k.Shape()), len(v.Shape())))
	}
	if padding != nil && len(padding.Shape()) != n-1 {
		op.Fail(assertion("key_padding_mask must have %d dimensions, but has %d", n-1, len(padding.Shape())))
	}
	if padding != nil && padding.DType() != tensor.Bool && !padding.DType().IsFloat() {
		op.Fail(assertion("key_padding_mask must be bool or floating, but is %s", padding.DType()))
	}
	if mask != nil && len(mask.Shape()) != 2 && len(mask.Shape()) != 3 {
		op.Fail(assertion("attn_mask must have 2 or 3 dimensions, but has %d", len(mask.Shape())))
	}
	if mask != nil && mask.DType() != tensor.Bool && !mask.DType().IsFloat() {
		op.Fail(assertion("attn_mask must be bool or floating, but is %s", mask.DType()))
	}
}

func checkEmbedding(c op.Args, q, k, v op.Value) {
	if e := c.Int(arg.EmbedDim); q.Shape()[2] != e {
		op.Fail(assertion("query must have embed_dim=%d features, but has %d", e, q.Shape()[2]))
	}
	ks, vs := k.Shape(), v.Shape()
	if separate(c) {
		ks, vs = ks[:2], vs[:2]
	}
	if !slices.Equal(ks, vs) {
		op.Fail(assertion("key and value must have the same shape, but have %s and %s", tensor.ShapeString(k.Shape()), tensor.ShapeString(v.Shape())))
	}
}

// project returns the projections of query, key and value. What is the same
// tensor is projected in one product.
func project(b op.Builder, m *Module, q, k, v op.Value) [3]op.Value {
	biases := []op.Value{nil, nil, nil}
	if bias := m.values["in_proj_bias"]; bias != nil {
		biases = b.All("chunk", bias, 3)
	}
	linear := func(x, w, bias op.Value) op.Value {
		if bias == nil {
			return b.Op("linear", x, w)
		}
		return b.Op("linear", x, w, bias)
	}
	weight := m.values["in_proj_weight"]
	if weight == nil {
		return [3]op.Value{
			linear(q, m.values["q_proj_weight"], biases[0]),
			linear(k, m.values["k_proj_weight"], biases[1]),
			linear(v, m.values["v_proj_weight"], biases[2]),
		}
	}
	if q == k && k == v {
		parts := b.All("chunk", linear(q, weight, m.values["in_proj_bias"]), 3, -1)
		return [3]op.Value{parts[0], parts[1], parts[2]}
	}
	w := b.All("chunk", weight, 3)
	return [3]op.Value{linear(q, w[0], biases[0]), linear(k, w[1], biases[1]), linear(v, w[2], biases[2])}
}

// heads are the sizes of attention: n heads of size features, from as many
// queries to as many keys.
type heads struct {
	op.Builder
	n, size, batch, from, to int
}

// mask merges both masks into one that is added to the scores; nil without any.
func (h *heads) mask(mask, padding op.Value, d tensor.DType) op.Value {
	if mask != nil {
		want := []int{h.from, h.to}
		if len(mask.Shape()) == 3 {
			want = []int{h.batch * h.n, h.from, h.to}
		}
		if !slices.Equal(mask.Shape(), want) {
			op.Fail(op.RuntimeError("attn_mask must have shape %s, but has %s", tensor.ShapeString(want), tensor.ShapeString(mask.Shape())))
		}
		if len(want) == 2 {
			mask = h.Op("unsqueeze", mask, 0)
		}
		mask = h.additive(mask, d)
	}
	if padding == nil {
		return mask
	}
	if want := []int{h.batch, h.to}; !slices.Equal(padding.Shape(), want) {
		op.Fail(assertion("key_padding_mask must have shape %s, but has %s", tensor.ShapeString(want), tensor.ShapeString(padding.Shape())))
	}
	padding = h.Expand(h.Reshape(padding, []int{h.batch, 1, 1, h.to}), []int{h.batch, h.n, 1, h.to})
	padding = h.additive(h.Reshape(padding, []int{h.batch * h.n, 1, h.to}), d)
	if mask == nil {
		return padding
	}
	return h.Add(mask, padding)
}

// additive turns a bool mask, true where nothing may be attended to, into
// terms of 0 and -∞.
func (h *heads) additive(mask op.Value, d tensor.DType) op.Value {
	if mask.DType() != tensor.Bool {
		return mask
	}
	return h.Op("where", mask, math.Inf(-1), h.Op("zeros_like", mask, op.Kw("dtype", d)))
}

// attend returns the projected attention, [from, batch, features], and the
// weights per head, [batch·n, from, to].
func (h *heads) attend(projected [3]op.Value, added op.Value, m *Module) (out, weights op.Value) {
	var part [3]op.Value
	for i, v := range projected {
		v = h.Reshape(v, []int{v.Shape()[0], h.batch * h.n, h.size})
		part[i] = h.Op("transpose", v, 0, 1)
	}
	scaled := h.Div(part[0], math.Sqrt(float64(h.size)))
	keys := h.Op("transpose", part[1], -2, -1)
	if added != nil {
		weights = h.Op("baddbmm", added, scaled, keys)
	} else {
		weights = h.Op("bmm", scaled, keys)
	}
	weights = h.Op("softmax", weights, -1)
	if p := m.Args.Float(arg.Dropout); m.Training && p > 0 {
		weights = h.Op("dropout", weights, p, true)
	}
	out = h.Op("transpose", h.Op("bmm", weights, part[2]), 0, 1)
	out = h.Reshape(out, []int{h.from * h.batch, h.n * h.size})
	out = h.Op("linear", out, m.param("out_proj.weight"), m.param("out_proj.bias"))
	return h.Reshape(out, []int{h.from, h.batch, h.n * h.size}), weights
}
