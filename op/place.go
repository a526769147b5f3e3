package op

import (
	"fmt"
	"slices"

	"plumb/tensor"
)

// Place is where a call runs, and where its results are.
type Place struct {
	Device *Device // nil for the host
	Stream int     // of the device; 0 on the host
}

// check returns an error where there is no such place.
func (p Place) check() error {
	switch {
	case p.Device == nil && p.Stream != 0:
		return fmt.Errorf("the host has no stream %d", p.Stream)
	case p.Device != nil && (p.Stream < 0 || p.Stream >= p.Device.Streams):
		return fmt.Errorf("%s has no stream %d, but %d of them", p.Device, p.Stream, p.Device.Streams)
	}
	return nil
}

// placed runs a call where its operator says, which would otherwise run on a device, nil
// for the host.
func (c *Call) placed(d *Device) ([]*tensor.Tensor, error) {
	at := Place{d, c.Stream}
	if d == nil {
		at.Stream = 0
	}
	to := c.Def.Place(c.Args, at)
	if err := to.check(); err != nil {
		return nil, fmt.Errorf("%s: its Place is none: %w", c.Def.ID(), err)
	}
	call := *c
	call.Device, call.Stream, call.settled = to.Device, to.Stream, true
	if d != to.Device {
		if slices.ContainsFunc(c.Def.Mutates, func(p TensorArg) bool { return c.Args.Value(p) != nil }) {
			return nil, apart(d, to.Device) // a copy of it would be changed
		}
		var err error
		if call.Args, err = moved(c.Args, &tensor.Move{To: to.Device, Stream: to.Stream}); err != nil {
			return nil, err
		}
	}
	return call.Execute()
}
