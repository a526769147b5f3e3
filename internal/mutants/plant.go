package mutants

import (
	"math"
	"slices"

	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// With returns the arguments with one replaced.
func With(a op.Args, name op.Handle, v any) op.Args {
	vals := slices.Clone(a.Vals)
	vals[a.Sig.Index(name)] = v
	return op.Args{Sig: a.Sig, Vals: vals}
}

// Around puts f around every kernel of an operator.
func Around(d *op.Def, f func(c *op.Run, run func(*op.Run) error) error) {
	for i := range d.Kernels {
		run := d.Kernels[i].Run
		d.Kernels[i].Run = func(c *op.Run) error { return f(c, run) }
	}
}

// RewriteArgs makes every part of an operator see other arguments than it is given.
func RewriteArgs(d *op.Def, f func(op.Args) op.Args) {
	if check := d.Reject; check != nil {
		d.Reject = func(a op.Args) error { return check(f(a)) }
	}
	if infer := d.Infer; infer != nil {
		d.Infer = func(a op.Args) ([]op.Meta, error) { return infer(f(a)) }
	}
	if view := d.View; view != nil {
		d.View = func(a op.Args) (*tensor.Tensor, error) { return view(f(a)) }
	}
	if compose := d.Compose; compose != nil {
		d.Compose = func(b op.Builder, a op.Args) []op.Value { return compose(b, f(a)) }
	}
	if grad := d.Grad; grad != nil {
		d.Grad = func(g *op.Grad) {
			g.Args = f(g.Args)
			grad(g)
		}
	}
	rewriteKernelArgs(d, f)
}

// rewriteKernelArgs does so for the kernels alone.
func rewriteKernelArgs(d *op.Def, f func(op.Args) op.Args) {
	for i := range d.Kernels {
		k := &d.Kernels[i]
		if holds := k.When.Holds; holds != nil {
			k.When.Holds = func(a op.Args) bool { return holds(f(a)) }
		}
		if scratch := k.Scratch; scratch != nil {
			k.Scratch = func(a op.Args) int { return scratch(f(a)) }
		}
	}
	Around(d, func(c *op.Run, run func(*op.Run) error) error {
		changed := *c
		changed.Args = f(c.Args)
		return run(&changed)
	})
}

// The rest of this file builds what mutants plant.
type plant = func(d *op.Def)

// fixed makes an operator ignore an argument: it always has the value v.
func fixed(name op.Handle, v any) plant { return seen(name, func(op.Args) any { return v }) }

// seen makes an operator see another value of an argument.
func seen(name op.Handle, f func(a op.Args) any) plant {
	return func(d *op.Def) { RewriteArgs(d, func(a op.Args) op.Args { return With(a, name, f(a)) }) }
}

// seenForward makes the kernels alone see another value of an argument.
func seenForward(name op.Handle, f func(a op.Args) any) plant {
	return func(d *op.Def) { rewriteKernelArgs(d, func(a op.Args) op.Args { return With(a, name, f(a)) }) }
}

// seenBackward makes the gradient alone see another value of an argument.
func seenBackward(name op.Handle, f func(a op.Args) any) plant {
	return func(d *op.Def) {
		grad := d.Grad
		d.Grad = func(g *op.Grad) {
			g.Args = With(g.Args, name, f(g.Args))
			grad(g)
		}
	}
}

// after changes the results that the kernels have computed.
func after(f func(c *op.Run)) plant {
	return func(d *op.Def) {
		Around(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if err == nil {
				f(c)
			}
			return err
		})
	}
}

// elements changes each element of the first result.
func elements(f func(c *op.Run, i int, v complex128) complex128) plant {
	return after(func(c *op.Run) {
		out := c.Out[0]
		for i := range out.Len() {
			out.Set(i, f(c, i, out.At(i)))
		}
	})
}

// reals changes each element of the first result of a call on real numbers.
func reals(f func(v float64) float64) plant {
	return onReals(func(c *op.Run) {
		for i := range c.Out[0].Len() {
			c.Out[0].Set(i, complex(f(c.Out[0].Float(i)), 0))
		}
	})
}

