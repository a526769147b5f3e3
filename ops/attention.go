package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var attentionOps = []*op.Def{
	{
		Sig:   "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
		Names: []string{"torch.nn.functional.scaled_dot_product_attention"},
		Doc: "Attention: softmax(scale·query·keyᵀ + mask)·value over the last two dimensions, scale 1/√E by default. " +
			"A bool mask keeps what is True, another is added; is_causal keeps the lower triangle.",
		Reject:  checkAttention,
		Compose: composeAttention,
		Sample:  sampleAttention,
		Tol:     accumulating(scaledDotProductAttentionTerms, "each weight sums one product per feature, each element one per key"),
	},
	{
		Sig:     "attention.causal(Tensor scores, float value) -> Tensor",
		Doc:     "A copy in which value takes the place of the elements (…, i, j) with j > i.",
		SBP:     planes(2, arg.Scores),
		Infer:   inferAttentionCausal,
		Kernels: []op.Kernel{{Name: "copy", Run: causalRun}},
		Grad:    op.GradientOf(arg.Scores, func(g *op.Grad) op.Value { return g.Op("attention.causal", g.G(), 0.0) }),
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(2, 4)...), s.Float(-1, 1)} },
		Tol:     exactTol("copies or replaces elements"),
	},
}

func scaledDotProductAttentionTerms(a op.Args) int {
	return sizeOf(a.Value(arg.Query), 1) + sizeOf(a.Value(arg.Key), 2)
}

func inferAttentionCausal(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Scores)
	if len(v.Shape()) < 2 {
		return nil, op.RuntimeError("scores must have at least 2 dimensions, but has %d", len(v.Shape()))
	}
	return one(v.DType(), v.Shape(), nil), nil
}

func causalRun(c *op.Run) error {
	out := c.Out[0]
	out.CopyFrom(c.Tensor(arg.Scores))
	rows, columns := sizeOf(out, 2), sizeOf(out, 1)
	fill := tensor.Scalar(out.DType(), complex(c.Float(arg.ValueFloat), 0))
	flat := out.Reshape(tensor.NumElements(out.Shape()[:out.Dim()-2]), rows, columns)
	for i := range min(rows, max(columns-1, 0)) {
		above := flat.Narrow(1, i, 1, 1).Narrow(2, i+1, columns-i-1, 1)
		spread, err := fill.Expand(above.Shape()...)
		if err != nil {
			return err
		}
		above.CopyFrom(spread)
	}
	return nil
}

// checkAttention knows no random weights: what is drawn within a call has no law
// by which two sides could be compared.
func checkAttention(a op.Args) error {
	if p := a.Float(arg.DropoutP); p > 0 && p < 1 {
		return notUnderstood(a.Sig.Name, "dropout_p")
	}
	q, k, v := a.Value(arg.Query), a.Value(arg.Key), a.Value(arg.ValueTensor)
	if len(q.Shape()) < 2 || len(k.Shape()) < 2 || len(v.Shape()) < 2 {
		return op.RuntimeError("query, key and value must have at least 2 dimensions, but have shapes %s, %s and %s", tensor.ShapeString(q.Shape()), tensor.ShapeString(k.Shape()), tensor.ShapeString(v.Shape()))
	}
	if q.DType() != k.DType() || q.DType() != v.DType() {
		return op.RuntimeError("query, key and value must have the same dtype, but have %s, %s and %s", q.DType(), k.DType(), v.DType())
	}
	mask := a.Value(arg.AttnMask)
	if mask == nil {
		return nil
	}
	if a.Bool(arg.IsCausal) {
		return op.RuntimeError("attn_mask must be None when is_causal is True")
	}
	if d := mask.DType(); d != tensor.Bool && d != q.DType() && d != tensor.F32 {
		return op.RuntimeError("attn_mask must have dtype bool or that of query, %s, but has %s", q.DType(), d)
	}
	return nil
}

func composeAttention(b op.Builder, a op.Args) []op.Value {
	q, k, v := a.Value(arg.Query), a.Value(arg.Key), a.Value(arg.ValueTensor)
	dtype := q.DType()
	if slices.Contains(halfTypes, dtype) { // as PyTorch 2.5 and later: one rounding, at the end
		q, k, v = b.Cast(q, tensor.F32), b.Cast(k, tensor.F32), b.Cast(v, tensor.F32)
	}
	if a.Bool(arg.EnableGqa) {
		k, v = repeatHeads(b, k, q), repeatHeads(b, v, q)
	}
	scale := 1 / math.Sqrt(float64(sizeOf(q, 1)))
	if a.Has(arg.Scale) {
		scale = a.Float(arg.Scale)
	}
	// as PyTorch, both factors share the scale, lest a half type overflow
	root := math.Sqrt(math.Abs(scale))
	scores := b.Op("matmul", b.Mul(q, math.Copysign(root, scale)), b.Mul(b.Op("transpose", k, -2, -1), root))
	switch mask := a.Value(arg.AttnMask); {
	case a.Bool(arg.IsCausal):
		scores = b.Op("attention.causal", scores, math.Inf(-1))
	case mask != nil && mask.DType() == tensor.Bool:
		scores = b.Op("where", mask, scores, math.Inf(-1))
	case mask != nil:
		scores = b.Add(scores, mask)
	}
	weights := b.Op("softmax", scores, -1)
	if p := a.Float(arg.DropoutP); p > 0 {
		weights = b.Op("dropout", weights, p)
	}
	return []op.Value{b.Cast(b.Op("matmul", weights, v), dtype)}
}

// repeatHeads repeats the heads of v, dimension -3, to be as many as q's.
func repeatHeads(b op.Builder, v, q op.Value) op.Value {
	s, n := v.Shape(), len(v.Shape())
	want := sizeOf(q, 3)
	if n < 3 || s[n-3] == 0 || want%s[n-3] != 0 {
		op.Fail(op.RuntimeError("enable_gqa needs a number of heads of query that those of key and value divide"))
	}
	wide := slices.Insert(slices.Clone(s), n-2, want/s[n-3])
	out := slices.Clone(s)
	out[n-3] = want
	return b.Reshape(b.Expand(b.Op("unsqueeze", v, -3), wide), out)
}

func sampleAttention(s *op.Sampler) []any {
	batch := s.Shape(0, 2)
	l, n, e, out := int(s.Int(1, 5)), int(s.Int(1, 5)), int(s.Int(1, 5)), int(s.Int(1, 5))
	args := []any{
		s.Tensor(-2, 2, append(slices.Clone(batch), l, e)...),
		s.Tensor(-2, 2, append(slices.Clone(batch), n, e)...),
		s.Tensor(-2, 2, append(slices.Clone(batch), n, out)...),
	}
	switch s.Index(4) {
	case 1:
		args = append(args, s.Tensor(-2, 2, l, n))
	case 2:
		args = append(args, op.Kw("is_causal", true))
	case 3:
		args = append(args, op.Kw("scale", s.Float(0.1, 2)))
	}
	return args
}
