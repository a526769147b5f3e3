package diopi

import (
	"iter"
	"math"
	"strings"

	"plumb/program"
)

func words(s string) iter.Seq[string] { return strings.FieldsSeq(s) }

// rotary turns pairs of coordinates half a vector apart: (x₁·cos − x₂·sin,
// x₁·sin + x₂·cos), or back with conj; of halves in float32.
func rotary(b *build) []any {
	name := b.first("input", "x")
	in := b.input(name)
	n := len(in.Shape)
	if n == 0 || in.Shape[n-1]%2 != 0 {
		b.refuse("input: %v has no pairs of coordinates", in.Shape)
	}
	middle := int64(in.Shape[n-1] / 2)
	x, of := b.wide(b.arg(name), in.DType), func(name string) any { return b.wide(b.arg(name), b.input(name).DType) }
	first, second := b.at(x, program.Ellipsis{}, program.Slice{Stop: middle}), b.at(x, program.Ellipsis{}, program.Slice{Start: middle})
	cos, sin := of("cos"), of("sin")
	if b.arg("conj") == true {
		sin = b.call("torch.neg", sin)
	}
	mul := func(x, y any) program.Ref { return b.call("torch.mul", x, y) }
	left := b.call("torch.sub", mul(first, cos), mul(second, sin))
	right := b.call("torch.add", mul(first, sin), mul(second, cos))
	return []any{b.narrow(b.call("torch.cat", program.List{left, right}, int64(-1)), in.DType)}
}

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
	places := b.long("p_token_ids")
	for i := range len(ends) - 1 {
		part := program.Slice{Start: ends[i], Stop: ends[i+1]}
		ids := b.call("operator.getitem", places, part)
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
	ids, again := b.long("p_token_ids"), b.arg("repetition_penalty")
	old := b.call("operator.getitem", flat, ids)
	lower := b.call("torch.where", b.call("torch.gt", old, int64(0)), b.call("torch.div", old, again), b.call("torch.mul", old, again))
	lower = b.call("torch.sub", lower, b.call("torch.mul", b.arg("p_token_counts"), b.arg("frequency_penalty")))
	lower = b.call("torch.sub", lower, b.arg("presence_penalty"))
	flat = b.call("torch.index_put", flat, program.List{ids}, lower)
	return []any{b.call("torch.reshape", flat, sizes(b.input("logits").Shape...))}
}

// destIndexCopy puts the rows of k in the places of out that dest_loc names.
func destIndexCopy(b *build) []any {
	return []any{b.call("torch.index_put", b.arg("out"), program.List{b.long("dest_loc")}, b.arg("k"))}
}

// contextAttention is causal attention within each of the sequences, put into
// out.
func contextAttention(b *build) []any {
	starts, lengths := b.literals("b_start_loc"), b.literals("b_seq_len")
	if len(starts) != len(lengths) {
		b.refuse("b_start_loc and b_seq_len have %d and %d entries", len(starts), len(lengths))
	}
	shape := b.input("q").Shape
	var out any
	if _, ok := b.arg("out").(program.Ref); ok {
		out = b.arg("out")
	} else {
		out = b.call("torch.zeros", sizes(shape...), kw("dtype", b.input("q").DType))
	}
	for i, s := range starts {
		part := b.sequence(s, s+lengths[i], 1/math.Sqrt(float64(shape[len(shape)-1])), true, unseen, true)
		out = b.into(out, part, 0, s, s+lengths[i])
	}
	return []any{out}
}

// into is x with part in the places from to to of a dimension. It is not made by
// slice_scatter, whose ends PyTorch 1.13 mistakes.
func (b *build) into(x, part any, dim int, from, to int64) program.Ref {
	cut := func(s program.Slice) program.Ref {
		at := make(program.Tuple, dim+1)
		for i := range at {
			at[i] = program.Slice{}
		}
		at[dim] = s
		return b.call("operator.getitem", x, at)
	}
	return b.call("torch.cat", program.List{cut(program.Slice{Stop: from}), part, cut(program.Slice{Start: to})}, int64(dim))
}

// grouped are the numbers of heads of the query and of keys and values, and of
// coordinates of a head.
func (b *build) grouped() (n, kv, d int) {
	n, d = int(b.number("numHeads", 0)), int(b.number("dim", 0))
	kv = int(b.number("numKeyValueHeads", float64(n)))
	if n <= 0 || d <= 0 || kv <= 0 || n%kv != 0 {
		b.refuse("%d heads of %d coordinates over %d of keys and values is not known", n, d, kv)
	}
	return n, kv, d
}

