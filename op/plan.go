package op

import (
	"errors"

	"plumb/tensor"
)

// Plan is a call that is checked, inferred and bound to a kernel for tensors of known
// layouts, so that running it again takes their elements alone.
type Plan struct {
	Call    *Call
	Kernel  *Kernel          // on the host; nil of a View and of a composition
	Results []*tensor.Tensor // layouts
	bytes   int              // of the results and of temporary memory
	states  States
}

// Plan returns the plan of a call whose tensors are like its own; nil where elements tell
// what it results in. The error is a rejection.
func (c *Call) Plan() (*Plan, error) {
	if c.Def.Traits.Has(Dynamic) || c.Def.Place != nil || c.Def.Compose == nil && c.Def.Infer == nil {
		return nil, nil
	}
	metas, err := c.Infer()
	var rejection *Error
	switch {
	case errors.As(err, &rejection):
		return nil, err
	case err != nil:
		return nil, nil
	}
	p := &Plan{Call: c}
	for _, m := range metas {
		if err := tensor.CheckShape(m.DType, m.Shape); err != nil {
			return nil, RuntimeError("%s: %v", c.Def.ID(), err)
		}
		p.Results = append(p.Results, tensor.Layout(m.DType, m.Shape, m.Strides))
	}
	if c.Def.View != nil || c.Def.Compose != nil {
		return p, nil
	}
	laid := c.Args.MapValues(func(v Value) Value { return tensor.Layout(v.DType(), v.Shape(), v.Strides()) })
	if p.Kernel, err = c.Def.Kernel(laid); err != nil {
		return nil, err
	}
	for _, t := range p.Results {
		p.bytes += tensor.Extent(t.Shape(), t.Strides()) * t.DType().Size()
	}
	if p.Kernel.Scratch != nil {
		p.bytes += p.Kernel.Scratch(laid)
	}
	return p, nil
}

// Bytes returns how much memory the results and what is temporary take.
func (p *Plan) Bytes() int { return p.bytes }

// Run runs the kernel, whose results have their memory. What is refused for elements is a
// rejection.
func (p *Plan) Run(run *Run) (err error) {
	if p.Call.Def.Reject != nil {
		if err := p.Call.Def.Reject(run.Args); err != nil {
			p.Call.named(&err)
			return err
		}
	}
	if p.Kernel.Scratch != nil || p.Kernel.State != nil {
		if err := p.Kernel.Prepare(run, &p.states); err != nil {
			return err
		}
	}
	if err := p.Kernel.run(run); err != nil {
		p.Call.named(&err)
		return err
	}
	return nil
}
