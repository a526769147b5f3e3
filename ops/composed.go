package ops

import (
	"errors"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// rule computes the result of an operator by other operators.
type rule func(b op.Builder, a op.Args) op.Value

// composed completes an operator that is made of others: inference, gradient
// and, unless there are kernels, a kernel follow from the rule. Half-precision
// arguments are computed on in float32, and results rounded once.
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
	d.Steps = func(b op.Builder, a op.Args) []op.Value { return vals(f(b, a)) }
	if d.Grad == nil {
		d.Grad = func(g *op.Grad) { f.grad(g, d.Fixed) }
	}
	return d
}

func (f rule) infer(a op.Args) ([]op.Meta, error) {
	v, err := f.apply(describer{}, a)
	if err != nil {
		return nil, err
	}
	return one(v.DType(), v.Shape(), v.Strides()), nil
}

// run is the kernel that follows the rule.
func (f rule) run(c *op.Run) error {
	v, err := f.apply(executor{}, c.Args)
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
func (f rule) grad(g *op.Grad, fixed []string) {
	t := &stepTape{Applier: g.Applier, need: map[op.Value]bool{}}
	for _, v := range g.AllValues() {
		t.need[v] = g.NeedsValue(v)
	}
	for _, name := range fixed {
		t.need[g.Value(name)] = false
	}
	out := f(op.Builder{Applier: t}, g.Args)
	cot := t.backward(g.Builder, out, g.Cast(g.G(), out.DType()))
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

// executor is an Applier that computes on tensors.
type executor struct{}

// Apply computes an operator by id.
func (executor) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := compositionTable().ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	ts, err := call.Execute()
	if err != nil {
		return nil, err
	}
	out := make([]op.Value, len(ts))
	for i, t := range ts {
		out[i] = t
	}
	return out, nil
}

// describer is an Applier that infers what the results would be.
type describer struct{}

// Apply infers an operator by id.
func (describer) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := compositionTable().ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	metas, err := call.Infer()
	if err != nil {
		return nil, err
	}
	out := make([]op.Value, len(metas))
	for i, m := range metas {
		if m.Strides == nil {
			m.Strides = tensor.ContiguousStrides(m.Shape)
		}
		out[i] = &described{m}
	}
	return out, nil
}

// described is a value of which only the description exists.
type described struct{ meta op.Meta }

// DType returns the dtype.
func (d *described) DType() tensor.DType { return d.meta.DType }

// Shape returns the sizes.
func (d *described) Shape() []int { return d.meta.Shape }

// Strides returns the strides.
func (d *described) Strides() []int { return d.meta.Strides }

// stepTape is an Applier that keeps the steps through which a gradient has to pass.
type stepTape struct {
	op.Applier
	need  map[op.Value]bool
	steps []step
}

type step struct {
	call *op.Call
	out  []op.Value
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
	needed := false
	for _, v := range call.Args.AllValues() {
		needed = needed || t.need[v]
	}
	if !needed {
		return out, nil
	}
	for _, v := range out {
		t.need[v] = v.DType().IsDifferentiable()
	}
	t.steps = append(t.steps, step{call, out})
	return out, nil
}

// backward returns the gradients of the values that need one.
func (t *stepTape) backward(b op.Builder, out, cotangent op.Value) map[op.Value]op.Value {
	cot := map[op.Value]op.Value{out: cotangent}
	for i := len(t.steps) - 1; i >= 0; i-- {
		s := &t.steps[i]
		gs := make([]op.Value, len(s.out))
		arrived := false
		for j, v := range s.out {
			gs[j] = cot[v]
			arrived = arrived || gs[j] != nil
		}
		if arrived {
			t.through(b, s, gs, cot)
		}
	}
	return cot
}

// through adds the gradients of one step's inputs.
func (t *stepTape) through(b op.Builder, s *step, gs []op.Value, cot map[op.Value]op.Value) {
	g := op.NewGrad(b, s.call.Args, s.out, gs, func(v op.Value) bool { return t.need[v] })
	s.call.Def.Grad(g)
	seen := map[op.Value]bool{}
	for _, v := range s.call.Args.AllValues() {
		d := g.Result(v)
		if d == nil || seen[v] {
			continue
		}
		seen[v] = true
		if prev := cot[v]; prev != nil {
			d = b.Add(prev, d)
		}
		cot[v] = d
	}
}