// ofInput computes each element of the first result of a call on real numbers
// from that of the named argument, of the same shape, and the true result.
func ofInput(name op.TensorArg, f func(x, y float64) float64) plant {
	return onReals(func(c *op.Run) {
		x, out := c.Tensor(name), c.Out[0]
		for i := range out.Len() {
			out.Set(i, complex(f(x.Float(i), out.Float(i)), 0))
		}
	})
}

// onReals is after for calls without complex tensors.
func onReals(f func(c *op.Run)) plant {
	return after(func(c *op.Run) {
		complex := func(v op.Value) bool { return v != nil && v.DType().IsComplex() }
		if !slices.ContainsFunc(c.AllValues(), complex) && !c.Out[0].DType().IsComplex() {
			f(c)
		}
	})
}

// inputs lets the kernels see a changed copy of a tensor argument.
func inputs(name op.TensorArg, f func(c *op.Run, t *tensor.Tensor)) plant {
	return func(d *op.Def) {
		Around(d, func(c *op.Run, run func(*op.Run) error) error {
			if c.Value(name) == nil {
				return run(c)
			}
			t := c.Tensor(name).Clone()
			f(c, t)
			changed := *c
			changed.Args = With(c.Args, name, t)
			return run(&changed)
		})
	}
}

// each changes every element of a tensor, which is real.
func each(f func(v float64) float64) func(*op.Run, *tensor.Tensor) {
	return func(_ *op.Run, t *tensor.Tensor) {
		for i := range t.Len() {
			t.Set(i, complex(f(t.Float(i)), imag(t.At(i))))
		}
	}
}

// noNaN makes NaN the value v.
func noNaN(v float64) func(float64) float64 {
	return func(x float64) float64 {
		if math.IsNaN(x) {
			return v
		}
		return x
	}
}

// through computes calls in one dtype with the precision of another: the named
// arguments are rounded to it, and so is the first result.
func through(from, d tensor.DType, names ...op.TensorArg) plant {
	return func(def *op.Def) {
		Around(def, func(c *op.Run, run func(*op.Run) error) error {
			changed := *c
			for _, n := range names {
				if t := c.Tensor(n); t != nil && t.DType() == from {
					changed.Args = With(changed.Args, n, t.Convert(d).Convert(from))
				}
			}
			err := run(&changed)
			if err == nil && c.Out[0].DType() == from {
				c.Out[0].CopyFrom(c.Out[0].Convert(d))
			}
			return err
		})
	}
}

// inferred changes what is inferred; the kernels compute as before, and their
// results are converted, or their elements taken in order.
func inferred(f func(a op.Args, out []op.Meta)) plant {
	return func(d *op.Def) {
		infer := d.Infer
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			out, err := infer(a)
			if err == nil {
				out = slices.Clone(out)
				f(a, out)
			}
			return out, err
		}
		Around(d, func(c *op.Run, run func(*op.Run) error) error {
			metas, err := infer(c.Args)
			if err != nil {
				return err
			}
			changed := *c
			changed.Out = make([]*tensor.Tensor, len(metas))
			for i, m := range metas {
				changed.Out[i] = tensor.New(m.DType, m.Shape...)
			}
			if err := run(&changed); err != nil {
				return err
			}
			for i, t := range changed.Out {
				fill(c.Out[i], t)
			}
			return nil
		})
	}
}

// fill copies elements in order, as many as there are on both sides.
func fill(dst, src *tensor.Tensor) {
	for i := range min(dst.Len(), src.Len()) {
		if dst.DType().IsInt() {
			dst.SetInt(i, src.Int(i))
		} else {
			dst.Set(i, src.At(i))
		}
	}
}

// typed makes the first result have another dtype.
func typed(f func(a op.Args, d tensor.DType) tensor.DType) plant {
	return inferred(func(a op.Args, out []op.Meta) { out[0].DType = f(a, out[0].DType) })
}

