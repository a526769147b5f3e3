package eager

import (
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// To returns a variable with its elements on a device, nil for the host: itself where
// they are. Its gradient comes back to where v is.
func (s *Session) To(v *Var, d *op.Device) (*Var, error) {
	t, err := v.Tensor.To(d)
	if err != nil || t == v.Tensor {
		return v, err
	}
	u := &Var{Tensor: t, requiresGrad: v.requiresGrad && !s.paused}
	if u.requiresGrad {
		call := &op.Call{Def: s.mover(v.Device()), Args: op.Args{Sig: moved, Vals: []any{v}}}
		s.record(call, []op.Value{u})
	}
	return u, nil
}

var moved = op.MustParseSig("to_device(Tensor input) -> Tensor")

// mover is the operator of a move, as far as gradients ask: the gradient moves back.
func (s *Session) mover(back *op.Device) *op.Def {
	return &op.Def{Sig: moved.String(), Grad: func(g *op.Grad) {
		g.To("input", func() op.Value {
			v, err := s.To(s.variable(g.G()), back)
			if err != nil {
				op.Fail(err)
			}
			return v
		})
	}}
}

// beside has what a composition or a gradient makes be where one of the values is, until
// the function that it returns is called.
func (s *Session) beside(values []op.Value) (restore func()) {
	was := s.device
	for _, v := range values {
		if x, ok := v.(*Var); ok && s.device == nil {
			s.device = x.Device()
		}
	}
	return func() { s.device = was }
}

// variable returns a value as a variable.
func (s *Session) variable(v op.Value) *Var {
	if x, ok := v.(*Var); ok {
		return x
	}
	return &Var{Tensor: v.(*tensor.Tensor)}
}

// Adopt returns variables of what a function outside of the table computed of a call's
// arguments: the gradient rule of the call's operator is theirs.
func (s *Session) Adopt(call *op.Call, results []*Var) []op.Value {
	record := !s.paused && slices.ContainsFunc(call.Args.AllValues(), RequiresGrad)
	out := make([]op.Value, len(results))
	for i, r := range results {
		out[i] = &Var{Tensor: r.Tensor, requiresGrad: record && r.DType().IsDifferentiable(), symbolic: s.symbolic}
	}
	if record {
		s.record(call, out)
	}
	return out
}
