package api

import (
	"fmt"

	"plumb/graph"
	"plumb/op"
	"plumb/tensor"
)

// Traced returns a function of tensors as graphs trace it: in the session that f is
// given, the functions of this package, and those that plumb ops gen writes for
// operators of the graph's table, record their operators.
//
//	g := graph.New(table, "step", api.Traced(func(s *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) {
//		y, err := api.Relu(x[0])
//		if err != nil {
//			return nil, err
//		}
//		return s.Gradients(y, x[:1], false)
//	}), graph.Options{})
//	out, err := g.Run(t)
//
// Gradients is how f differentiates; a tensor that f wraps is a constant. What needs
// elements ends the trace with an error, op.ErrNoElements.
func Traced(f func(s *Session, x ...*Tensor) ([]*Tensor, error)) graph.Func {
	return func(b *graph.Builder, x ...op.Value) []op.Value {
		s := NewRecording(tracer{b})
		in := make([]*Tensor, len(x))
		for i, v := range x {
			in[i] = s.Recorded(v)
		}
		out, err := f(s, in...)
		if err != nil {
			op.Fail(err)
		}
		values := make([]op.Value, len(out))
		for i, t := range out {
			switch {
			case t == nil: // which the graph refuses
			case t.s != s:
				op.Fail(op.TypeError("result %d of a traced function is a tensor of another session", i))
			default:
				values[i] = *t.r
			}
		}
		return values
	}
}

// tracer records the calls of a session in a graph.
type tracer struct{ *graph.Builder }

// Record records an operator.
func (t tracer) Record(name string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	return t.Call(name, args, kwargs)
}

// Literal is a constant.
func (t tracer) Literal(x *tensor.Tensor) op.Value { return t.Constant(x) }

// Observe ends the trace: a graph's values have no elements.
func (t tracer) Observe(v op.Value) (*tensor.Tensor, bool) {
	op.Fail(fmt.Errorf("a value of a graph that is traced, %s%v: %w", v.DType(), v.Shape(), op.ErrNoElements))
	return nil, false
}

// differentiator is a recorder that writes gradients too.
type differentiator interface {
	Grads(values, cotangents, wrt []op.Value) ([]op.Value, error)
}

// recordedGradients is Gradients of a recording.
func (s *Session) recordedGradients(y *Tensor, wrt []*Tensor) ([]*Tensor, error) {
	d, ok := s.rec.(differentiator)
	if !ok {
		return nil, errRecording
	}
	inputs := make([]op.Value, len(wrt))
	for i, x := range wrt {
		inputs[i] = *x.r
	}
	grads, err := d.Grads([]op.Value{*y.r}, []op.Value{nil}, inputs)
	if err != nil {
		return nil, err
	}
	out := make([]*Tensor, len(wrt))
	for i, g := range grads {
		if g != nil {
			out[i] = s.Recorded(g)
		}
	}
	return out, nil
}