// viewed changes the result of a view.
func viewed(f func(a op.Args, t *tensor.Tensor) *tensor.Tensor) plant {
	return func(d *op.Def) {
		view := d.View
		d.View = func(a op.Args) (*tensor.Tensor, error) {
			t, err := view(a)
			if err == nil {
				t = f(a, t)
			}
			return t, err
		}
	}
}

// gradient replaces the gradient rule by one that may use the true one.
func gradient(f func(g *op.Grad, rule func(*op.Grad))) plant {
	return func(d *op.Def) {
		rule := d.Grad
		d.Grad = func(g *op.Grad) { f(g, rule) }
	}
}

// gradOf changes the gradient of one argument; nil drops it.
func gradOf(name op.TensorArg, f func(g *op.Grad, d op.Value) op.Value) plant {
	return gradient(func(g *op.Grad, rule func(*op.Grad)) {
		inner := op.NewGrad(g.Builder, g.Args, g.Out, g.Cot, g.NeedsValue)
		inner.Draw = g.Draw
		rule(inner)
		done := map[op.Value]bool{}
		for _, v := range g.AllValues() {
			d := inner.Result(v)
			if d == nil || done[v] {
				continue
			}
			done[v] = true
			if v == g.Value(name) {
				g.ToValue(v, func() op.Value { return f(g, d) })
			} else {
				g.ToValue(v, func() op.Value { return d })
			}
		}
	})
}

// dropped drops the gradient of one argument: it is none.
func dropped(name op.TensorArg) plant {
	return gradOf(name, func(*op.Grad, op.Value) op.Value { return nil })
}

// scaled multiplies the gradient of one argument.
func scaled(name op.TensorArg, by float64) plant {
	return gradOf(name, func(g *op.Grad, d op.Value) op.Value { return g.Mul(d, by) })
}

// parts replaces the parts of a composition; f may use the true ones.
func parts(f func(b op.Builder, a op.Args, compose func(op.Builder, op.Args) []op.Value) []op.Value) plant {
	return func(d *op.Def) {
		compose := d.Compose
		d.Compose = func(b op.Builder, a op.Args) []op.Value { return f(b, a, compose) }
	}
}

// refuses makes an operator refuse legal calls.
func refuses(f func(a op.Args) bool) plant {
	return func(d *op.Def) {
		check := d.Reject
		d.Reject = func(a op.Args) error {
			if f(a) {
				return op.RuntimeError("not implemented")
			}
			if check == nil {
				return nil
			}
			return check(a)
		}
	}
}

// configured makes a module's calls see another value of an argument of its constructor.
func configured(name op.Handle, f func(a op.Args) any) func(*nn.Def) {
	return forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
		changed := *m
		changed.Args = With(m.Args, name, f(m.Args))
		return call(b, &changed, a)
	})
}

type moduleCall = func(b op.Builder, m *nn.Module, a op.Args) []op.Value

// forward replaces the rule of a module's calls by one that may use the true one.
func forward(f func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value) func(*nn.Def) {
	return func(d *nn.Def) {
		call := d.Forward
		d.Forward = func(b op.Builder, m *nn.Module, a op.Args) []op.Value { return f(b, m, a, call) }
	}
}

// applies changes the arguments with which a module's calls apply an operator.
func applies(id string, f func(m *nn.Module, args []any)) func(*nn.Def) {
	return forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
		return call(op.Builder{Applier: changedCalls{b.Applier, id, func(args []any) { f(m, args) }}}, m, a)
	})
}

// changedCalls is an Applier that changes the arguments of one operator.
type changedCalls struct {
	op.Applier
	id string
	f  func(args []any)
}

// Apply applies an operator.
func (c changedCalls) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	if id == c.id {
		args = slices.Clone(args)
		c.f(args)
	}
	return c.Applier.Apply(id, args, kwargs)
}

// slots changes what a module has as its state.
func slots(f func(a op.Args, s []nn.Slot) []nn.Slot) func(*nn.Def) {
	return func(d *nn.Def) {
		state := d.State
		d.State = func(a op.Args) []nn.Slot { return f(a, state(a)) }
	}
}