// promptAttention is causal attention of batches of equally long prompts; it
// ignores attenMask.
func promptAttention(b *build) []any {
	n, kv, d := b.grouped()
	places, shape := int(b.number("maxInputLen", 0)), b.input("query").Shape
	if len(shape) != 2 || places <= 0 || shape[0]%places != 0 || shape[1] != n*d {
		b.refuse("query: %v does not hold prompts of %d places and %d heads of %d coordinates", shape, places, n, d)
	}
	batch := shape[0] / places
	apart := func(name string, n int) program.Ref {
		return b.call("torch.reshape", b.arg(name), sizes(batch, places, n, d))
	}
	out := b.attention(apart("query", n), apart("key", kv), apart("value", kv), heads{
		q: []int{batch, places, n, d}, k: []int{batch, places, kv, d},
		scale: 1 / math.Sqrt(float64(d)), causal: true, mask: unseen, wide: true, dtype: b.input("query").DType,
	})
	return []any{b.call("torch.reshape", out, sizes(shape...))}
}

// pagedAttention is attention of each row of query to the first rows of key and
// value, as many as actualSeqLengths says; it ignores block table and mask.
func pagedAttention(b *build) []any {
	n, kv, d := b.grouped()
	lengths, shape, keys := b.literals("actualSeqLengths"), b.input("query").Shape, b.input("key").Shape
	if len(shape) != 2 || len(keys) != 2 || shape[1] != n*d || keys[1] != kv*d || len(lengths) == 0 || int(lengths[0]) > keys[0] {
		b.refuse("query and key: %v and %v do not hold %d and %d heads of %d coordinates, %v places long", shape, keys, n, kv, d, lengths)
	}
	long := int(lengths[0])
	past := func(name string) program.Ref {
		return b.call("torch.reshape", b.at(b.arg(name), program.Slice{Stop: lengths[0]}), sizes(1, long, kv, d))
	}
	q := b.call("torch.reshape", b.arg("query"), sizes(1, shape[0], n, d))
	out := b.attention(q, past("key"), past("value"), heads{
		q: []int{1, shape[0], n, d}, k: []int{1, long, kv, d}, scale: 1 / math.Sqrt(float64(d)), wide: true, dtype: b.input("query").DType,
	})
	return []any{b.call("torch.reshape", out, sizes(shape...))}
}

// cached are the rows of the cache named name that hold the tokens of the i-th
// sequence, and its length: b_loc has their places at the end of its row.
func (b *build) cached(name string, i int) (rows program.Ref, n int64) {
	most, lengths := int64(b.number("max_input_len", 0)), b.literals("b_seq_len")
	if loc := b.input("b_loc").Shape; len(loc) != 2 || i >= len(lengths) || lengths[i] > most || most > int64(loc[1]) {
		b.refuse("b_loc: %v has no row %d of %d places, of which the last %v are taken", loc, i, most, lengths)
	}
	slots := b.at(b.arg("b_loc"), int64(i), program.Slice{Start: most - lengths[i], Stop: most})
	return b.call("torch.index_select", b.arg(name), int64(0), slots), lengths[i]
}

// tokenAttention puts into out, head by head, the scores of a token's query with
// the keys of its sequence.
func tokenAttention(b *build) []any {
	out := b.arg("out")
	shape, starts := b.input("q").Shape, b.literals("b_start_loc")
	if len(shape) != 3 || len(starts) < b.input("b_loc").Shape[0] {
		b.refuse("q: %v has no 3 dimensions, or b_start_loc too few entries", shape)
	}
	for i := range b.input("b_loc").Shape[0] {
		rows, n := b.cached("k", i)
		keys := b.call("torch.permute", rows, program.Tuple{int64(1), int64(2), int64(0)})
		query := b.call("torch.unsqueeze", b.at(b.arg("q"), int64(i)), int64(1))
		scores := b.call("torch.squeeze", b.call("torch.matmul", query, keys), int64(1))
		scores = b.call("torch.div", scores, math.Sqrt(float64(shape[2])))
		out = b.into(out, scores, 1, starts[i], starts[i]+n)
	}
	return []any{out}
}

// tokenReduce puts into out the values of each sequence, weighed by the softmax
// of its logits.
func tokenReduce(b *build) []any {
	out := b.arg("out")
	starts := b.literals("b_start_loc")
	if len(starts) < b.input("b_loc").Shape[0] {
		b.refuse("b_start_loc has %d entries for %d sequences", len(starts), b.input("b_loc").Shape[0])
	}
	for i := range b.input("b_loc").Shape[0] {
		rows, n := b.cached("v", i)
		part := b.at(b.arg("logics"), program.Slice{}, program.Slice{Start: starts[i], Stop: starts[i] + n})
		weights := b.call("torch.unsqueeze", b.call("torch.softmax", part, int64(-1)), int64(1))
		sum := b.call("torch.matmul", weights, b.call("torch.transpose", rows, int64(0), int64(1)))
		out = b.call("torch.select_scatter", out, b.call("torch.squeeze", sum, int64(1)), int64(0), int64(i))
	}
	return []any{out}
}
