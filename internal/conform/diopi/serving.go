package diopi

import (
	"iter"
	"math"
	"strings"

	"plumb/program"
)

func words(s string) iter.Seq[string] { return strings.FieldsSeq(s) }

// rotaryV2 turns pairs of coordinates half a head apart, head by head:
// x·cos + (−x₂, x₁)·sin.
func rotaryV2(b *build) []any {
	var out []any
	for _, name := range []string{"query", "key"} {
		shape := b.input(name).Shape
		dim := int(b.number("dim", 0))
		if len(shape) != 2 || dim <= 0 || dim%2 != 0 || shape[1]%dim != 0 {
			b.refuse("%s: want rows of heads of %d coordinates, not %v", name, dim, shape)
		}
		x := b.call("torch.reshape", b.arg(name), sizes(shape[0], shape[1]/dim, dim))
		first := b.call("operator.getitem", x, program.Tuple{program.Ellipsis{}, program.Slice{Stop: int64(dim / 2)}})
		second := b.call("operator.getitem", x, program.Tuple{program.Ellipsis{}, program.Slice{Start: int64(dim / 2)}})
		turned := b.call("torch.cat", program.List{b.call("torch.neg", second), first}, int64(-1))
		sum := b.call("torch.add", b.call("torch.mul", x, b.arg("cos")), b.call("torch.mul", turned, b.arg("sin")))
		out = append(out, b.call("torch.reshape", sum, sizes(shape...)))
	}
	return out
}

func sizes(xs ...int) program.Tuple {
	out := make(program.Tuple, len(xs))
	for i, x := range xs {
		out[i] = int64(x)
	}
	return out
}

// applyPenalty lowers, row by row, the logits of the tokens that were there: by
// their count times the frequency's penalty and by that of their presence.
func applyPenalty(b *build) []any {
	logits, ends := b.arg("logits"), b.literals("p_cumsum_seq_len")
	for i := range len(ends) - 1 {
		part := program.Slice{Start: ends[i], Stop: ends[i+1]}
		ids := b.call("operator.getitem", b.arg("p_token_ids"), part)
		counts := b.call("operator.getitem", b.arg("p_token_counts"), part)
		row := b.call("operator.getitem", logits, int64(i))
		old := b.call("operator.getitem", row, ids)
		often := b.call("torch.mul", counts, b.call("operator.getitem", b.arg("frequency_penalty"), int64(i)))
		lower := b.call("torch.sub", b.call("torch.sub", old, often), b.call("operator.getitem", b.arg("presence_penalty"), int64(i)))
		row = b.call("torch.index_put", row, program.List{ids}, lower)
		logits = b.call("torch.select_scatter", logits, row, int64(0), int64(i))
	}
	return []any{logits}
}

// applyPenaltyV2 divides or multiplies the logits of the tokens that were there
// by the penalty of repetition, whichever lowers them, and then lowers them as
// applyPenalty does; a token is a place in the flat logits.
func applyPenaltyV2(b *build) []any {
	flat := b.call("torch.reshape", b.arg("logits"), sizes(-1))
	ids, again := b.arg("p_token_ids"), b.arg("repetition_penalty")
	old := b.call("operator.getitem", flat, ids)
	lower := b.call("torch.where", b.call("torch.gt", old, int64(0)), b.call("torch.div", old, again), b.call("torch.mul", old, again))
	lower = b.call("torch.sub", lower, b.call("torch.mul", b.arg("p_token_counts"), b.arg("frequency_penalty")))
	lower = b.call("torch.sub", lower, b.arg("presence_penalty"))
	flat = b.call("torch.index_put", flat, program.List{ids}, lower)
	return []any{b.call("torch.reshape", flat, sizes(b.input("logits").Shape...))}
}

// destIndexCopy puts the rows of k in the places of out that dest_loc names.
func destIndexCopy(b *build) []any {
	return []any{b.call("torch.index_put", b.arg("out"), program.List{b.arg("dest_loc")}, b.arg("k"))}
}

