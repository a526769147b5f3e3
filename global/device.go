package global

import (
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// device returns where the rank at a position has its parts, and the stream on which it
// works: the device that is registered by the placement's name; nil for the host.
func (p Placement) device(position int) (d *op.Device, stream int) {
	if d = op.DeviceNamed(p.Device); d != nil {
		stream = position % d.Streams
	}
	return d, stream
}

// there returns the tensor with its parts where its placement has them.
func (t *Tensor) there() (*Tensor, error) {
	return t.moved(t.placement.device)
}

// here returns the tensor with its parts on the host, by which ranks hand them on.
func (t *Tensor) here() (*Tensor, error) {
	return t.moved(func(int) (*op.Device, int) { return nil, 0 })
}

// moved returns the tensor with each part where it is told; itself where all are there.
func (t *Tensor) moved(to func(position int) (*op.Device, int)) (*Tensor, error) {
	if !slices.ContainsFunc(t.parts, func(part *tensor.Tensor) bool { d, _ := to(0); return part.Device() != d }) {
		return t, nil
	}
	u := *t
	u.parts = make([]*tensor.Tensor, len(t.parts))
	for i, part := range t.parts {
		d, stream := to(i)
		var err error
		if u.parts[i], err = (&tensor.Move{To: d, Stream: stream}).Tensor(part); err != nil {
			return nil, err
		}
	}
	return &u, nil
}

// infinite reports whether an element of a part is not finite.
func (t *Tensor) infinite() bool {
	h, err := t.here()
	return err != nil || slices.ContainsFunc(h.parts, (*tensor.Tensor).HasNonFinite)
}
