package mutants

import (
	"math"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// outside adds eps to the deviation where it belongs to the variance, as far as
// it can be told from the size of eps.
func outside(a op.Args) any {
	e := a.Float(arg.Eps)
	return e * e
}

var normMutants = []Mutant{
	{Name: "layer_norm adds eps to the deviation", In: "layer_norm", Kind: Rounding, Op: seen(arg.Eps, outside), Minimal: Minimal{1, 2}},
	{Name: "layer_norm exchanges the gradients of weight and bias", In: "layer_norm", Kind: Gradient, Minimal: Minimal{1, 2}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		inner := op.NewGrad(g.Builder, g.Args, g.Out, g.Cot, g.NeedsValue)
		rule(inner)
		w, b := g.Value(arg.Weight), g.Value(arg.Bias)
		g.To(arg.Input, func() op.Value { return inner.Result(g.Value(arg.Input)) })
		if w != nil && b != nil {
			w, b = b, w
		}
		g.To(arg.Weight, func() op.Value { return inner.Result(w) })
		g.To(arg.Bias, func() op.Value { return inner.Result(b) })
	})},
	{Name: "batch_norm adds eps to the deviation", In: "batch_norm", Kind: Rounding, Op: seen(arg.Eps, outside), Minimal: Minimal{1, 2}},
	{Name: "batch_norm weighs the running statistics by 1 - momentum", In: "batch_norm", Kind: Attribute, Minimal: Minimal{2, 2},
		Op: seenForward(arg.Momentum, func(a op.Args) any { return 1 - a.Float(arg.Momentum) })},
	{Name: "batch_norm normalises by the batch in evaluation", In: "batch_norm", Kind: State, Op: seen(arg.Training, func(op.Args) any { return true }), Minimal: Minimal{1, 2}},
	{Name: "batch_norm keeps the biased variance", In: "batch_norm.update", Kind: State, Minimal: Minimal{2, 2},
		Op: after(func(c *op.Run) {
			x := c.Tensor(arg.Input)
			n := float64(x.Len() / max(x.Shape()[1], 1))
			momentum := c.Float(arg.Momentum)
			if n < 2 || !c.Has(arg.Momentum) {
				return
			}
			for i := range c.Out[1].Len() {
				was := c.Tensor(arg.RunningVar).Float(i) * (1 - momentum)
				batch := c.Out[1].Float(i) - was
				c.Out[1].Set(i, complex(was+batch*(n-1)/n, 0))
			}
		})},
	{Name: "batch_norm without momentum takes 0.1", In: "batch_norm.update", Kind: State, Minimal: Minimal{2, 2},
		Op: seen(arg.Momentum, func(a op.Args) any {
			if a.Has(arg.Momentum) {
				return a.Float(arg.Momentum)
			}
			return 0.1
		})},
	{Name: "batch_norm reads channels-last images in memory order", In: "batch_norm", Kind: Layout, Op: unstrided(arg.Input, channelsLast), Minimal: Minimal{2, 4}},
	{Name: "batch_norm's gradient of weight is that of bias", In: "batch_norm.backward", Kind: Gradient, Minimal: Minimal{1, 2},
		Op: after(func(c *op.Run) { c.Out[1].CopyFrom(c.Out[2]) })},
	{Name: "group_norm makes one group of all channels", In: "group_norm", Kind: Attribute, Op: seenForward(arg.NumGroups, func(op.Args) any { return 1 }), Minimal: Minimal{1, 4}},
	{Name: "instance_norm normalises by the instance in evaluation", In: "instance_norm", Kind: State, Op: seen(arg.UseInputStats, func(op.Args) any { return true }), Minimal: Minimal{1, 2}},
	{Name: "group_norm scales by 1 + weight", In: "group_norm", Kind: Attribute, Op: inputs(arg.Weight, each(func(v float64) float64 { return 1 + v })), Minimal: Minimal{1, 2}},
	{Name: "local_response_norm does not divide alpha by size", In: "local_response_norm", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: seen(arg.Alpha, func(a op.Args) any { return a.Float(arg.AlphaFloat) * float64(a.Int(arg.SizeInt)) })},
	{Name: "softmax without dim takes the last", In: "softmax.functional", Kind: Axis, Minimal: Minimal{1, 4},
		Op: seen(arg.Dim, func(a op.Args) any {
			if a.Has(arg.Dim) {
				return a.Int(arg.Dim)
			}
			return -1
		})},
	{Name: "softmax ignores dtype", In: "softmax", Kind: Promotion, Op: fixed(arg.DType, nil), Minimal: Minimal{1, 1}},
	{Name: "softmax's gradient lacks the mean", In: "softmax.backward", Kind: Gradient, Op: instead("mul", arg.Grad, arg.Output), Minimal: Minimal{1, 2}},
	{Name: "log_softmax's gradient is the cotangent", In: "log_softmax.backward", Kind: Gradient, Op: instead("mul", arg.Grad, arg.Grad), Minimal: Minimal{1, 2}},
	{Name: "prelu has one slope for all channels", In: "prelu", Kind: Broadcast, Minimal: Minimal{1, 2},
		Op: inputs(arg.Weight, func(_ *op.Run, t *tensor.Tensor) {
			for i := range t.Len() {
				t.Set(i, t.At(0))
			}
		})},
	{Name: "glu gates with its first half", In: "glu", Kind: Axis, Minimal: Minimal{1, 2},
		Op: inputs(arg.Input, func(c *op.Run, t *tensor.Tensor) {
			if t.Dim() > 0 {
				reordered(t, wrapped(c.Args), func(i, n int) int { return (i + n/2) % n })
			}
		})},
	{Name: "dropout keeps with probability p", In: "dropout", Kind: Attribute, Minimal: Minimal{1, 100},
		Op: seenForward(arg.P, func(a op.Args) any { return 1 - a.Float(arg.P) })},
	{Name: "dropout does not scale what it keeps", In: "dropout", Kind: Attribute, Minimal: Minimal{1, 2},
		Op: elements(func(c *op.Run, _ int, v complex128) complex128 {
			if c.Bool(arg.Training) && c.Float(arg.P) < 1 {
				return v * complex(1-c.Float(arg.P), 0)
			}
			return v
		})},
	{Name: "dropout drops in evaluation", In: "dropout", Kind: State, Op: fixed(arg.Training, true), Minimal: Minimal{1, 4}},
	{Name: "dropout's gradient draws anew", In: "dropout", Kind: Stale, Minimal: Minimal{1, 100}, Op: gradient(func(g *op.Grad, rule func(*op.Grad)) {
		g.Draw++
		rule(g)
	})},
	{Name: "rand is never below 1/4", In: "rand", Kind: Attribute, Op: reals(func(v float64) float64 { return max(v, 0.25) }), Minimal: Minimal{1, 0}},
	{Name: "randn has the deviation 1.5", In: "randn", Kind: Attribute, Op: reals(func(v float64) float64 { return 1.5 * v }), Minimal: Minimal{1, 0}},
	{Name: "randint includes its upper end", In: "randint", Kind: Geometry, Op: seen(arg.High, func(a op.Args) any { return a.Int(arg.High) + 1 }), Minimal: Minimal{1, 0}},
	{Name: "rrelu in evaluation has the slope lower", In: "rrelu", Kind: Attribute, Minimal: Minimal{1, 1},
		Op: seen(arg.Upper, func(a op.Args) any {
			if a.Bool(arg.Training) {
				return a.Float(arg.UpperFloat)
			}
			return a.Float(arg.Lower)
		})},
	{Name: "bernoulli takes p for 1 - p", In: "bernoulli", Kind: Attribute, Minimal: Minimal{1, 100},
		Op: reals(func(v float64) float64 { return 1 - math.Abs(v) })},
}
