package op

import (
	"errors"

	"plumb/tensor"
)

// described is a value of which only the layout is known.
type described struct{ meta Meta }

// Layout returns a value of which only dtype, shape and strides are known.
func Layout(m Meta) Value { return &described{m} }

// DType returns the element type.
func (d *described) DType() tensor.DType { return d.meta.DType }

// Shape returns the shape.
func (d *described) Shape() []int { return d.meta.Shape }

// Strides returns the strides.
func (d *described) Strides() []int {
	if d.meta.Strides != nil {
		return d.meta.Strides
	}
	return tensor.ContiguousStrides(d.meta.Shape)
}

// applier applies the parts of a composition by a function of the bound call.
type applier struct {
	table *Table
	apply func(*Call) ([]Value, error)
}

// Apply resolves a part and applies it; compositions are taken apart further.
func (p applier) Apply(id string, args []any, kwargs []Kwarg) ([]Value, error) {
	call, err := p.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return p.apply(call)
}

// Parts writes a composition on a Builder, after its Reject.
func (c *Call) Parts(b Builder) (out []Value, err error) {
	defer c.named(&err)
	if c.Def.Reject != nil {
		if err := c.Def.Reject(c.Args); err != nil {
			return nil, err
		}
	}
	err = Catch(func() { out = c.Def.Compose(b, c.Args) })
	return out, err
}

// Describer returns an applier that infers results without computing them.
func (t *Table) Describer() Applier {
	return applier{t, func(part *Call) ([]Value, error) {
		metas, err := part.Infer()
		vs := make([]Value, len(metas))
		for i, m := range metas {
			vs[i] = &described{m}
		}
		return vs, err
	}}
}

// Executor returns an applier that computes on *tensor.Tensor values.
func (t *Table) Executor() Applier { return t.executor(nil, 0) }

// ExecutorWithin is Executor of calls each of whose results and temporary memory take
// at most so many bytes; others are rejections.
func (t *Table) ExecutorWithin(bytes int) Applier {
	return applier{t, func(part *Call) ([]Value, error) {
		part.Limit = bytes
		ts, err := part.Execute()
		vs := make([]Value, len(ts))
		for i, t := range ts {
			vs[i] = t
		}
		return vs, err
	}}
}

// executor computes on a stream of a device; nil for where the tensors are.
func (t *Table) executor(d *Device, stream int) Applier {
	return applier{t, func(part *Call) ([]Value, error) {
		part.Device, part.Stream = d, stream
		ts, err := part.Execute()
		vs := make([]Value, len(ts))
		for i, t := range ts {
			vs[i] = t
		}
		return vs, err
	}}
}

// DataDependentShape reports whether the results' shapes depend on elements of
// the arguments, so that the arguments' shapes do not tell them.
func (c *Call) DataDependentShape() bool {
	call := *c
	call.Args = c.Args.MapValues(func(v Value) Value {
		return &described{Meta{v.DType(), v.Shape(), v.Strides()}}
	})
	_, err := call.Infer()
	var rejection *Error
	return err != nil && !errors.As(err, &rejection)
}

func (c *Call) inferParts() ([]Meta, error) {
	out, err := c.Parts(Builder{c.Def.table.Describer()})
	metas := make([]Meta, len(out))
	for i, v := range out {
		metas[i] = Meta{v.DType(), v.Shape(), v.Strides()}
	}
	return metas, err
}

func (c *Call) executeParts(d *Device) ([]*tensor.Tensor, error) {
	out, err := c.Parts(Builder{c.Def.table.executor(d, c.Stream)})
	ts := make([]*tensor.Tensor, len(out))
	for i, v := range out {
		ts[i] = v.(*tensor.Tensor)
	}
	return ts, err
}
