package diopi

import (
	"math"

	"plumb/program"
	"plumb/tensor"
)

// What a causal attention may not see is lowered by this, in training and in
// serving.
const (
	hidden = -1e4
	unseen = -1e8
)

// heads is an attention: softmax(q·kᵀ·scale)·v of tensors in the order batch,
// place, head, coordinate, of the shapes q and k. With fewer heads of k and v
// each serves a group of q's. In a causal one what lies behind is lowered by
// mask. A wide one has the softmax of halves in float32.
type heads struct {
	q, k   []int
	scale  float64
	causal bool
	mask   float64
	wide   bool
	dtype  tensor.DType
}

func (b *build) attention(q, k, v any, h heads) program.Ref {
	if groups := h.q[2] / h.k[2]; groups > 1 {
		k = b.call("torch.repeat_interleave", k, int64(groups), int64(2))
		v = b.call("torch.repeat_interleave", v, int64(groups), int64(2))
	}
	first := func(x any) program.Ref { return b.call("torch.transpose", x, int64(1), int64(2)) }
	kt := b.call("torch.transpose", b.call("torch.mul", first(k), h.scale), int64(2), int64(3))
	var scores any = b.call("torch.matmul", first(q), kt)
	of := h.dtype
	if h.wide && half(of) {
		scores, of = b.wide(scores, of), tensor.F32
	}
	if h.causal {
		full := b.call("torch.full", sizes(h.q[1], h.k[1]), h.mask, kw("dtype", of))
		scores = b.call("torch.add", scores, b.call("torch.triu", full, int64(1)))
	}
	var weights any = b.call("torch.softmax", scores, int64(-1))
	if of != h.dtype {
		weights = b.narrow(weights, h.dtype)
	}
	return first(b.call("torch.matmul", weights, first(v)))
}

// scaleOf returns the scale that an argument gives, or 1/√d where it is None or 0.
func scaleOf(name string) func(b *build, d int) float64 {
	return func(b *build, d int) float64 {
		if s := b.number(name, 0); s != 0 {
			return s
		}
		return 1 / math.Sqrt(float64(d))
	}
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
	out := b.attention(q, k, v, b.flash(shape, keys))
	if order != nil {
		out = b.call("torch.permute", out, order)
	}
	return []any{out}
}

// flash is a flash attention of those shapes.
func (b *build) flash(q, k []int) heads {
	return heads{q: q, k: k, scale: scaleOf("softmax_scale")(b, q[3]), causal: b.arg("is_causal") == true, mask: math.Inf(-1), dtype: b.input("q").DType}
}

// multihead drops nothing.
func multihead(b *build) []any {
	shape, keys := b.input("q").Shape, b.input("k").Shape
	b.wantHeads(shape, keys)
	h := heads{q: shape, k: keys, scale: scaleOf("scale")(b, shape[3]), causal: b.arg("is_causal") == true, mask: hidden, dtype: b.input("q").DType}
	return []any{b.attention(b.arg("q"), b.arg("k"), b.arg("v"), h)}
}

func permuted(s []int) []int { return []int{s[0], s[2], s[1], s[3]} }

func (b *build) wantHeads(shape, keys []int) {
	if len(shape) != 4 || len(keys) != 4 || keys[2] == 0 || shape[2]%keys[2] != 0 {
		b.refuse("q and k: want 4 dimensions, and groups of heads, not %v and %v", shape, keys)
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
	apart := func(x any, s []int) any { return b.call("torch.reshape", swap(x), sizes(s[0], s[1], s[2]/d, d)) }
	qs, ks := batchFirst(shape), batchFirst(keys)
	out := b.attention(apart(b.arg("q"), qs), apart(b.arg("k"), ks), apart(b.arg("v"), ks),
		b.flash([]int{qs[0], qs[1], n, d}, []int{ks[0], ks[1], ks[2] / d, d}))
	return []any{swap(b.call("torch.reshape", out, sizes(qs...)))}
}

// varlen is attention within each of the sequences that lie one behind the
// other; the argument named ends has their ends, with or without a leading 0.
// What belongs to none is 0.
func varlen(ends string, scale func(*build, int) float64) func(*build) []any {
	return func(b *build) []any {
		shape := b.input("q").Shape
		if len(shape) != 3 {
			b.refuse("q: want 3 dimensions, not %v", shape)
		}
		name := ends
		if b.arg(name) == nil {
			name = "cu_seqlens_q"
		}
		all := leading0(b.literals(name))
		var parts program.List
		for i := range len(all) - 1 {
			parts = append(parts, b.sequence(all[i], all[i+1], scale(b, shape[2]), b.arg("is_causal") == true, hidden, false))
		}
		if last := all[len(all)-1]; int(last) < shape[0] {
			parts = append(parts, b.call("torch.zeros", sizes(shape[0]-int(last), shape[1], shape[2]), kw("dtype", b.input("q").DType)))
		}
		return []any{b.call("torch.cat", parts, int64(0))}
	}
}

func leading0(ends []int64) []int64 {
	if len(ends) > 0 && ends[0] == 0 {
		return ends
	}
	return append([]int64{0}, ends...)
}

// sequence is the attention of q[from:to] to the same places of k.
func (b *build) sequence(from, to int64, scale float64, causal bool, mask float64, wide bool) program.Ref {
	shape, keys := b.input("q").Shape, b.input("k").Shape
	if len(shape) != 3 || len(keys) != 3 || from < 0 || to < from || int(to) > min(shape[0], keys[0]) {
		b.refuse("q and k: %v and %v have no sequence %d to %d", shape, keys, from, to)
	}
	cut := func(name string) program.Ref {
		return b.call("torch.unsqueeze", b.at(b.arg(name), program.Slice{Start: from, Stop: to}), int64(0))
	}
	n := int(to - from)
	out := b.attention(cut("q"), cut("k"), cut("v"), heads{
		q: []int{1, n, shape[1], shape[2]}, k: []int{1, n, keys[1], keys[2]},
		scale: scale, causal: causal, mask: mask, wide: wide, dtype: b.input("q").DType,
	})
	return b.call("torch.squeeze", out, int64(0))
}

// scaledMaskedSoftmax puts a large negative number in the place of what is
// masked, by the mask or, with fixed_triu_mask, behind the diagonal.
func scaledMaskedSoftmax(b *build) []any {
	name := b.first("input", "x")
	in := b.input(name)
	scaled := b.call("torch.mul", b.arg(name), b.number("scale", 1))
	var mask any
	switch n := len(in.Shape); {
	case b.arg("fixed_triu_mask") == true && n >= 2:
		mask = b.call("torch.triu", b.call("torch.ones", sizes(in.Shape[n-2:]...), kw("dtype", tensor.Bool)), int64(1))
	case b.arg("mask") == nil:
		return []any{b.call("torch.softmax", scaled, int64(-1))}
	case b.input("mask").DType == tensor.Bool:
		mask = b.arg("mask")
	default:
		mask = b.call("Tensor.to", b.arg("mask"), kw("dtype", tensor.Bool))
	}
	return []any{b.call("torch.softmax", b.call("torch.masked_fill", scaled, mask, hidden), int64(-1))}
}
