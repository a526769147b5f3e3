package mutants

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// zipped computes each element of the first result of a call on real numbers
// from those of two operands that broadcast to it, numbers or tensors, and the
// true result.
func zipped(first, second op.Handle, f func(x, y, v float64) float64) plant {
	return onReals(func(c *op.Run) {
		x, y, out := operand(c, first), operand(c, second), c.Out[0]
		for i := range out.Len() {
			out.Set(i, complex(f(x.Float(i), y.Float(i), out.Float(i)), 0))
		}
	})
}

// operand returns an argument in the shape of the first result.
func operand(c *op.Run, name op.Handle) *tensor.Tensor {
	t, ok := c.Any(name).(*tensor.Tensor)
	if !ok {
		t = tensor.Scalar(tensor.F64, c.Any(name).(op.Scalar).Complex())
	}
	wide, err := t.Expand(c.Out[0].Shape()...)
	if err != nil {
		panic("mutants: " + err.Error())
	}
	return wide
}

// instead makes the kernels compute another operator of some of the arguments.
func instead(id string, names ...op.Handle) plant {
	return func(d *op.Def) {
		Around(d, func(c *op.Run, _ func(*op.Run) error) error {
			var args []any
			for _, n := range names {
				args = append(args, c.Any(n))
			}
			call, err := ops.Table().ResolveID(id, args, nil)
			if err != nil {
				return err
			}
			out, err := call.Execute()
			for i := range c.Out {
				if err == nil {
					fill(c.Out[i], out[i])
				}
			}
			return err
		})
	}
}

// unstrided makes the kernels read an argument for which when holds as if it
// were contiguous.
func unstrided(name op.TensorArg, when func(t *tensor.Tensor) bool) plant {
	return func(d *op.Def) {
		Around(d, func(c *op.Run, run func(*op.Run) error) error {
			t := c.Tensor(name)
			if t == nil || t.IsContiguous() || !when(t) {
				return run(c)
			}
			changed := *c
			changed.Args = With(c.Args, name, inMemoryOrder(t))
			return run(&changed)
		})
	}
}

// inMemoryOrder returns the elements that follow the first one in memory.
func inMemoryOrder(t *tensor.Tensor) *tensor.Tensor {
	u, err := t.AsStrided(t.Shape(), tensor.ContiguousStrides(t.Shape()), t.Offset())
	if err != nil {
		return t
	}
	return u
}

func always(*tensor.Tensor) bool { return true }

func channelsLast(t *tensor.Tensor) bool {
	return t.Dim() == 4 && tensor.ChannelsLast.Matches(t.Shape(), t.Strides())
}

// all plants several changes that make one fault.
func all(plants ...plant) plant {
	return func(d *op.Def) {
		for _, p := range plants {
			p(d)
		}
	}
}

// exchanged makes an operator take two arguments for each other.
func exchanged(first, second op.Handle) plant {
	return func(d *op.Def) {
		RewriteArgs(d, func(a op.Args) op.Args {
			return With(With(a, first, a.Any(second)), second, a.Any(first))
		})
	}
}

// firstOnly undoes a broadcast by taking the first entry where a sum is due.
func firstOnly(g *op.Grad, d op.Value, shape []int) op.Value {
	for len(d.Shape()) > len(shape) {
		d = g.Op("select", d, 0, 0)
	}
	for i, n := range shape {
		if n == 1 && d.Shape()[i] > 1 {
			d = g.Op("narrow", d, i, 0, 1)
		}
	}
	return d
}

// turned runs an order or a reduction with indices on the reversed dimension:
// of equal elements the last comes first.
func turned(d *op.Def) {
	Around(d, func(c *op.Run, run func(*op.Run) error) error {
		x := c.Tensor(arg.Input)
		if x.Dim() == 0 {
			return run(c)
		}
		dim := wrapped(c.Args)
		changed := *c
		changed.Args = With(c.Args, arg.Input, reversed(x, dim))
		if err := run(&changed); err != nil {
			return err
		}
		index := c.Out[len(c.Out)-1]
		for i := range index.Len() {
			index.SetInt(i, int64(x.Shape()[dim])-1-index.Int(i))
		}
		return nil
	})
}

// reversed returns a copy with a dimension in reverse.
func reversed(t *tensor.Tensor, dim int) *tensor.Tensor {
	out := tensor.New(t.DType(), t.Shape()...)
	n := t.Shape()[dim]
	for i := range n {
		out.Narrow(dim, i, 1, 1).CopyFrom(t.Narrow(dim, n-1-i, 1, 1))
	}
	return out
}

// negated makes an operator on real numbers work on their negatives.
var negated = all(
	inputs(arg.Input, each(func(v float64) float64 { return -v })),
	reals(func(v float64) float64 { return -v }),
)

// reordered puts the n entries of a dimension into another order.
func reordered(t *tensor.Tensor, dim int, order func(i, n int) int) {
	if t.Dim() == 0 {
		return
	}
	was := t.Clone()
	n := t.Shape()[dim]
	for i := range n {
		t.Narrow(dim, i, 1, 1).CopyFrom(was.Narrow(dim, order(i, n), 1, 1))
	}
}

// backwards returns the ints in reverse.
func backwards(v []int) []int {
	v = slices.Clone(v)
	slices.Reverse(v)
	return v
}

// repeated returns n times v.
func repeated(v, n int) []int { return slices.Repeat([]int{v}, n) }

// floats returns the real parts of the elements.
func floats(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Len())
	for i := range out {
		out[i] = t.Float(i)
	}
	return out
}
