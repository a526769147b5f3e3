package ops

import (
	"errors"
	"slices"

	"plumb/internal/autograd"
	"plumb/op"
	"plumb/tensor"
)

// rule computes the result of an operator by other operators.
type rule func(b op.Builder, a op.Args) op.Value

// composed completes an operator that is one step of its own but is made of
// others: inference, gradient, rounding-error bounds and, unless there are
// kernels, a kernel follow from the rule. Half-precision arguments are computed
// on in float32, and results rounded once. (An operator with Compose is its parts.)
func composed(d *op.Def, f rule) *op.Def {
	if d.Infer == nil {
		d.Infer = f.infer
	}
	return stepwise(d, f.wide())
}

// stepwise is composed with every step in the arguments' own dtypes.
func stepwise(d *op.Def, f rule) *op.Def {
	if d.Infer == nil {
		d.Infer = f.infer
	}
	if d.Kernels == nil {
		d.Kernels = []op.Kernel{{Name: "composition", Run: f.run}}
	}
	if d.Formula == nil {
		d.Formula = func(b op.Builder, a op.Args) []op.Value { return []op.Value{f(b, a)} }
	}
	if d.Grad == nil {
		d.Grad = func(g *op.Grad) { f.grad(g, d.Fixed) }
	}
	return d
}

func (f rule) infer(a op.Args) ([]op.Meta, error) {
	v, err := f.apply(compositionTable().Describer(), a)
	if err != nil {
		return nil, err
	}
	return one(v.DType(), v.Shape(), v.Strides()), nil
}

// run is the kernel that follows the rule.
func (f rule) run(c *op.Run) error {
	v, err := f.apply(compositionTable().ExecutorWithin(c.Limit), c.Args)
	if err != nil {
		return err
	}
	c.Out[0].CopyFrom(v.(*tensor.Tensor))
	return nil
}

// wide is the rule on half-precision arguments brought to float32.
func (f rule) wide() rule {
	return func(b op.Builder, a op.Args) op.Value {
		return f(b, a.MapValues(func(v op.Value) op.Value {
			if slices.Contains(halfTypes, v.DType()) {
				return b.Cast(v, tensor.F32)
			}
			return v
		}))
	}
}

// apply runs the rule; a rejection of one of its steps becomes its own.
func (f rule) apply(on op.Applier, a op.Args) (v op.Value, err error) {
	err = op.Catch(func() { v = f(op.Builder{Applier: on}, a) })
	var e *op.Error
	if errors.As(err, &e) {
		return nil, &op.Error{Class: e.Class, Msg: e.Msg}
	}
	return v, err
}

// grad applies the rule once more, and walks its steps backward.
func (f rule) grad(g *op.Grad, fixed []op.Handle) {
	t := &stepTape{Applier: g.Applier, need: map[op.Value]bool{}}
	for _, v := range g.AllValues() {
		t.need[v] = g.NeedsValue(v)
	}
	for _, p := range fixed {
		if v, ok := g.Any(p).(op.Value); ok {
			t.need[v] = false
		}
	}
	out := f(op.Builder{Applier: t}, g.Args)
	cot := autograd.Cotangents{out: g.Cast(g.G(), out.DType())}
	if err := autograd.Walk(g.Builder, t.steps, cot, func(v op.Value) bool { return t.need[v] }); err != nil {
		op.Fail(err)
	}
	seen := map[op.Value]bool{}
	for _, v := range g.AllValues() {
		if d := cot[v]; d != nil && t.need[v] && !seen[v] {
			seen[v] = true
			g.ToValue(v, func() op.Value { return d })
		}
	}
}

// compositionTable is Table, set late: the table holds the rules that look into it.
var compositionTable func() *op.Table

func init() { compositionTable = Table }

// stepTape is an Applier that keeps the steps through which a gradient has to pass.
type stepTape struct {
	op.Applier
	need  map[op.Value]bool
	steps []autograd.Node
}

// Apply applies an operator by id and keeps the step.
func (t *stepTape) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	out, err := t.Applier.Apply(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	call, err := compositionTable().ResolveID(id, args, kwargs)
	if err != nil || call.Def.Traits.Has(op.NoGrad) {
		return out, err
	}
	if !slices.ContainsFunc(call.Args.AllValues(), func(v op.Value) bool { return t.need[v] }) {
		return out, nil
	}
	for _, v := range out {
		t.need[v] = v.DType().IsDifferentiable()
	}
	t.steps = append(t.steps, autograd.Node{Call: call, Out: out})
	return out, nil
}
