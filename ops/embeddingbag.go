package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

const embeddingBagParams = "Tensor? offsets=None, float? max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None"

var embeddingBagOps = []*op.Def{
	composed(&op.Def{
		Sig:   "embedding_bag(Tensor input, Tensor weight, " + embeddingBagParams + ") -> Tensor",
		Names: []string{"torch.nn.functional.embedding_bag"},
		Doc:   "Sums, means or maxima over bags of the rows of weight that input numbers. A bag is a row of input, or begins where offsets says; with include_last_offset the last of these ends the last bag. Entries of padding_idx count as absent, and an empty bag is 0.",
		SBP: func(op.Args) []op.Sharding { // the columns of weight are apart
			return []op.Sharding{{Args: map[string]op.SBP{"weight": op.S(1)}, Results: []op.SBP{op.S(1)}}}
		},
		Reject:  checkEmbeddingBag,
		Choices: []string{"mode"},
		Kernels: []op.Kernel{{Name: "composition", When: op.DTypeIn(arg.Weight, tensor.F16, tensor.BF16, tensor.F32, tensor.F64), Run: func(c *op.Run) error {
			if err := checkBagElements(c.Args); err != nil {
				return err
			}
			return rule(embeddingBag).wide().run(c)
		}}},
		Sample: sampleEmbeddingBag,
		Tol: op.Tol{
			Class: op.Accumulating, Fractional: true,
			Terms:  func(a op.Args) int { return tensor.NumElements(a.Value(arg.Input).Shape()) },
			Reason: "a bag sums at most Terms rows",
		},
	}, embeddingBag),
	{
		Sig:           "embedding_bag.winners(Tensor rows, Tensor bags, Tensor padded, int count) -> Tensor",
		Doc:           "For each of count bags and each column, the number of the row of that bag, first of equals, that has the largest element there; -1 for a bag without rows. Padded rows take no part. A NaN is larger than nothing, and nothing than it.",
		Traits:        op.NoGrad,
		NotSplittable: dependsOnAll,
		Infer:         inferEmbeddingBagWinners,
		Kernels: []op.Kernel{
			{Name: "float32", When: op.DTypeIn(arg.Rows, tensor.F32), Run: bagWinners[float32]},
			{Name: "float64", When: op.DTypeIn(arg.Rows, tensor.F64), Run: bagWinners[float64]},
		},
		Tol: exactTol("places in its input"),
	},
}

func inferEmbeddingBagWinners(a op.Args) ([]op.Meta, error) {
	return one(tensor.I64, []int{a.Int(arg.Count), sizeAlong(a.Value(arg.Rows), 1)}, nil), nil
}

func bagWinners[T float32 | float64](c *op.Run) error {
	rows := c.Tensor(arg.Rows).Contiguous()
	kernel.BagWinners(tensor.Data[int64](c.Out[0]), contiguousData[T](rows), contiguousData[int64](c.Tensor(arg.Bags)), contiguousData[bool](c.Tensor(arg.Padded)), rows.Shape()[1])
	return nil
}

