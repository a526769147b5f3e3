package interp

import (
	"fmt"

	"plumb/global"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Ranks compute calls on tensors that lie on several of them.
type Ranks interface {
	// Compute takes the place of op.Call.Execute.
	Compute(call *op.Call) ([]*tensor.Tensor, error)
	// Place brings a tensor to a placement and an sbp, nil for those that it has.
	Place(t *tensor.Tensor, p *global.Placement, s global.SBP) error
	// Lies returns the placement and the sbp of a tensor.
	Lies(t *tensor.Tensor) (global.Placement, global.SBP, error)
	// Gradient brings a gradient to a placement and an sbp.
	Gradient(t *tensor.Tensor, p global.Placement, s global.SBP) error
	// Local returns what a rank holds.
	Local(t *tensor.Tensor, rank int) (*tensor.Tensor, error)
}

// where is what a call says of ranks.
type where struct {
	placement    *global.Placement
	sbp, gradSBP global.SBP
	rank         int
	itself       bool
}

// whereOf reads the keyword arguments of a call about ranks. What cannot be read is
// a rejection.
func whereOf(c *program.Call) (w where, err error) {
	for _, kw := range c.Kwargs {
		text, isText := kw.Value.(string)
		rank, isInt := kw.Value.(int64)
		itself, isBool := kw.Value.(bool)
		switch {
		case kw.Name == program.Itself && isBool:
			w.itself = itself
		case kw.Name == "rank" && isInt:
			w.rank = int(rank)
		case !isText:
			return w, fmt.Errorf("%w: %s with %s that is no text", errUnsupported, c.Target, kw.Name)
		case kw.Name == "placement":
			var p global.Placement
			p, err = global.ParsePlacement(text)
			w.placement = &p
		case kw.Name == "sbp":
			w.sbp, err = global.ParseSBP(text)
		case kw.Name == "grad_sbp":
			w.gradSBP, err = global.ParseSBP(text)
		default:
			return w, op.TypeError("%s got an unexpected keyword argument '%s'", c.Target, kw.Name)
		}
		if err != nil {
			return w, op.RuntimeError("%v", err)
		}
	}
	return w, nil
}

// toGlobal copies a tensor to where it is told; without ranks that is nowhere.
func (r *Run) toGlobal(c *program.Call) (*value, error) {
	x, err := r.placedArg(c)
	if err != nil {
		return nil, err
	}
	w, err := whereOf(c)
	if err != nil && r.ranks != nil {
		return nil, err
	}
	if w.itself && r.ranks != nil {
		if err := r.ranks.Place(x.Tensor, w.placement, w.sbp); err != nil {
			return nil, err
		}
	}
	if r.ranks == nil {
		return r.tracedTo(x, w, err)
	}
	copied, err := r.applied("Tensor.clone", x)
	if err != nil {
		return nil, err
	}
	p, s, err := r.ranks.Lies(x.Tensor)
	if err != nil {
		return nil, err
	}
	if err := r.ranks.Place(copied.Tensor, w.placement, w.sbp); err != nil {
		return nil, err
	}
	there, _, err := r.ranks.Lies(copied.Tensor)
	if err != nil {
		return nil, err
	}
	if w.gradSBP != nil {
		if err := w.gradSBP.Fits(there); err != nil {
			return nil, err
		}
	}
	copied.OnGradient(func(g op.Value) error {
		t := tensorOf(g)
		if w.gradSBP != nil {
			if err := r.ranks.Gradient(t, there, w.gradSBP); err != nil {
				return err
			}
		}
		return r.ranks.Gradient(t, p, s)
	})
	return &value{tensor: copied}, nil
}

// toLocal is the piece of a tensor that a rank holds.
func (r *Run) toLocal(c *program.Call) (*value, error) {
	x, err := r.placedArg(c)
	if err != nil {
		return nil, err
	}
	w, err := whereOf(c)
	if err != nil {
		return nil, err
	}
	if w.placement == nil || w.sbp == nil {
		return nil, op.RuntimeError("%s takes a placement and an sbp", c.Target)
	}
	start, size, err := w.sbp.Piece(*w.placement, x.Shape(), w.rank)
	if err != nil {
		return nil, err
	}
	out := x
	for axis := range size {
		if size[axis] != x.Shape()[axis] {
			if out, err = r.applied("Tensor.narrow", out, axis, start[axis], size[axis]); err != nil {
				return nil, err
			}
		}
	}
	if out, err = r.applied("Tensor.clone", out); err != nil || r.ranks == nil {
		return &value{tensor: out}, err
	}
	if err := r.ranks.Place(x.Tensor, w.placement, w.sbp); err != nil {
		return nil, err
	}
	part, err := r.ranks.Local(x.Tensor, w.rank)
	if err == nil && !part.SameBits(out.Tensor) {
		err = fmt.Errorf("rank %d holds another piece than %s says", w.rank, w.sbp)
	}
	return &value{tensor: out}, err
}

// tracedTo is toGlobal without ranks: a copy, of which a trace notes how it is to lie.
func (r *Run) tracedTo(x *eager.Var, w where, failure error) (*value, error) {
	if w.itself {
		if err := r.tracedAs(x.Tensor, w, failure); err != nil {
			return nil, err
		}
	}
	copied, err := r.applied("Tensor.clone", x)
	if err != nil {
		return nil, err
	}
	if err := r.tracedAs(copied.Tensor, w, failure); err != nil {
		return nil, err
	}
	if t, ok := r.session.(*Trace); ok && w.gradSBP != nil {
		copied.OnGradient(func(g op.Value) error {
			return r.tracedAs(tensorOf(g), where{placement: w.placement, sbp: w.gradSBP}, nil)
		})
		if t.ranks != nil {
			if err := w.gradSBP.Fits(t.place(w)); err != nil {
				return nil, err
			}
		}
	}
	return &value{tensor: copied}, nil
}

// tracedAs notes how the program wants a value of a traced graph to lie. A graph for
// ranks refuses what they could not.
func (r *Run) tracedAs(x *tensor.Tensor, w where, failure error) error {
	t, ok := r.session.(*Trace)
	if !ok {
		return nil
	}
	s := w.sbp
	if t.ranks != nil {
		if failure != nil {
			return failure
		}
		if w.placement == nil && s != nil {
			s = s.Over(*t.ranks)
		}
		if s != nil {
			if err := s.Check(t.place(w), x.Shape()); err != nil {
				return err
			}
			s = s.Over(*t.ranks)
		}
	}
	if s != nil {
		t.Lies[t.Value(x)] = s
	}
	return nil
}

// place is where a call of a graph for ranks has its result.
func (t *Trace) place(w where) global.Placement {
	if w.placement != nil {
		return *w.placement
	}
	return *t.ranks
}

// placedArg is the tensor that a call about ranks has.
func (r *Run) placedArg(c *program.Call) (*eager.Var, error) {
	if len(c.Args) == 1 {
		if ref, ok := c.Args[0].(program.Ref); ok && r.env[ref] != nil && r.env[ref].tensor != nil {
			v := r.env[ref]
			err := r.refresh(v)
			return v.tensor, err
		}
	}
	return nil, fmt.Errorf("%w: %s of something other than a tensor", errUnsupported, c.Target)
}

// applied computes an operator with one result.
func (r *Run) applied(target string, args ...any) (*eager.Var, error) {
	call, err := program.Resolve(r.table, target, args, nil)
	if err != nil {
		return nil, err
	}
	out, err := r.execute(call)
	if err != nil {
		return nil, err
	}
	return out[0].(*eager.Var), nil
}

// placeModule brings a module's parameters and buffers to where it is told.
func (r *Run) placeModule(m *value, c *program.Call) (*value, error) {
	w, err := whereOf(c)
	if r.ranks == nil {
		for _, s := range m.module.State() {
			if t := gradOf(m.module.Value(s.Name)); t != nil {
				if err := r.tracedAs(t, w, err); err != nil {
					return nil, err
				}
			}
		}
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	for _, s := range m.module.State() {
		t := gradOf(m.module.Value(s.Name))
		if t == nil {
			continue
		}
		if err := r.ranks.Place(t, w.placement, w.sbp); err != nil {
			return nil, err
		}
	}
	return m, nil
}
