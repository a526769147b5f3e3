package opcheck_test

import (
	"plumb/device/sim"
	"plumb/op"
)

// sent is a copy on a device, whose copies have a stream of their own.
func sent() *op.Def {
	d := ramped()
	d.Sig, d.Doc = "sent(Tensor x, bool back=False) -> Tensor", "(i mod 3)·x[i] of the i-th element, on the simulated device, or back on the host."
	d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(0, 3)...), s.Bool()} }
	d.Place = func(a op.Args, _ op.Place) op.Place {
		if a.Bool("back") {
			return op.Place{}
		}
		return op.Place{Device: sim.Default.Device, Stream: sim.Streams - 1}
	}
	return d
}

// elsewhere are places that are none, or are not kept to.
var elsewhere = []mistake{
	{"a stream beyond the device's", sent, "Place", func(d *op.Def) {
		d.Place = func(op.Args, op.Place) op.Place { return op.Place{Device: sim.Default.Device, Stream: sim.Streams} }
	}},
	{"a stream of the host", sent, "Place", func(d *op.Def) {
		d.Place = func(_ op.Args, at op.Place) op.Place { return op.Place{Device: at.Device, Stream: 1} }
	}},
	{"a device that is not registered", sent, "Place", func(d *op.Def) {
		unknown := sim.New("nowhere", sim.Options{}).Device
		d.Place = func(op.Args, op.Place) op.Place { return op.Place{Device: unknown} }
	}},
	{"a place by the elements", sent, "Place", func(d *op.Def) {
		place := d.Place
		d.Place = func(a op.Args, at op.Place) op.Place {
			if x := a.Tensor("x"); x.Len() > 0 && x.Float(0) > 0 {
				return at
			}
			return place(a, at)
		}
	}},
	{"a place that differs each time", sent, "Place", func(d *op.Def) {
		times := 0
		d.Place = func(op.Args, op.Place) op.Place {
			if times++; times%2 == 0 {
				return op.Place{}
			}
			return op.Place{Device: sim.Default.Device}
		}
	}},
}
