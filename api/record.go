package api

import (
	"errors"

	"plumb/op"
	"plumb/tensor"
)

// Recorder takes the calls of a session instead of computing them. Most users
// need none: package plumb has one, for tests.
type Recorder interface {
	// Record notes a call of an operator by id or public name. The results
	// tell what is known of them without computing.
	Record(name string, args []any, kwargs []op.Kwarg) ([]op.Value, error)
	// Literal returns the value that stands for a tensor of the caller's.
	Literal(t *tensor.Tensor) op.Value
	// Observe returns what a value is once it is computed.
	Observe(v op.Value) (t *tensor.Tensor, requiresGrad bool)
}

// NewRecording returns a session whose operators are recorded. What looks at
// elements (Values, Item, Unwrap) observes them through the recorder. Backward,
// RequireGrad and NoGrad give an error, and so does Gradients but in a graph (see
// Traced): gradients are for the recorder's owner to ask for.
func NewRecording(r Recorder) *Session { return &Session{rec: r} }

var errRecording = errors.New("the session records its calls: gradients are asked for where it was made, as plumb.T.Return and plumb.RequiresGrad do")

// Recorded returns the tensor of a recorder's value.
func (s *Session) Recorded(v op.Value) *Tensor { return &Tensor{r: &v, s: s} }

// Value returns t as operators take it; of a recording, the recorder's value.
func (t *Tensor) Value() op.Value {
	if t.r != nil {
		return *t.r
	}
	return t.v
}

// elements returns t computed.
func (t *Tensor) elements() *tensor.Tensor {
	if t.r != nil {
		x, _ := t.s.rec.Observe(*t.r)
		return x
	}
	return t.v.Tensor
}

// record is run for a session that records.
func (c *call) record() ([]*Tensor, error) {
	out, err := c.s.rec.Record(c.name, c.args, c.kws)
	ts := make([]*Tensor, len(out))
	for i, v := range out {
		ts[i] = c.s.Recorded(v)
	}
	return ts, err
}

// recordedDetach is Detach of a recording. A call that is refused stays in the
// record, and t stands for its result.
func (t *Tensor) recordedDetach() *Tensor {
	out, err := t.s.rec.Record("Tensor.detach", []any{*t.r}, nil)
	if err != nil || len(out) != 1 {
		return t
	}
	return t.s.Recorded(out[0])
}