// attention is softmax(q·kᵀ·scale)·v of tensors in the order batch, place,
// head, coordinate. With fewer heads of k and v each serves a group of q's. What
// a causal one may not see is lowered by masked.
func (b *build) attention(q, k, v any, shape, keys []int, scale float64, causal bool) program.Ref {
	if groups := shape[2] / keys[2]; groups > 1 {
		k = b.call("torch.repeat_interleave", k, int64(groups), int64(2))
		v = b.call("torch.repeat_interleave", v, int64(groups), int64(2))
	}
	heads := func(x any) program.Ref { return b.call("torch.transpose", x, int64(1), int64(2)) }
	kt := b.call("torch.transpose", b.call("torch.mul", heads(k), scale), int64(2), int64(3))
	scores := b.call("torch.matmul", heads(q), kt)
	if causal {
		const masked = -10000.0
		full := b.call("torch.full", sizes(shape[1], keys[1]), masked, kw("dtype", b.input(firstOf(b.c.Function)).DType))
		scores = b.call("torch.add", scores, b.call("torch.triu", full, int64(1)))
	}
	return heads(b.call("torch.matmul", b.call("torch.softmax", scores, int64(-1)), heads(v)))
}

func firstOf(function string) string {
	if function == "prompt_flash_attention" {
		return "query"
	}
	return "q"
}

// scale is softmax_scale, or 1/√d where it is None or 0.
func (b *build) scale(d int) float64 {
	if s := b.number("softmax_scale", 0); s != 0 {
		return s
	}
	return 1 / math.Sqrt(float64(d))
}

// orders are the layouts of attention, as the permutation to batch, place, head,
// coordinate.
var orders = map[string]program.Tuple{"BSND": nil, "BNSD": {int64(0), int64(2), int64(1), int64(3)}}

// flashAttention ignores alibi_slopes and the window, and drops nothing.
func flashAttention(b *build) []any {
	layout, _ := b.arg("input_layout").(string)
	if layout == "" {
		layout = "BSND"
	}
	order, ok := orders[layout]
	if !ok {
		return flatAttention(b, layout)
	}
	q, k, v := b.arg("q"), b.arg("k"), b.arg("v")
	shape, keys := b.input("q").Shape, b.input("k").Shape
	b.wantHeads(shape, keys)
	if order != nil {
		q, k, v = b.call("torch.permute", q, order), b.call("torch.permute", k, order), b.call("torch.permute", v, order)
		shape, keys = permuted(shape), permuted(keys)
	}
	out := b.attention(q, k, v, shape, keys, b.scale(shape[3]), b.arg("is_causal") == true)
	if order != nil {
		out = b.call("torch.permute", out, order)
	}
	return []any{out}
}

func permuted(s []int) []int { return []int{s[0], s[2], s[1], s[3]} }

func (b *build) wantHeads(shape, keys []int) {
	if len(shape) != 4 || len(keys) != 4 {
		b.refuse("q and k: want 4 dimensions, not %v and %v", shape, keys)
	}
}

// flatAttention has the layouts SBH and BSH, whose last dimension holds the
// coordinates of all heads.
func flatAttention(b *build, layout string) []any {
	n := int(b.number("head_num", b.number("num_heads", 0)))
	shape, keys := b.input("q").Shape, b.input("k").Shape
	if layout != "SBH" && layout != "BSH" || n <= 0 || len(shape) != 3 || len(keys) != 3 || shape[2]%n != 0 || keys[2]%(shape[2]/n) != 0 {
		b.refuse("attention of layout %q, shapes %v and %v and %d heads is not known", layout, shape, keys, n)
	}
	d := shape[2] / n
	swap := func(x any) any {
		if layout == "SBH" {
			return b.call("torch.transpose", x, int64(0), int64(1))
		}
		return x
	}
	batchFirst := func(s []int) []int {
		if layout == "SBH" {
			return []int{s[1], s[0], s[2]}
		}
		return s
	}
	heads := func(x any, s []int) any { return b.call("torch.reshape", swap(x), sizes(s[0], s[1], s[2]/d, d)) }
	qs, ks := batchFirst(shape), batchFirst(keys)
	out := b.attention(heads(b.arg("q"), qs), heads(b.arg("k"), ks), heads(b.arg("v"), ks),
		[]int{qs[0], qs[1], n, d}, []int{ks[0], ks[1], ks[2] / d, d}, b.scale(d), b.arg("is_causal") == true)
	return []any{swap(b.call("torch.reshape", out, sizes(qs...)))}
}

