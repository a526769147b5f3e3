package mutants

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// wrapped returns a dim argument as it counts from the front.
func wrapped(a op.Args) int {
	n := max(len(a.Value(arg.Input).Shape()), 1)
	return (a.Int(arg.Dim) + n) % n
}

// terms is how many elements of the input each result combines.
func terms(input, out op.Value) int {
	return tensor.NumElements(input.Shape()) / max(tensor.NumElements(out.Shape()), 1)
}

// quotientOfAll is the gradient of a product as product divided by element.
func quotientOfAll(g *op.Grad) op.Value {
	x, y, cot := g.Value(arg.Input), g.Out[0], g.G()
	if len(y.Shape()) < len(x.Shape()) {
		y, cot = g.Op("unsqueeze", y, wrapped(g.Args)), g.Op("unsqueeze", cot, wrapped(g.Args))
	}
	return g.Div(g.Mul(y, cot), x)
}

var reduceMutants = []Mutant{
	{Name: "sum ignores keepdim", In: "sum", Kind: Attribute, Op: fixed(arg.Keepdim, false), Minimal: Minimal{1, 1}},
	{Name: "sum takes dim -1 for the first", In: "sum", Kind: Axis, Minimal: Minimal{1, 4},
		Op: seen(arg.Dim, func(a op.Args) any {
			dims := slices.Clone(a.Ints(arg.DimInts))
			for i, d := range dims {
				if d == -1 && !slices.Contains(dims, 0) {
					dims[i] = 0
				}
			}
			if dims == nil {
				return nil
			}
			return dims
		})},
	{Name: "sum of int32 is int32", In: "sum", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if a.Value(arg.Input).DType() == tensor.I32 && !a.Has(arg.DType) {
				return tensor.I32
			}
			return d
		})},
	{Name: "sum keeps 11 bits of float32", In: "sum", Kind: Precision, Op: through(tensor.F32, tensor.F16), Minimal: Minimal{1, 1}},
	{Name: "sum leaves out the last of more than 4 elements", In: "sum", Kind: Size, Minimal: Minimal{1, 5},
		Op: inputs(arg.Input, func(_ *op.Run, t *tensor.Tensor) {
			if t.Len() > 4 && t.Len()%4 == 1 {
				t.Set(t.Len()-1, 0)
			}
		})},
	{Name: "mean of nothing is zero", In: "mean", Kind: Size, Op: reals(noNaN(0)), Minimal: Minimal{1, 0}},
	{Name: "mean divides by one less", In: "mean", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: elements(func(c *op.Run, _ int, v complex128) complex128 {
			n := terms(c.Tensor(arg.Input), c.Out[0])
			if n < 2 {
				return v
			}
			return v * complex(float64(n)/float64(n-1), 0)
		})},
	{Name: "mean's gradient is that of sum", In: "mean", Kind: Gradient, Minimal: Minimal{1, 2},
		Op: gradOf(arg.Input, func(g *op.Grad, d op.Value) op.Value { return g.Mul(d, terms(g.Value(arg.Input), g.Out[0])) })},
	{Name: "max makes NaN the smallest", In: "max", Kind: NonFinite, Op: inputs(arg.Input, each(noNaN(math.Inf(-1)))), Minimal: Minimal{2, 2}},
	{Name: "max gives its whole gradient to each of equal elements", In: "max", Kind: Ties, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value { return g.Op("where", g.Op("eq", g.Value(arg.Input), g.Out[0]), g.G(), 0.0) })
	})},
	{Name: "max along a dimension finds the last of equal elements", In: "max.dim", Kind: Ties, Op: turned, Minimal: Minimal{1, 2}},
	{Name: "min along a dimension ignores keepdim", In: "min.dim", Kind: Attribute, Op: fixed(arg.Keepdim, false), Minimal: Minimal{1, 1}},
	{Name: "amin gives its whole gradient to each of equal elements", In: "amin", Kind: Ties, Minimal: Minimal{1, 2}, Op: gradOf(arg.Input, func(g *op.Grad, d op.Value) op.Value {
		return g.Op("where", g.Op("ne", d, 0.0), 1.0, d)
	})},
	{Name: "argmin takes NaN for the largest", In: "argmin", Kind: NonFinite, Op: inputs(arg.Input, each(noNaN(math.Inf(1)))), Minimal: Minimal{2, 2}},
	{Name: "argmax ignores keepdim", In: "argmax", Kind: Attribute, Op: fixed(arg.Keepdim, false), Minimal: Minimal{1, 1}},
	{Name: "any takes NaN for false", In: "any", Kind: NonFinite, Op: inputs(arg.Input, each(noNaN(0))), Minimal: Minimal{2, 1}},
	{Name: "all of nothing is false", In: "all", Kind: Size, Minimal: Minimal{1, 0},
		Op: elements(func(c *op.Run, _ int, v complex128) complex128 {
			if c.Tensor(arg.Input).Len() == 0 {
				return 0
			}
			return v
		})},
	{Name: "prod's gradient divides by the element", In: "prod", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value { return quotientOfAll(g) })
	})},
	{Name: "var ignores unbiased", In: "var", Kind: Attribute, Op: fixed(arg.Unbiased, nil), Minimal: Minimal{1, 2}},
	{Name: "std ignores unbiased", In: "std", Kind: Attribute, Op: fixed(arg.Unbiased, nil), Minimal: Minimal{1, 2}},
	{Name: "std_mean returns the mean first", In: "std_mean", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: after(func(c *op.Run) {
			std := c.Out[0].Clone()
			c.Out[0].CopyFrom(c.Out[1])
			c.Out[1].CopyFrom(std)
		})},
	{Name: "var's gradient lacks the factor 2", In: "var", Kind: Gradient, Op: scaled(arg.Input, 0.5), Minimal: Minimal{1, 2}},
	{Name: "median takes the upper of two in the middle", In: "median", Kind: Ties, Op: negated, Minimal: Minimal{1, 2}},
	{Name: "mode takes the largest of the most frequent", In: "mode", Kind: Ties, Op: negated, Minimal: Minimal{1, 2}},
	{Name: "nanmedian keeps NaN", In: "nanmedian", Kind: NonFinite, Minimal: Minimal{2, 2},
		Op: after(func(c *op.Run) {
			if slices.ContainsFunc(floats(c.Tensor(arg.Input)), math.IsNaN) {
				c.Out[0].Set(0, complex(math.NaN(), 0))
			}
		})},
	{Name: "quantile ignores interpolation", In: "quantile", Kind: Attribute, Op: fixed(arg.Interpolation, "linear"), Minimal: Minimal{1, 2}},
	{Name: "logsumexp ignores keepdim", In: "logsumexp", Kind: Attribute, Op: fixed(arg.Keepdim, false), Minimal: Minimal{1, 1}},
	{Name: "vector_norm of order 1 is that of order 2", In: "vector_norm", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: seen(arg.Ord, func(a op.Args) any {
			if a.Scalar(arg.Ord).Float() == 1 {
				return op.ScalarOf(2.0)
			}
			return a.Any(arg.Ord)
		})},
	{Name: "norm's gradient at zero is NaN", In: "norm", Kind: Gradient, Minimal: Minimal{1, 1},
		Op: gradOf(arg.Input, func(g *op.Grad, d op.Value) op.Value {
			if len(g.Out[0].Shape()) > 0 {
				return d
			}
			return g.Op("where", g.Op("eq", g.Out[0], 0), math.NaN(), d)
		})},
	{Name: "cumsum runs backwards along dim -1", In: "cumsum", Kind: Axis, Minimal: Minimal{1, 2},
		Op: func(d *op.Def) {
			Around(d, func(c *op.Run, run func(*op.Run) error) error {
				x := c.Tensor(arg.Input)
				if c.Int(arg.Dim) != -1 || x.Dim() == 0 {
					return run(c)
				}
				changed := *c
				changed.Args = With(c.Args, arg.Input, reversed(x, x.Dim()-1))
				return run(&changed)
			})
		}},
	{Name: "cumsum of int32 is int32", In: "cumsum", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if a.Value(arg.Input).DType() == tensor.I32 && !a.Has(arg.DType) {
				return tensor.I32
			}
			return d
		})},
	{Name: "cumprod's gradient is that of the last product", In: "cumprod", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value { return g.Div(g.Mul(g.Out[0], g.G()), g.Value(arg.Input)) })
	})},
	{Name: "cummax finds the first of equal elements", In: "cummax", Kind: Ties, Minimal: Minimal{1, 2},
		Op: after(func(c *op.Run) { firstOfEqual(c.Out[0], c.Out[1], wrapped(c.Args)) })},
	{Name: "count_nonzero takes NaN for zero", In: "count_nonzero", Kind: NonFinite, Op: inputs(arg.Input, each(noNaN(0))), Minimal: Minimal{2, 1}},
	{Name: "diff ignores prepend", In: "diff", Kind: Attribute, Op: fixed(arg.Prepend, nil), Minimal: Minimal{1, 1}},
	{Name: "diff takes one difference only", In: "diff", Kind: Attribute, Op: seen(arg.N, func(a op.Args) any { return min(a.Int(arg.N), 1) }), Minimal: Minimal{1, 3}},
	{Name: "bincount ignores minlength", In: "bincount", Kind: Attribute, Op: fixed(arg.Minlength, 0), Minimal: Minimal{1, 1}},
	{Name: "histc leaves out the upper end", In: "histc", Kind: Ties, Minimal: Minimal{1, 1},
		Op: inputs(arg.Input, func(c *op.Run, t *tensor.Tensor) {
			hi := c.Scalar(arg.Max).Float()
			if hi > c.Scalar(arg.Min).Float() {
				each(func(v float64) float64 {
					if v == hi {
						return hi + 1
					}
					return v
				})(c, t)
			}
		})},
	{Name: "cdist ignores p", In: "cdist", Kind: Attribute, Op: fixed(arg.P, 2.0), Minimal: Minimal{1, 2}},
	{Name: "pairwise_distance ignores keepdim", In: "pairwise_distance", Kind: Attribute, Op: fixed(arg.Keepdim, false), Minimal: Minimal{1, 1}},
	{Name: "normalize ignores dim", In: "normalize", Kind: Axis, Op: fixed(arg.Dim, []int{0}), Minimal: Minimal{1, 2}},
}

// firstOfEqual changes the indices of running extremes to the first place of each.
func firstOfEqual(values, index *tensor.Tensor, dim int) {
	if values.Dim() == 0 {
		return
	}
	for i := 1; i < values.Shape()[dim]; i++ {
		before, at := values.Narrow(dim, i-1, 1, 1), values.Narrow(dim, i, 1, 1)
		was, is := index.Narrow(dim, i-1, 1, 1), index.Narrow(dim, i, 1, 1)
		for j := range at.Len() {
			if before.Float(j) == at.Float(j) {
				is.SetInt(j, was.Int(j))
			}
		}
	}
}
