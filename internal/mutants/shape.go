package mutants

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// lowered is a negative int argument, one less.
func lowered(name op.IntArg) plant {
	return seen(name, func(a op.Args) any {
		if d := a.Int(name); d < 0 {
			return d - 1
		}
		return a.Int(name)
	})
}

var shapeMutants = []Mutant{
	{Name: "reshape reads a transposed tensor in memory order", In: "reshape", Kind: Layout, Minimal: Minimal{2, 4},
		Op: viewed(func(a op.Args, t *tensor.Tensor) *tensor.Tensor {
			if x, ok := a.Value(arg.Input).(*tensor.Tensor); ok && !x.IsContiguous() {
				return inMemoryOrder(x).Reshape(t.Shape()...)
			}
			return t
		})},
	{Name: "permute applies the inverse permutation", In: "permute", Kind: Axis, Minimal: Minimal{1, 2},
		Op: seen(arg.Dims, func(a op.Args) any {
			dims := a.Ints(arg.Dims)
			n := len(a.Value(arg.Input).Shape())
			if len(dims) != n {
				return dims
			}
			inverse := make([]int, n)
			for i, d := range dims {
				if d < -n || d >= n {
					return dims
				}
				inverse[(d+n)%n] = i
			}
			return inverse
		})},
	{Name: "squeeze ignores dim", In: "squeeze", Kind: Attribute, Op: fixed(arg.Dim, nil), Minimal: Minimal{1, 1}},
	{Name: "unsqueeze counts negative dims from one place too low", In: "unsqueeze", Kind: Axis, Op: lowered(arg.Dim), Minimal: Minimal{1, 1}},
	{Name: "cat has the dtype of the first tensor", In: "cat", Kind: Promotion, Minimal: Minimal{1, 1},
		Op: typed(func(a op.Args, d tensor.DType) tensor.DType {
			if ts := a.Values(arg.Tensors); len(ts) > 0 {
				return ts[0].DType()
			}
			return d
		})},
	{Name: "cat's gradient of the first tensor goes missing", In: "cat", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		inner := op.NewGrad(g.Builder, g.Args, g.Out, g.Cot, g.NeedsValue)
		rule(inner)
		for i, v := range g.Values(arg.Tensors) {
			if d := inner.Result(v); d != nil && i > 0 {
				g.ToValue(v, func() op.Value { return d })
			}
		}
	})},
	{Name: "stack ignores dim", In: "stack", Kind: Axis, Op: fixed(arg.Dim, 0), Minimal: Minimal{1, 2}},
	{Name: "flip turns the first dimension only", In: "flip", Kind: Axis, Minimal: Minimal{1, 4},
		Op: seen(arg.Dims, func(a op.Args) any { return a.Ints(arg.Dims)[:min(len(a.Ints(arg.Dims)), 1)] })},
	{Name: "roll shifts the other way", In: "roll", Kind: Axis, Minimal: Minimal{1, 3},
		Op: seen(arg.Shifts, func(a op.Args) any {
			shifts := slices.Clone(a.Ints(arg.Shifts))
			for i := range shifts {
				shifts[i] = -shifts[i]
			}
			return shifts
		})},
	{Name: "pad reflects with the edge", In: "pad", Kind: Geometry, Minimal: Minimal{1, 2},
		Op: seenForward(arg.Mode, func(a op.Args) any {
			if m := a.Str(arg.Mode); m != "reflect" {
				return m
			}
			return "replicate"
		})},
	{Name: "pad ignores value", In: "pad", Kind: Attribute, Op: fixed(arg.Value, nil), Minimal: Minimal{1, 1}},
	{Name: "pad adds before what it shall add after", In: "pad", Kind: Geometry, Minimal: Minimal{1, 1},
		Op: seenForward(arg.Pad, func(a op.Args) any {
			pad := slices.Clone(a.Ints(arg.Pad))
			for i := 0; i+1 < len(pad); i += 2 {
				pad[i], pad[i+1] = pad[i+1], pad[i]
			}
			return pad
		})},
	{Name: "the gradient of a reflecting pad drops what was mirrored", In: "pad.back", Kind: Gradient, Minimal: Minimal{1, 2},
		Op: seenForward(arg.Mode, func(a op.Args) any {
			if m := a.Str(arg.Mode); m != "reflect" {
				return m
			}
			return "replicate"
		})},
	{Name: "tril is off by one diagonal", In: "tril", Kind: Geometry, Minimal: Minimal{1, 2},
		Op: seen(arg.Diagonal, func(a op.Args) any { return a.Int(arg.Diagonal) + 1 })},
	{Name: "triu's gradient is not masked", In: "triu", Kind: Gradient, Minimal: Minimal{1, 2},
		Op: gradient(func(g *op.Grad, _ func(*op.Grad)) { g.To(arg.Input, g.G) })},
	{Name: "diagonal takes negative offsets for zero", In: "diagonal", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: seen(arg.Offset, func(a op.Args) any { return max(a.Int(arg.Offset), 0) })},
	{Name: "diag ignores diagonal", In: "diag", Kind: Attribute, Op: fixed(arg.Diagonal, 0), Minimal: Minimal{1, 1}},
	{Name: "chunk makes as many parts as asked for", In: "chunk", Kind: Size, Minimal: Minimal{1, 3},
		Op: parts(func(b op.Builder, a op.Args, _ func(op.Builder, op.Args) []op.Value) []op.Value {
			return b.All("tensor_split.sections", a.Value(arg.Input), a.Int(arg.Chunks), a.Int(arg.Dim))
		})},
	{Name: "select's gradient goes to the first entry", In: "select", Kind: Gradient, Minimal: Minimal{1, 2},
		Op: seenBackward(arg.Index, func(op.Args) any { return 0 })},
	{Name: "slice_scatter ignores step", In: "slice_scatter", Kind: Attribute, Op: fixed(arg.Step, 1), Minimal: Minimal{1, 2}},
	{Name: "unfold ignores step", In: "unfold", Kind: Geometry, Op: fixed(arg.Step, 1), Minimal: Minimal{1, 3}},
	{Name: "flatten is a copy", In: "flatten", Kind: Aliasing, Minimal: Minimal{2, 1},
		Op: func(d *op.Def) {
			view := d.View
			d.View, d.Traits = nil, d.Traits&^op.View
			d.Kernels = []op.Kernel{{Name: "copy", Run: func(c *op.Run) error {
				t, err := view(c.Args)
				if err == nil {
					c.Out[0].CopyFrom(t)
				}
				return err
			}}}
		}},
	{Name: "expand's gradient is that of the first entry", In: "expand", Kind: Broadcast, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		if tensor.NumElements(g.G().Shape()) == 0 {
			rule(g)
			return
		}
		g.To(arg.Input, func() op.Value { return firstOnly(g, g.G(), g.Value(arg.Input).Shape()) })
	})},
	{Name: "contiguous returns a transposed tensor as it is", In: "contiguous", Kind: Layout, Minimal: Minimal{2, 4},
		Op: viewed(func(a op.Args, t *tensor.Tensor) *tensor.Tensor {
			if x, ok := a.Value(arg.Input).(*tensor.Tensor); ok {
				return x
			}
			return t
		})},
	{Name: "rot90 turns the other way", In: "rot90", Kind: Axis, Op: seen(arg.K, func(a op.Args) any { return -a.Int(arg.K) }), Minimal: Minimal{1, 2}},
	{Name: "arange includes its end", In: "arange", Kind: Geometry, Minimal: Minimal{1, 0},
		Op: inferred(func(_ op.Args, out []op.Meta) { out[0].Shape = []int{out[0].Shape[0] + 1} })},
	{Name: "linspace steps as if its end were left out", In: "linspace", Kind: Geometry, Minimal: Minimal{1, 0},
		Op: elements(func(c *op.Run, i int, v complex128) complex128 {
			n, start := c.Out[0].Len(), c.Scalar(arg.StartScalar).Complex()
			if n < 2 {
				return v
			}
			return start + (v-start)*complex(float64(n-1)/float64(n), 0)
		})},
	{Name: "eye ignores m", In: "eye", Kind: Attribute, Op: fixed(arg.M, nil), Minimal: Minimal{1, 0}},
	{Name: "full_like ignores dtype", In: "full_like", Kind: Promotion, Op: fixed(arg.DType, nil), Minimal: Minimal{1, 1}},
	{Name: "meshgrid ignores indexing", In: "meshgrid", Kind: Attribute, Op: fixed(arg.Indexing, "ij"), Minimal: Minimal{1, 2}},
	{Name: "pixel_shuffle takes rows for columns", In: "pixel_shuffle", Kind: Axis, Minimal: Minimal{1, 4},
		Op: inputs(arg.Input, func(c *op.Run, t *tensor.Tensor) {
			r := c.Int(arg.UpscaleFactor)
			reordered(t, t.Dim()-3, func(i, _ int) int { return i/(r*r)*(r*r) + i%r*r + i/r%r })
		})},
	{Name: "channel_shuffle takes groups for channels per group", In: "channel_shuffle", Kind: Axis, Minimal: Minimal{1, 6},
		Op: seen(arg.Groups, func(a op.Args) any {
			s, n := a.Value(arg.Input).Shape(), a.Int(arg.Groups)
			if len(s) > 1 && n > 0 && s[1] > 0 && s[1]%n == 0 {
				return s[1] / n
			}
			return n
		})},
	{Name: "mul of complex numbers has a gradient without conjugate", In: "mul", Kind: Gradient, Minimal: Minimal{1, 1}, Op: gradient(func(g *op.Grad, _ func(*op.Grad)) {
		g.To(arg.Input, func() op.Value { return g.Mul(g.G(), g.Any(arg.Other)) })
		g.To(arg.Other, func() op.Value { return g.Mul(g.G(), g.Any(arg.Input)) })
	})},
}
