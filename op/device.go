package op

import (
	"slices"

	"plumb/tensor"
)

// Device is where tensors lie and kernels run, beside the host; see tensor.Device.
type Device = tensor.Device

// RegisterDevice makes a device known by its name, as Kernel.Device says it.
func RegisterDevice(d *Device) { tensor.RegisterDevice(d) }

// DeviceNamed returns a registered device; nil for none.
func DeviceNamed(name string) *Device { return tensor.DeviceNamed(name) }

// place returns the device on which the call is computed, nil for the host: that of its
// tensors, or else the call's. Tensors on two devices are a rejection, but for those of
// the host that are moved to the call's device, and for numbers.
func (c *Call) place() (*Device, error) {
	d, host := c.Device, false
	for _, v := range c.Args.Vals {
		var err error
		switch v := v.(type) {
		case *tensor.Tensor:
			d, host, err = beside(d, host, v)
		case []Value, Index:
			for _, e := range (Args{Vals: []any{v}}).AllValues() {
				if t, ok := e.(*tensor.Tensor); ok && err == nil {
					d, host, err = beside(d, host, t)
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if d != nil && c.Device == nil && host {
		return nil, apart(d, nil)
	}
	return d, nil
}

// beside returns the device of t and of what was seen before it, and whether a tensor of
// the host is among them.
func beside(d *Device, host bool, t *tensor.Tensor) (*Device, bool, error) {
	switch on := t.Device(); {
	case on == nil:
		return d, host || t.Dim() > 0, nil
	case d == nil || d == on:
		return on, host, nil
	default:
		return nil, host, apart(d, on)
	}
}

func apart(a, b *Device) error {
	return RuntimeError("Expected all tensors to be on the same device, but found at least two devices, %s and %s!", a, b)
}

// moved returns the arguments with their tensors moved.
func moved(a Args, m *tensor.Move) (Args, error) {
	var failed error
	a = a.MapValues(func(v Value) Value {
		t, ok := v.(*tensor.Tensor)
		if !ok || failed != nil {
			return v
		}
		if t, failed = m.Tensor(t); failed != nil {
			return v
		}
		return t
	})
	return a, failed
}

// executeOn is ExecuteInto of a call on a device, where results have memory of their own.
func (c *Call) executeOn(d *Device) ([]*tensor.Tensor, error) {
	for _, p := range c.Def.Mutates {
		if t := c.Args.Tensor(p); t != nil && t.Device() == nil {
			return nil, apart(d, nil) // a copy of it would be changed
		}
	}
	call := *c
	call.Device = d
	var err error
	if call.Args, err = moved(c.Args, &tensor.Move{To: d, Stream: c.Stream}); err != nil {
		return nil, err
	}
	if c.Def.View != nil { // which may have made a copy, on the host
		out, err := call.view()
		if err != nil {
			return nil, err
		}
		return c.movedBack(out, d)
	}
	k := c.Def.kernelOn(d.Name, call.Args)
	switch {
	case k != nil:
		return call.launch(k)
	case d.Fallback:
		return call.onHost()
	}
	return nil, c.Def.noKernel(d.Name, call.Args)
}

// launch runs a kernel of the device.
func (c *Call) launch(k *Kernel) ([]*tensor.Tensor, error) {
	inferred := *c
	var err error
	if c.Def.Traits.Has(Dynamic) { // by elements
		if inferred.Args, err = moved(c.Args, &tensor.Move{}); err != nil {
			return nil, err
		}
	}
	metas, err := inferred.Infer()
	if err == nil {
		err = c.fits(metas, k)
	}
	if err != nil {
		return nil, err
	}
	run := &Run{Args: c.Args, Key: c.Key, Device: c.Device, Stream: c.Stream}
	for _, m := range metas {
		t, err := c.Device.Unset(c.Stream, m.DType, m.Shape, m.Strides)
		if err != nil {
			return nil, err
		}
		run.Out = append(run.Out, t)
	}
	for _, v := range c.Args.AllValues() {
		if _, err := v.(*tensor.Tensor).Use(c.Stream); err != nil {
			return nil, err
		}
	}
	if k.Scratch != nil {
		if run.ScratchOn, err = c.Device.Unset(c.Stream, tensor.U8, []int{k.Scratch(c.Args)}, nil); err != nil {
			return nil, err
		}
	}
	if err := k.remember(run, c.States); err != nil {
		return nil, err
	}
	if err := k.run(run); err != nil {
		return nil, err
	}
	if c.Done != nil {
		c.Done(0, run.Out[0].Len())
	}
	return run.Out, nil
}

// onHost computes the call on the host: its tensors are copied there, what it mutates
// back, and its results to the device.
func (c *Call) onHost() ([]*tensor.Tensor, error) {
	host := *c
	host.Device = nil
	var err error
	if host.Args, err = moved(c.Args, &tensor.Move{}); err != nil {
		return nil, err
	}
	out, err := host.Execute()
	if err != nil {
		return nil, err
	}
	was, is := c.Args.AllValues(), host.Args.AllValues()
	for i, v := range was {
		if slices.ContainsFunc(c.Def.Mutates, func(p TensorArg) bool { return c.Args.Any(p) == v }) {
			if err := v.(*tensor.Tensor).Back(is[i].(*tensor.Tensor)); err != nil {
				return nil, err
			}
		}
	}
	return c.movedBack(out, c.Device)
}

// movedBack moves results to the device.
func (c *Call) movedBack(out []*tensor.Tensor, d *Device) (_ []*tensor.Tensor, err error) {
	back := tensor.Move{To: d, Stream: c.Stream}
	for i, t := range out {
		if out[i], err = back.Tensor(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}
