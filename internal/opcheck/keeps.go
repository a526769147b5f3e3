package opcheck

import (
	"fmt"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// keeps checks what the chosen kernel keeps and wants: its scratch memory and its state
// follow from layouts and attributes, and a call that finds the state of another of the
// same key computes what it does alone.
func (c *checker) keeps(d *drawn) {
	k, err := c.def.Kernel(d.Args)
	if err != nil {
		return
	}
	if k.Scratch != nil {
		if laid, real := k.Scratch(op.Laid(d.Args)), k.Scratch(d.Args); laid != real {
			c.find("Kernels", d.Call, "kernel %q asks for %d bytes of scratch memory by the elements of the call, and for %d by shapes alone", k.Name, real, laid)
		}
	}
	if k.State == nil || c.def.Traits.Has(op.Random) {
		return
	}
	for _, first := range append([]*op.Call{c.turned(d)}, c.alike(d, k)...) {
		c.count()
		states := &op.States{}
		first.States = states
		if _, err := first.Execute(); err != nil {
			continue
		}
		for range 2 {
			call := with(d.Call, sameLayout)
			call.States = states
			out, err := call.Execute()
			if err != nil || !allAlike(c.def, out, d.out) {
				got := fmt.Sprint(err)
				if err == nil {
					got = list(out)
				}
				c.find("Kernels", d.Call, "kernel %q keeps a state that fits another call, of the same key %q: after %s it computes %s, and alone %s", k.Name, k.StateKey(d.Args), Describe(first), got, list(d.out))
				return
			}
		}
	}
}

// turned is the call of the same layouts with its elements in another order.
func (c *checker) turned(d *drawn) *op.Call {
	return with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
		u := sameLayout(x)
		for i := range u.Len() {
			u.Set(i, x.At(u.Len()-1-i))
		}
		return u
	})
}

// alike returns other calls that were drawn, for which the kernel has the same state.
func (c *checker) alike(d *drawn, k *op.Kernel) (calls []*op.Call) {
	key := k.StateKey(d.Args)
	for _, other := range c.calls {
		if other != d && len(calls) < maxAlike && k.StateKey(other.Args) == key {
			if chosen, err := c.def.Kernel(other.Args); err == nil && chosen == k {
				calls = append(calls, with(other.Call, sameLayout))
			}
		}
	}
	return calls
}

const maxAlike = 8

// over checks that a result which lies where Over lets it is what it is elsewhere.
func (c *checker) over(d *drawn) {
	k, err := c.def.Kernel(d.Args)
	if err != nil || len(k.Over) == 0 {
		return
	}
	for _, p := range k.Over {
		i := d.Args.Sig.Index(p)
		if i < 0 {
			c.find("Kernels", d.Call, "kernel %q has %q in Over, which is no argument", k.Name, p)
			continue
		}
		call := with(d.Call, sameLayout)
		x, ok := call.Args.Vals[i].(*tensor.Tensor)
		if !ok || !fitsIn(d.out[0], x) {
			continue
		}
		c.count()
		out, err := call.ExecuteInto(func(result int, m op.Meta) *tensor.Tensor {
			if result == 0 {
				return x
			}
			return poisoned(m, 0x5a)
		})
		if err != nil || !allAlike(c.def, out, d.out) {
			c.find("Kernels", d.Call, "kernel %q computes %s where its result lies over %s, as Over lets it, and %s elsewhere (%v)", k.Name, list(out), p, list(d.out), err)
		}
	}
}

// placed looks whether Place says of the host and of each registered device where a call
// runs, and whether it runs there, to the same results.
func (c *checker) placed(d *drawn) {
	if c.place == nil || c.found("Place") {
		return
	}
	devices := []*op.Device{nil}
	for _, name := range tensor.Devices() {
		devices = append(devices, op.DeviceNamed(name))
	}
	if len(devices) == 1 {
		c.gap("Place", `no device is registered: a test that imports _ "plumb/device/sim" has one`)
	}
	for _, device := range devices {
		at := op.Place{Device: device}
		if device != nil {
			at.Stream = device.Streams - 1
		}
		c.try(d.Call, func() { c.placedAt(d, at) })
	}
}

func (c *checker) placedAt(d *drawn, at op.Place) {
	laid := d.Args.MapValues(func(v op.Value) op.Value {
		return op.Layout(op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: v.Strides()})
	})
	to := c.place(laid, at)
	if to.Device != nil && op.DeviceNamed(to.Device.Name) != to.Device {
		c.find("Place", d.Call, "says that a call on %s runs on %s, which is no registered device", at.Device, to.Device)
		return
	}
	call, def := *d.Call, *c.def
	def.Place = c.place
	call.Def, call.Device, call.Stream = &def, at.Device, at.Stream
	out, err := call.Execute()
	for i := 0; i < len(out) && err == nil; i++ {
		if on := out[i].Device(); on != to.Device {
			c.find("Place", d.Call, "says that results of a call on %s are on %s, and result %d is on %s", at.Device, to.Device, i, on)
			return
		}
		out[i], err = out[i].To(nil)
	}
	c.count()
	switch {
	case err != nil:
		c.find("Place", d.Call, "a call on %s fails where it says: %v", at.Device, err)
	case !c.near(&call, out, d.out):
		c.find("Place", d.Call, "a call on %s gives %s where it says, and %s on the host", at.Device, list(out), list(d.out))
	}
}

func fitsIn(out, x *tensor.Tensor) bool {
	return x.DType() == out.DType() && slices.Equal(x.Shape(), out.Shape()) && slices.Equal(x.Strides(), out.Strides()) &&
		tensor.Extent(x.Shape(), x.Strides()) == x.Len() && x.Len() > 0
}

// onDevices runs the call on each registered device that has kernels of the operator, in
// every layout.
func (c *checker) onDevices(d *drawn) {
	var names []string
	for _, k := range c.def.Kernels {
		if k.Device != "" && !slices.Contains(names, k.Device) {
			names = append(names, k.Device)
		}
	}
	for _, name := range names {
		device := op.DeviceNamed(name)
		if device == nil {
			c.gap("Kernels", fmt.Sprintf("no device %q is registered, so that its kernels were not run", name))
			continue
		}
		for _, l := range append([]layout{{"in a row", sameLayout}}, layoutsOf...) {
			call := with(d.Call, l.of)
			c.try(call, func() { c.onDevice(d, call, device, l.name) })
		}
	}
}

func (c *checker) onDevice(d *drawn, call *op.Call, device *op.Device, layout string) {
	there := *call
	there.Device = device
	out, err := there.Execute()
	for i := 0; i < len(out) && err == nil; i++ {
		out[i], err = out[i].To(nil)
	}
	c.count()
	if err != nil {
		if !rejection(err) || layout == "in a row" {
			c.find("Kernels", call, "fail on %s with arguments %s: %v", device, layout, err)
		}
		return
	}
	if !c.near(call, out, d.out) {
		c.find("Kernels", call, "compute %s on %s of arguments %s, and %s on the host", list(out), device, layout, list(d.out))
	}
}
