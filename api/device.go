package api

import (
	"plumb/op"
	"plumb/tensor"
)

// On has what the session makes from now on be on a stream of a device: results of
// functions without a tensor, what Wrap and FromSlice take, and tensors of the host
// beside those of the device. With nil, as at first, calls run where their tensors are.
//
//	err := s.On(op.DeviceNamed("sim"), 0)
func (s *Session) On(d *op.Device, stream int) error {
	switch {
	case s.rec != nil:
		return errRecordingDevice
	case d != nil && (stream < 0 || stream >= d.Streams):
		return op.ValueError("%s has no stream %d: it has %d", d, stream, d.Streams)
	}
	s.eager.On(d, stream)
	return nil
}

var errRecordingDevice = op.RuntimeError("the session records its calls: graph.Options.Device says where a graph runs")

// To returns the tensor with its elements on a device, nil for the host: itself where it
// is there. Its gradient comes back the other way.
func (t *Tensor) To(d *op.Device) (*Tensor, error) {
	if t.r != nil {
		return nil, errRecordingDevice
	}
	v, err := t.s.eager.To(t.v, d)
	if err != nil || v == t.v {
		return t, err
	}
	return &Tensor{v: v, s: t.s}, nil
}

// Device returns where the elements are; nil for the host.
func (t *Tensor) Device() *op.Device {
	if t.r != nil {
		return nil
	}
	return t.v.Device()
}

// here returns the elements on the host.
func (t *Tensor) here() (*tensor.Tensor, error) { return t.elements().To(nil) }
