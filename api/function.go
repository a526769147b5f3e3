package api

import (
	"fmt"
	"slices"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// Function is a function of tensors with a gradient of its own, as PyTorch's
// autograd.Function is: that of what Forward calls plays no part.
//
//	cube := api.Function{
//		Forward: func(c *api.Context, x ...*api.Tensor) ([]*api.Tensor, error) {
//			c.Save(x[0])
//			y, err := api.Pow(x[0], api.Number(3))
//			return []*api.Tensor{y}, err
//		},
//		Backward: func(c *api.Context, grads ...*api.Tensor) ([]*api.Tensor, error) {
//			x := c.Saved()[0]
//			…
//		},
//	}
//	y, err := cube.Call(x)
//
// It runs at once in a session, and is recorded by a graph; see Traced.
type Function struct {
	// Forward computes the results of the inputs. Nothing that it calls is recorded for
	// gradients.
	Forward func(c *Context, x ...*Tensor) ([]*Tensor, error)
	// Backward returns a gradient for each input, nil for none, of those of the results;
	// a result that has none counts as having zeros. Where a second order is wanted, what
	// it calls is differentiated.
	Backward func(c *Context, grads ...*Tensor) ([]*Tensor, error)
}

// Context is what one call of a Function keeps.
type Context struct {
	saved    []*Tensor
	needs    []bool
	constant []*Tensor
}

// Save keeps tensors for Backward: inputs, results and others.
func (c *Context) Save(ts ...*Tensor) { c.saved = append(c.saved, ts...) }

// Saved returns what was saved: inputs and results with what they depend on.
func (c *Context) Saved() []*Tensor { return c.saved }

// Needs reports whether a gradient of an input is wanted.
func (c *Context) Needs(input int) bool { return c.needs[input] }

// NonDifferentiable says of results of Forward that they have no gradient.
func (c *Context) NonDifferentiable(ts ...*Tensor) { c.constant = append(c.constant, ts...) }

// functionSig is how calls of a Function are written down: with the results, which
// Forward computed, among the arguments.
const functionSig = "function(Tensor[] results, Tensor[] inputs) -> Tensor[]"

const (
	functionResults = op.TensorsArg("results")
	functionInputs  = op.TensorsArg("inputs")
)

// Call applies the function to tensors, at least one.
func (f Function) Call(x ...*Tensor) ([]*Tensor, error) {
	if len(x) == 0 || slices.Contains(x, nil) {
		return nil, op.TypeError("function: it takes tensors, at least one")
	}
	s := x[0].s
	inputs := make([]op.Value, len(x))
	ctx := &Context{needs: make([]bool, len(x))}
	for i, t := range x {
		if t.s != s {
			return nil, op.TypeError("function: tensors of two sessions cannot take part in one call")
		}
		inputs[i], ctx.needs[i] = t.Value(), s.rec != nil || t.RequiresGrad()
	}
	var raw []*Tensor
	err := s.unrecorded(func() (err error) {
		raw, err = f.Forward(ctx, x...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("function: forward: %w", err)
	}
	results := make([]op.Value, len(raw))
	for i, t := range raw {
		if t == nil || t.s != s {
			return nil, op.TypeError("function: result %d of Forward is no tensor of the session", i)
		}
		results[i] = t.Value()
	}
	if len(results) == 0 {
		return nil, op.TypeError("function: Forward has no result")
	}
	call, err := f.bind(s, ctx, results, inputs)
	if err != nil {
		return nil, err
	}
	out, err := s.adopt(call, raw)
	if err != nil {
		return nil, err
	}
	for i, t := range raw {
		if s.rec == nil && slices.Contains(ctx.constant, t) {
			out[i].v.SetRequiresGrad(false)
		}
		for j, saved := range ctx.saved {
			if saved == t && !slices.Contains(x, t) {
				ctx.saved[j] = out[i]
			}
		}
	}
	return out, nil
}

// unrecorded runs f without recording what gradients need. In a graph they are written
// by the rules of what is differentiated, so that there is nothing to leave out.
func (s *Session) unrecorded(f func() error) error {
	if s.rec != nil {
		return f()
	}
	return s.NoGrad(f)
}

// bind returns the call that stands for the function's.
func (f Function) bind(s *Session, ctx *Context, results, inputs []op.Value) (*op.Call, error) {
	table, err := op.NewTable(&op.Def{
		Sig: functionSig, Doc: "A function of the user's.", NotSplittable: "its gradient is a function of Go",
		Tol: op.Tol{Class: op.Exact, Reason: "copies of what was computed"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			var metas []op.Meta
			for _, v := range a.Values(functionResults) {
				metas = append(metas, op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: v.Strides()})
			}
			return metas, nil
		},
		Kernels: []op.Kernel{{Name: "computed", Run: func(c *op.Run) error {
			for i, t := range c.Tensors(functionResults) {
				c.Out[i].CopyFrom(t)
			}
			return nil
		}}},
		Grad: func(g *op.Grad) { f.backward(s, ctx, g) },
	})
	if err != nil {
		return nil, err
	}
	d := table.Defs()[0]
	return &op.Call{Def: d, Args: op.Args{Sig: d.Sigs()[0], Vals: []any{results, inputs}}}, nil
}

// backward is the gradient rule of a call.
func (f Function) backward(s *Session, ctx *Context, g *op.Grad) {
	inputs := g.Values(functionInputs)
	grads := make([]*Tensor, len(g.Cot))
	for i, v := range g.Cot {
		if v == nil {
			v = g.FullLike(g.Out[i], 0)
		}
		grads[i] = s.tensor(v)
	}
	for i, v := range inputs {
		ctx.needs[i] = g.NeedsValue(v)
	}
	all, err := f.Backward(ctx, grads...)
	if err == nil && len(all) != len(inputs) {
		err = op.RuntimeError("%d gradients for %d inputs", len(all), len(inputs))
	}
	if err != nil {
		op.Fail(fmt.Errorf("backward: %w", err))
	}
	for i, v := range inputs {
		switch t := all[i]; {
		case t == nil:
		case t.s != s:
			op.Fail(op.TypeError("gradient %d of Backward is a tensor of another session", i))
		default:
			g.ToValue(v, func() op.Value { return t.Value() })
		}
	}
}

// adopt makes the results of a call what Forward computed.
func (s *Session) adopt(call *op.Call, raw []*Tensor) ([]*Tensor, error) {
	var values []op.Value
	if s.rec != nil {
		r, ok := s.rec.(interface {
			Execute(call *op.Call) ([]op.Value, error)
		})
		if !ok {
			return nil, errRecording
		}
		var err error
		if values, err = r.Execute(call); err != nil {
			return nil, err
		}
	} else {
		vars := make([]*eager.Var, len(raw))
		for i, t := range raw {
			vars[i] = t.v
		}
		values = s.eager.Adopt(call, vars)
	}
	out := make([]*Tensor, len(values))
	for i, v := range values {
		out[i] = s.tensor(v)
	}
	return out, nil
}

// tensor returns a value of the session as its tensor.
func (s *Session) tensor(v op.Value) *Tensor {
	switch x := v.(type) {
	case *eager.Var:
		return &Tensor{v: x, s: s}
	case *tensor.Tensor:
		if s.rec == nil {
			return s.Wrap(x)
		}
	}
	return s.Recorded(v)
}
