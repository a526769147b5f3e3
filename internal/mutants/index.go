package mutants

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var indexMutants = []Mutant{
	{Name: "gather's gradient keeps the last of several", In: "gather", Kind: Gradient, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value {
			return g.Op("scatter", g.Op("zeros_like", g.Value(arg.Input)), g.Int(arg.Dim), g.Value(arg.Index), g.G())
		})
	})},
	{Name: "index_select's gradient keeps the last of several", In: "index_select", Kind: Gradient, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		if len(g.Value(arg.Input).Shape()) == 0 {
			rule(g)
			return
		}
		g.To(arg.Input, func() op.Value {
			return g.Op("index_copy", g.Op("zeros_like", g.Value(arg.Input)), g.Int(arg.Dim), g.Value(arg.Index), g.G())
		})
	})},
	{Name: "scatter_add overwrites", In: "scatter_add", Kind: Stale, Op: instead("scatter", arg.Input, arg.Dim, arg.Index, arg.Src), Minimal: Minimal{1, 2}},
	{Name: "scatter_reduce ignores include_self", In: "scatter_reduce", Kind: Attribute, Op: fixed(arg.IncludeSelf, true), Minimal: Minimal{1, 1}},
	{Name: "scatter.value multiplies as it adds", In: "scatter.value", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: seen(arg.Reduce, func(a op.Args) any {
			if a.Str(arg.ReduceStr) == "multiply" {
				return "add"
			}
			return a.Any(arg.Reduce)
		})},
	{Name: "index_add ignores alpha", In: "index_add", Kind: Attribute, Op: fixed(arg.Alpha, one), Minimal: Minimal{1, 1}},
	{Name: "index_put ignores accumulate", In: "index_put", Kind: Attribute, Op: fixed(arg.Accumulate, false), Minimal: Minimal{1, 1}},
	{Name: "index_copy has no gradient of source", In: "index_copy", Kind: Gradient, Op: dropped(arg.Source), Minimal: Minimal{1, 1}},
	{Name: "index_reduce ignores include_self", In: "index_reduce", Kind: Attribute, Op: fixed(arg.IncludeSelf, true), Minimal: Minimal{1, 1}},
	{Name: "take takes negative indices for zero", In: "take", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: inputs(arg.Index, func(_ *op.Run, t *tensor.Tensor) {
			for i := range t.Len() {
				t.SetInt(i, max(t.Int(i), 0))
			}
		})},
	{Name: "put ignores accumulate", In: "put", Kind: Attribute, Op: fixed(arg.Accumulate, false), Minimal: Minimal{1, 2}},
	{Name: "embedding gives the row padding_idx a gradient", In: "embedding", Kind: Gradient, Minimal: Minimal{1, 1},
		Op: seenBackward(arg.PaddingIdx, func(op.Args) any { return nil })},
	{Name: "embedding ignores scale_grad_by_freq", In: "embedding", Kind: Gradient, Minimal: Minimal{1, 2},
		Op: seenBackward(arg.ScaleGradByFreq, func(op.Args) any { return false })},
	{Name: "masked_fill passes the gradient at the mask", In: "masked_fill", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		inner := op.NewGrad(g.Builder, g.Args, g.Out, g.Cot, g.NeedsValue)
		rule(inner)
		g.To(arg.Input, g.G)
		g.To(arg.ValueTensor, func() op.Value { return inner.Result(g.Value(arg.ValueTensor)) })
	})},
	{Name: "diagonal_scatter has no gradient of src", In: "diagonal_scatter", Kind: Gradient, Op: dropped(arg.Src), Minimal: Minimal{1, 1}},
	{Name: "one_hot ignores num_classes", In: "one_hot", Kind: Attribute, Op: fixed(arg.NumClasses, -1), Minimal: Minimal{1, 1}},
	{Name: "take_along_dim ignores dim", In: "take_along_dim", Kind: Axis, Minimal: Minimal{1, 4},
		Op: seen(arg.Dim, func(a op.Args) any {
			if a.Has(arg.Dim) {
				return 0
			}
			return nil
		})},
	{Name: "masked_select reads a transposed tensor in memory order", In: "masked_select", Kind: Layout, Op: unstrided(arg.Input, always), Minimal: Minimal{2, 4}},
}

var orderMutants = []Mutant{
	{Name: "sort ignores descending", In: "sort", Kind: Attribute, Op: fixed(arg.Descending, false), Minimal: Minimal{1, 2}},
	{Name: "sort's gradient is gathered, not scattered", In: "sort", Kind: Gradient, Minimal: Minimal{2, 3}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		if g.G() == nil || len(g.Out[1].Shape()) == 0 {
			rule(g)
			return
		}
		g.To(arg.Input, func() op.Value { return g.Op("gather", g.G(), wrapped(g.Args), g.Out[1]) })
	})},
	{Name: "a stable sort is not stable", In: "sort.stable", Kind: Ties, Op: turned, Minimal: Minimal{1, 2}},
	{Name: "a stable argsort is not stable", In: "argsort.stable", Kind: Ties, Op: turned, Minimal: Minimal{1, 2}},
	{Name: "argsort ignores dim", In: "argsort", Kind: Axis, Op: fixed(arg.Dim, -1), Minimal: Minimal{1, 4}},
	{Name: "topk ignores largest", In: "topk", Kind: Attribute, Op: fixed(arg.Largest, true), Minimal: Minimal{1, 2}},
	{Name: "topk has no gradient", In: "topk", Kind: Gradient, Op: dropped(arg.Input), Minimal: Minimal{2, 1}},
	{Name: "kthvalue counts from the largest", In: "kthvalue", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: seen(arg.K, func(a op.Args) any {
			s, k := a.Value(arg.Input).Shape(), a.Int(arg.K)
			if len(s) == 0 {
				return k
			}
			if n := s[wrapped(a)]; k >= 1 && k <= n {
				return n - k + 1
			}
			return k
		})},
	{Name: "msort sorts along the last dimension", In: "msort", Kind: Axis, Op: instead("sort", arg.Input), Minimal: Minimal{1, 2}},
	{Name: "searchsorted ignores right", In: "searchsorted", Kind: Ties, Op: fixed(arg.Right, false), Minimal: Minimal{1, 1}},
	{Name: "searchsorted ignores side", In: "searchsorted", Kind: Ties, Op: fixed(arg.Side, nil), Minimal: Minimal{1, 1}},
	{Name: "bucketize ignores out_int32", In: "bucketize", Kind: Promotion, Op: fixed(arg.OutInt32, false), Minimal: Minimal{1, 1}},
	{Name: "isin ignores invert", In: "isin", Kind: Attribute, Op: fixed(arg.Invert, false), Minimal: Minimal{1, 1}},
	{Name: "unique counts each element once", In: "unique.counts", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: after(func(c *op.Run) {
			for i := range c.Out[1].Len() {
				c.Out[1].SetInt(i, 1)
			}
		})},
	{Name: "unique_consecutive compares all elements", In: "unique_consecutive", Kind: Attribute, Minimal: Minimal{1, 3},
		Op: seen(arg.Input, func(a op.Args) any {
			x, ok := a.Value(arg.Input).(*tensor.Tensor)
			if !ok || x.Dim() != 1 {
				return a.Any(arg.Input)
			}
			values := floats(x)
			slices.Sort(values)
			return tensor.Float64s(x.DType(), x.Shape(), values...)
		})},
}