func checkEmbeddingBag(a op.Args) error {
	x, w, offsets, each := a.Value(arg.Input), a.Value(arg.Weight), a.Value(arg.Offsets), a.Value(arg.PerSampleWeights)
	switch rank := len(x.Shape()); {
	case each != nil && !slices.Equal(each.Shape(), x.Shape()):
		return op.ValueError("argument 'per_sample_weights' must have the shape %s of input, not %s", tensor.ShapeString(x.Shape()), tensor.ShapeString(each.Shape()))
	case len(w.Shape()) != 2:
		return op.ValueError("argument 'weight' must have 2 dimensions, but has %d", len(w.Shape()))
	case rank == 2 && offsets != nil:
		return op.ValueError("argument 'offsets' must be None where input has 2 dimensions")
	case rank == 1 && (offsets == nil || len(offsets.Shape()) != 1):
		return op.ValueError("argument 'offsets' must be a vector where input has 1 dimension")
	case rank != 1 && rank != 2:
		return op.ValueError("argument 'input' must have 1 or 2 dimensions, but has %d", rank)
	case rank == 2 && x.Shape()[1] == 0:
		return op.RuntimeError("argument 'input' of shape %s has bags of no entries", tensor.ShapeString(x.Shape()))
	}
	mode := a.Str(arg.Mode)
	switch {
	case !slices.Contains([]string{"sum", "mean", "max"}, mode):
		return op.ValueError("argument 'mode' must be sum, mean or max, not %q", mode)
	case mode == "max" && (a.Bool(arg.ScaleGradByFreq) || a.Bool(arg.Sparse)):
		return op.ValueError("mode max goes neither with argument 'scale_grad_by_freq' nor with 'sparse'")
	case each != nil && mode != "sum":
		return &op.Error{Class: "NotImplementedError", Msg: "argument 'per_sample_weights' goes with mode sum only, not with " + mode}
	case a.Has(arg.MaxNorm):
		return notUnderstood("embedding_bag", "max_norm")
	case a.Bool(arg.Sparse):
		return notUnderstood("embedding_bag", "sparse")
	}
	return checkBagTypes(a)
}

func checkBagTypes(a op.Args) error {
	w, each := a.Value(arg.Weight), a.Value(arg.PerSampleWeights)
	if d := a.Promoted(arg.Input, arg.Offsets); d != tensor.I64 && d != tensor.I32 {
		return op.RuntimeError("arguments 'input' and 'offsets' must together have dtype int64 or int32, not %s", d)
	}
	switch {
	case a.Has(arg.PaddingIdx) && !inRows(a.Int(arg.PaddingIdx), w):
		return op.RuntimeError("argument 'padding_idx' must be a row of weight, from %d to %d, but is %d", -sizeAlong(w, 0), sizeAlong(w, 0)-1, a.Int(arg.PaddingIdx))
	case each != nil && each.DType() != w.DType():
		return op.RuntimeError("argument 'per_sample_weights' must have the dtype %s of weight, not %s", w.DType(), each.DType())
	case a.Bool(arg.IncludeLastOffset) && a.Has(arg.Offsets) && sizeAlong(a.Value(arg.Offsets), 0) == 0:
		return op.RuntimeError("argument 'offsets' must not be empty with include_last_offset")
	}
	return nil
}

// checkBagElements rejects numbers of rows that there are not, and offsets out of order.
func checkBagElements(a op.Args) error {
	x, n := a.Tensor(arg.Input), sizeAlong(a.Value(arg.Weight), 0)
	for i := range x.Len() {
		if v := x.Int(i); v < 0 || v >= int64(n) {
			return op.RuntimeError("argument 'input' has %d, which is no row of weight's %d", v, n)
		}
	}
	offsets, last := a.Tensor(arg.Offsets), int64(0)
	if offsets == nil {
		return nil
	}
	for i := range offsets.Len() {
		v := offsets.Int(i)
		if i == 0 && v != 0 || v < last || v > int64(x.Len()) {
			return op.RuntimeError("argument 'offsets' must ascend from 0 to at most %d, but has %d at %d", x.Len(), v, i)
		}
		last = v
	}
	return nil
}

// bags are the rows to reduce: those of weight, one for each entry of input,
// the number of each one's bag, and which entries are padding.
type bags struct {
	rows, of, padded op.Value
	count, width     int
}