// flashVarlen is attention within each of the sequences that lie one behind the
// other; cu_seqlens are their ends, with or without a leading 0.
func flashVarlen(b *build) []any {
	ends, keyEnds := leading0(b.literals("cu_seqlens_q")), leading0(b.literals("cu_seqlens_kv"))
	if len(ends) != len(keyEnds) {
		b.refuse("cu_seqlens_q and cu_seqlens_kv have %d and %d entries", len(ends), len(keyEnds))
	}
	var parts program.List
	for i := range len(ends) - 1 {
		parts = append(parts, b.sequence(ends[i], ends[i+1], keyEnds[i], keyEnds[i+1], b.arg("is_causal") == true))
	}
	return []any{b.call("torch.cat", parts, int64(0))}
}

func leading0(ends []int64) []int64 {
	if len(ends) > 0 && ends[0] == 0 {
		return ends
	}
	return append([]int64{0}, ends...)
}

// sequence is the attention of q[from:to] to k[keyFrom:keyTo].
func (b *build) sequence(from, to, keyFrom, keyTo int64, causal bool) program.Ref {
	shape, keys := b.input("q").Shape, b.input("k").Shape
	if len(shape) != 3 || len(keys) != 3 || from < 0 || to < from || int(to) > shape[0] || keyFrom < 0 || keyTo < keyFrom || int(keyTo) > keys[0] {
		b.refuse("q and k: %v and %v have no sequences %d to %d and %d to %d", shape, keys, from, to, keyFrom, keyTo)
	}
	cut := func(name string, from, to int64) program.Ref {
		x := b.call("operator.getitem", b.arg(name), program.Slice{Start: from, Stop: to})
		return b.call("torch.unsqueeze", x, int64(0))
	}
	out := b.attention(cut("q", from, to), cut("k", keyFrom, keyTo), cut("v", keyFrom, keyTo),
		[]int{1, int(to - from), shape[1], shape[2]}, []int{1, int(keyTo - keyFrom), keys[1], keys[2]}, b.scale(shape[2]), causal)
	return b.call("torch.squeeze", out, int64(0))
}

// contextAttention is causal attention within each of the sequences.
func contextAttention(b *build) []any {
	starts, lengths := b.literals("b_start_loc"), b.literals("b_seq_len")
	if len(starts) != len(lengths) {
		b.refuse("b_start_loc and b_seq_len have %d and %d entries", len(starts), len(lengths))
	}
	var parts program.List
	for i, s := range starts {
		parts = append(parts, b.sequence(s, s+lengths[i], s, s+lengths[i], true))
	}
	return []any{b.call("torch.cat", parts, int64(0))}
}

// promptAttention is attention of batches of equally long prompts, whose mask
// is True where a place may not be seen.
func promptAttention(b *build) []any {
	n, places := int(b.number("numHeads", 0)), int(b.number("maxInputLen", 0))
	kv, d := int(b.number("numKeyValueHeads", 0)), int(b.number("dim", 0))
	shape := b.input("query").Shape
	if len(shape) != 2 || places <= 0 || shape[0]%places != 0 || shape[1] != n*d || kv <= 0 || n%kv != 0 {
		b.refuse("query: %v does not hold prompts of %d places and %d heads of %d coordinates", shape, places, n, d)
	}
	batch := shape[0] / places
	heads := func(name string, n int) program.Ref {
		x := b.call("torch.reshape", b.arg(name), sizes(batch, places, n, d))
		if n == kv && n < int(b.number("numHeads", 0)) {
			x = b.call("torch.repeat_interleave", x, b.arg("numHeads").(int64)/int64(kv), int64(2))
		}
		return b.call("torch.transpose", x, int64(1), int64(2))
	}
	q, k, v := heads("query", n), heads("key", kv), heads("value", kv)
	scores := b.call("torch.mul", b.call("torch.matmul", q, b.call("torch.transpose", k, int64(2), int64(3))), 1/math.Sqrt(float64(d)))
	if mask := b.arg("attenMask"); mask != nil {
		scores = b.call("torch.masked_fill", scores, b.call("torch.unsqueeze", mask, int64(1)), math.Inf(-1))
	}
	out := b.call("torch.matmul", b.call("torch.softmax", scores, int64(-1)), v)
	return []any{b.call("torch.reshape", b.call("torch.transpose", out, int64(1), int64(2)), sizes(shape...))}
}
