package op

import (
	"errors"
	"fmt"

	"plumb/tensor"
)

// Execute computes a call whose tensor arguments are *tensor.Tensor: it
// checks, infers, allocates, chooses a kernel and runs it. The error is a
// rejection (*Error) or says that the operator itself is broken.
func (c *Call) Execute() ([]*tensor.Tensor, error) {
	return c.ExecuteInto(func(_ int, m Meta) *tensor.Tensor { return tensor.Unset(m.DType, m.Shape, m.Strides) })
}

// ExecuteInto is Execute with results that get makes, whose elements may be
// anything. Views, compositions and calls on a device make their own.
func (c *Call) ExecuteInto(get func(result int, m Meta) *tensor.Tensor) (out []*tensor.Tensor, err error) {
	defer c.named(&err)
	d, err := c.place()
	if err != nil {
		return nil, err
	}
	if c.Def.Place != nil && !c.settled {
		return c.placed(d)
	}
	if c.Def.Compose != nil {
		return c.executeParts(d)
	}
	if err := c.readable(); err != nil {
		return nil, err
	}
	if d != nil {
		return c.executeOn(d)
	}
	if c.Def.View != nil {
		return c.view()
	}
	metas, err := c.Infer()
	if err != nil {
		return nil, err
	}
	k, err := c.Def.Kernel(c.Args)
	if err != nil {
		return nil, err
	}
	if err := c.fits(metas, k); err != nil {
		return nil, err
	}
	single := &struct {
		Run
		out [1]*tensor.Tensor
	}{Run: Run{Args: c.Args, Key: c.Key, Limit: c.Limit}}
	run := &single.Run
	if run.Out = single.out[:]; len(metas) != 1 {
		run.Out = make([]*tensor.Tensor, len(metas))
	}
	if k.Reports {
		run.Done = c.Done
	}
	for i, m := range metas {
		run.Out[i] = get(i, m)
	}
	if err := k.Prepare(run, c.States); err != nil {
		return nil, err
	}
	if err := k.run(run); err != nil {
		return nil, err
	}
	if c.Done != nil && !k.Reports {
		c.Done(0, run.Out[0].Len())
	}
	return run.Out, nil
}

// view makes the result of a View operator.
func (c *Call) view() ([]*tensor.Tensor, error) {
	if c.Def.Reject != nil {
		if err := c.Def.Reject(c.Args); err != nil {
			return nil, err
		}
	}
	t, err := c.Def.View(c.Args)
	return []*tensor.Tensor{t}, err
}

// run runs the kernel; an error that is no rejection names it.
func (k *Kernel) run(c *Run) error {
	err := k.Run(c)
	if err == nil {
		return nil
	}
	var rejection *Error
	if errors.As(err, &rejection) {
		return err
	}
	return fmt.Errorf("kernel %s: %w", k.Name, err)
}

// maxBytes is the Limit of a call that has none.
const maxBytes = 1 << 40

func (c *Call) limit() int {
	if c.Limit == 0 {
		return maxBytes
	}
	return c.Limit
}

// readable returns a rejection when a tensor argument, written out, would
// exceed the call's Limit: an expanded one is larger than its memory.
func (c *Call) readable() error {
	for _, v := range c.Args.Vals {
		var err error
		switch v := v.(type) {
		case Value:
			err = c.holds(v)
		case []Value, Index:
			for _, e := range (Args{Sig: c.Args.Sig, Vals: []any{v}}).AllValues() {
				if err = c.holds(e); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) holds(v Value) error {
	if v != nil && !within(v.Shape(), c.limit()/v.DType().Size()) {
		return RuntimeError("can't allocate memory: the argument of shape %s takes more than %d bytes", tensor.ShapeString(v.Shape()), c.limit())
	}
	return nil
}

// fits returns a rejection when the results and the kernel's temporary memory
// exceed the call's Limit.
func (c *Call) fits(metas []Meta, k *Kernel) error {
	total := 0
	for _, m := range metas {
		if err := tensor.CheckShape(m.DType, m.Shape); err != nil {
			return RuntimeError("%v", err)
		}
		if !within(m.Shape, c.limit()) {
			return c.tooLarge(m.Shape)
		}
		elements := tensor.NumElements(m.Shape)
		if m.Strides != nil {
			elements = tensor.Extent(m.Shape, m.Strides)
		}
		if total += elements * m.DType.Size(); total > c.limit() {
			return c.tooLarge(m.Shape)
		}
	}
	if k.Scratch != nil && k.Scratch(c.Args) > c.limit()-total {
		return RuntimeError("can't allocate memory: the computation takes more than %d bytes", c.limit())
	}
	return nil
}

func (c *Call) tooLarge(shape []int) error {
	return RuntimeError("can't allocate memory: the result of shape %s takes more than %d bytes", tensor.ShapeString(shape), c.limit())
}

// within reports whether a shape has at most limit elements, where an empty
// dimension counts as one: kernels may take time and memory by the others.
func within(shape []int, limit int) bool {
	room := limit
	for _, n := range shape {
		if room /= max(n, 1); room == 0 {
			return false
		}
	}
	return true
}
