package mutants

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// onesFor ignores an int[] argument: all of it is 1.
func onesFor(name op.IntsArg) func(a op.Args) any {
	return func(a op.Args) any { return repeated(1, len(a.Ints(name))) }
}

// shorter is an int[] argument of which each positive number is one less.
func shorter(name op.Handle) func(a op.Args) any {
	return func(a op.Args) any {
		v, ok := a.Any(name).([]int)
		if !ok {
			return a.Any(name)
		}
		v = slices.Clone(v)
		for i := range v {
			v[i] = max(v[i]-1, 0)
		}
		return v
	}
}

// turnedRound is an int[] argument in reverse: height for width.
func turnedRound(name op.Handle) func(a op.Args) any {
	return func(a op.Args) any {
		if v, ok := a.Any(name).([]int); ok {
			return backwards(v)
		}
		return a.Any(name)
	}
}

var windowMutants = []Mutant{
	{Name: "conv2d ignores dilation", In: "conv2d", Kind: Geometry, Op: seen(arg.Dilation, onesFor(arg.Dilation)), Minimal: Minimal{1, 3}},
	{Name: "conv2d pads one less", In: "conv2d", Kind: Geometry, Op: seen(arg.Padding, shorter(arg.Padding)), Minimal: Minimal{1, 1}},
	{Name: "conv2d takes the padding of the height for the width", In: "conv2d", Kind: Axis, Op: seen(arg.Padding, turnedRound(arg.Padding)), Minimal: Minimal{1, 1}},
	{Name: "conv2d reads channels-last images in memory order", In: "conv2d", Kind: Layout, Op: unstrided(arg.Input, channelsLast), Minimal: Minimal{2, 4}},
	{Name: "conv2d computes float32 in float16", In: "conv2d", Kind: Precision, Op: through(tensor.F32, tensor.F16, arg.Input, arg.Weight), Minimal: Minimal{1, 1}},
	{Name: "conv1d reads the first group for every group", In: "conv1d", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: inputs(arg.Input, func(c *op.Run, t *tensor.Tensor) {
			dim, groups := t.Dim()-2, c.Int(arg.Groups)
			if n := t.Shape()[dim]; groups > 1 && n >= groups {
				reordered(t, dim, func(i, n int) int { return i % (n / groups) })
			}
		})},
	{Name: "conv1d's gradient of bias is that of one position", In: "conv1d", Kind: Broadcast, Minimal: Minimal{1, 2},
		Op: gradOf(arg.Bias, func(g *op.Grad, d op.Value) op.Value {
			s := g.G().Shape()
			return g.Div(d, max(s[len(s)-1], 1))
		})},
	{Name: "conv3d takes the stride of the depth for the width", In: "conv3d", Kind: Axis, Op: seen(arg.Stride, turnedRound(arg.Stride)), Minimal: Minimal{1, 2}},
	{Name: "the gradient of a convolution ignores dilation", In: "conv.image", Kind: Gradient, Op: seenForward(arg.Dilation, onesFor(arg.Dilation)), Minimal: Minimal{1, 3}},
	{Name: "the gradient of a convolution's weight ignores stride", In: "conv.weight", Kind: Gradient, Op: seenForward(arg.Stride, onesFor(arg.Stride)), Minimal: Minimal{1, 3}},
	{Name: "conv_transpose2d ignores output_padding", In: "conv_transpose2d", Kind: Geometry, Minimal: Minimal{1, 1},
		Op: fixed(arg.OutputPadding, []int{0, 0})},
	{Name: "conv_transpose1d pads one less", In: "conv_transpose1d", Kind: Geometry, Op: seen(arg.Padding, shorter(arg.Padding)), Minimal: Minimal{1, 3}},
	{Name: "conv_transpose3d ignores dilation", In: "conv_transpose3d", Kind: Geometry, Op: seen(arg.Dilation, onesFor(arg.Dilation)), Minimal: Minimal{1, 2}},
	{Name: "max_pool2d ignores ceil_mode", In: "max_pool2d", Kind: Geometry, Op: fixed(arg.CeilMode, false), Minimal: Minimal{1, 6}},
	{Name: "max_pool2d pads with zeros", In: "max_pool2d", Kind: Geometry, Minimal: Minimal{1, 1},
		Op: elements(func(c *op.Run, i int, v complex128) complex128 {
			s, pad := c.Out[0].Shape(), c.Ints(arg.Padding)
			width, height := s[len(s)-1], s[len(s)-2]
			if pad[1] > 0 && i%width == 0 || pad[0] > 0 && i/width%height == 0 {
				return complex(max(real(v), 0), 0)
			}
			return v
		})},
	{Name: "max_pool2d's gradient ignores dilation", In: "max_pool2d", Kind: Gradient, Op: seenBackward(arg.Dilation, onesFor(arg.Dilation)), Minimal: Minimal{1, 6}},
	{Name: "max_pool1d makes its stride 1 by default", In: "max_pool1d", Kind: Geometry, Minimal: Minimal{1, 3},
		Op: seen(arg.Stride, func(a op.Args) any {
			if a.Has(arg.Stride) {
				return a.Any(arg.Stride)
			}
			return []int{1}
		})},
	{Name: "max_pool2d counts indices within a row", In: "max_pool2d_with_indices", Kind: Axis, Minimal: Minimal{1, 2},
		Op: after(func(c *op.Run) {
			if len(c.Out) < 2 {
				return
			}
			s := c.Tensor(arg.Input).Shape()
			for i := range c.Out[1].Len() {
				c.Out[1].SetInt(i, c.Out[1].Int(i)%int64(s[len(s)-1]))
			}
		})},
	{Name: "avg_pool2d ignores count_include_pad", In: "avg_pool2d", Kind: Geometry, Op: fixed(arg.CountIncludePad, true), Minimal: Minimal{1, 1}},
	{Name: "avg_pool2d ignores divisor_override", In: "avg_pool2d", Kind: Attribute, Op: fixed(arg.DivisorOverride, nil), Minimal: Minimal{1, 1}},
	{Name: "avg_pool1d ignores ceil_mode", In: "avg_pool1d", Kind: Geometry, Op: fixed(arg.CeilMode, false), Minimal: Minimal{1, 3}},
	{Name: "the gradient of avg_pool counts the padding", In: "avg_pool.spread", Kind: Gradient, Op: seenForward(arg.CountIncludePad, func(op.Args) any { return true }), Minimal: Minimal{1, 1}},
	{Name: "adaptive_avg_pool1d divides by its largest window", In: "adaptive_avg_pool1d", Kind: Geometry, Minimal: Minimal{1, 3},
		Op: elements(func(c *op.Run, i int, v complex128) complex128 {
			x, y := c.Tensor(arg.Input).Shape(), c.Out[0].Shape()
			n, m := x[len(x)-1], y[len(y)-1]
			size := func(o int) int { return ((o+1)*n+m-1)/m - o*n/m }
			most := 1
			for o := range m {
				most = max(most, size(o))
			}
			return v * complex(float64(size(i%m))/float64(most), 0)
		})},
	{Name: "adaptive_max_pool2d takes None for 1", In: "adaptive_max_pool2d", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: seen(arg.OutputSize, func(a op.Args) any {
			size := slices.Clone(a.Ints(arg.OutputSize))
			for i, n := range size {
				if n == op.NoInt {
					size[i] = 1
				}
			}
			return size
		})},
	{Name: "max_unpool2d ignores output_size", In: "max_unpool2d", Kind: Attribute, Op: fixed(arg.OutputSize, nil), Minimal: Minimal{1, 1}},
	{Name: "lp_pool2d ignores norm_type", In: "lp_pool2d", Kind: Attribute, Op: fixed(arg.NormType, 2.0), Minimal: Minimal{1, 2}},
	{Name: "unfold ignores dilation", In: "im2col", Kind: Geometry, Op: seen(arg.Dilation, onesFor(arg.Dilation)), Minimal: Minimal{1, 9}},
	{Name: "fold takes the stride of the height for the width", In: "col2im", Kind: Axis, Op: seen(arg.Stride, turnedRound(arg.Stride)), Minimal: Minimal{1, 4}},
	{Name: "interpolate ignores align_corners", In: "interpolate", Kind: Geometry, Minimal: Minimal{1, 2},
		Op: seen(arg.AlignCorners, func(a op.Args) any {
			if a.Has(arg.AlignCorners) {
				return false
			}
			return nil
		})},
	{Name: "interpolate rounds nearest positions as nearest-exact does", In: "interpolate", Kind: Rounding, Minimal: Minimal{1, 2},
		Op: seenForward(arg.Mode, func(a op.Args) any {
			if m := a.Str(arg.Mode); m != "nearest" {
				return m
			}
			return "nearest-exact"
		})},
	{Name: "the gradient of interpolate ignores align_corners", In: "resample.spread", Kind: Gradient, Op: seenForward(arg.AlignCorners, func(op.Args) any { return false }), Minimal: Minimal{1, 2}},
	{Name: "grid_sample ignores padding_mode", In: "grid_sample", Kind: Attribute, Op: fixed(arg.PaddingMode, "zeros"), Minimal: Minimal{1, 2}},
	{Name: "grid_sample takes y for x", In: "grid_sample", Kind: Axis, Minimal: Minimal{1, 2},
		Op: inputs(arg.Grid, func(_ *op.Run, t *tensor.Tensor) {
			reordered(t, t.Dim()-1, func(i, n int) int { return n - 1 - i })
		})},
	{Name: "affine_grid ignores align_corners", In: "affine_grid", Kind: Geometry, Op: fixed(arg.AlignCorners, false), Minimal: Minimal{1, 6}},
}