func embeddingBag(b op.Builder, a op.Args) op.Value {
	p := bagsOf(b, a)
	var out op.Value
	switch mode := a.Str(arg.Mode); {
	case p.count == 0:
		return b.Op("narrow", p.rows, 0, 0, 0)
	case mode == "max" && p.rows.Shape()[0] > 0:
		out = p.maxima(b)
	case mode == "mean":
		present := b.Cast(b.Op("logical_not", p.padded), p.rows.DType())
		counts := b.Op("index_add", b.Op("zeros", []int{p.count, 1}, op.Kw("dtype", p.rows.DType())), 0, p.of, present)
		out = b.Div(p.sums(b), b.Op("clamp_min", counts, 1))
	default:
		out = p.sums(b)
	}
	if a.Bool(arg.IncludeLastOffset) && a.Has(arg.Offsets) {
		return b.Op("narrow", out, 0, 0, p.count-1)
	}
	return out
}

func bagsOf(b op.Builder, a op.Args) *bags {
	x, w := a.Value(arg.Input), a.Value(arg.Weight)
	n := tensor.NumElements(x.Shape())
	entries := b.Cast(b.Reshape(x, []int{n}), tensor.I64) // with offsets of int64 they may be bool
	p := &bags{width: w.Shape()[1]}
	p.rows = b.Op("embedding", entries, w, op.Kw("scale_grad_by_freq", a.Bool(arg.ScaleGradByFreq)))
	if each := a.Value(arg.PerSampleWeights); each != nil {
		p.rows = b.Mul(p.rows, b.Reshape(each, []int{n, 1}))
	}
	pad := a.Int(arg.PaddingIdx)
	switch {
	case !a.Has(arg.PaddingIdx):
		pad = -1
	case pad < 0:
		pad += w.Shape()[0]
	}
	p.padded = b.Reshape(b.Op("eq", entries, pad), []int{n, 1})
	if offsets := a.Value(arg.Offsets); offsets != nil {
		p.count = offsets.Shape()[0]
		places := b.Op("arange", 0, n, op.Kw("dtype", tensor.I64))
		p.of = b.Sub(b.Op("bucketize", places, b.Cast(offsets, tensor.I64), op.Kw("right", true)), 1)
	} else {
		p.count = x.Shape()[0]
		column := b.Op("arange", 0, p.count, op.Kw("dtype", tensor.I64))
		p.of = b.Reshape(b.Expand(b.Reshape(column, []int{p.count, 1}), x.Shape()), []int{n})
	}
	return p
}

func (p *bags) sums(b op.Builder) op.Value {
	none := b.Op("zeros", []int{p.count, p.width}, op.Kw("dtype", p.rows.DType()))
	return b.Op("index_add", none, 0, p.of, b.Op("where", p.padded, 0.0, p.rows))
}

func (p *bags) maxima(b op.Builder) op.Value {
	none := b.Op("zeros", []int{p.count, p.width}, op.Kw("dtype", p.rows.DType()))
	at := b.Op("embedding_bag.winners", p.rows, p.of, p.padded, p.count)
	found := b.Op("gather", p.rows, 0, b.Op("clamp_min", at, 0))
	return b.Op("where", b.Op("lt", at, 0), none, found)
}

func sampleEmbeddingBag(s *op.Sampler) []any {
	n, rows := 1+s.Index(5), 2+s.Index(4)
	mode := []string{"sum", "mean", "max"}[s.Index(3)]
	weight := s.Distinct(rows, 1+s.Index(4))
	if s.Index(3) == 2 {
		return []any{sampleIndex(s, []int{n, 1 + s.Index(3)}, rows), weight, op.Kw("mode", mode)}
	}
	offsets, at := tensor.New(tensor.I64, 1+s.Index(4)), 0
	for i := 1; i < offsets.Len(); i++ {
		at = min(at+s.Index(3), n)
		offsets.SetInt(i, int64(at))
	}
	args := []any{sampleIndex(s, []int{n}, rows), weight, offsets, op.Kw("mode", mode)}
	if s.Bool() {
		args = append(args, op.Kw("padding_idx", s.Index(2*rows)-rows))
	}
	if mode == "sum" && s.Bool() {
		args = append(args, op.Kw("per_sample_weights", s.Tensor(-2, 2, n)))
	}
	return args
}
