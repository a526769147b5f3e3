package script

import (
	"reflect"
	"slices"

	"plumb/program"
)

// mirror is a call on what one side has, x.oneflow or x.pytorch, whose twin on
// the other side is still to come: both sides are one program.
type mirror struct {
	side string
	call program.Call
	out  *symbol
}

// on is the value as one side has it; modules have no sides.
func (s *symbol) on(side string) *symbol {
	if s.kind == kindModule || s.side == side {
		return s
	}
	one := *s
	one.side = side
	if s.input != nil {
		s.d.sided = append(s.d.sided, &one)
	}
	return &one
}

// mirrored returns what a call gave when the test made it on the other side;
// nil where it did not. Each call has one twin.
func (d *draw) mirrored(side string, c program.Call) *symbol {
	if side == "" {
		return nil
	}
	c.Scopes = d.current()
	i := slices.IndexFunc(d.mirrors, func(m mirror) bool { return m.side != side && reflect.DeepEqual(m.call, c) })
	if i < 0 {
		return nil
	}
	out := d.mirrors[i].out.on(side)
	d.mirrors = slices.Delete(d.mirrors, i, i+1)
	return out
}

// mirror remembers a call for its twin, and returns its result as the side has it.
func (d *draw) mirror(side string, c program.Call, out *symbol) *symbol {
	if side == "" {
		return out
	}
	c.Scopes = d.current()
	d.mirrors = append(d.mirrors, mirror{side, c, out})
	return out.on(side)
}

// copies reports whether a value is that of a name, moved to other ranks or another
// device, which one side may be without the other.
func (s *symbol) copies(ref program.Ref) bool {
	for s != nil && s.ref != ref {
		c := s.d.callOf(s.ref)
		if c == nil || c.Target != program.ToGlobal && c.Target != "Tensor.clone" && c.Target != "Tensor.to" && c.Target != "Tensor.cpu" {
			return false
		}
		from, _ := c.Args[0].(program.Ref)
		s = s.d.symbols[from]
	}
	return s != nil
}

// standsFor reports whether a side may have the value in the place of what both have:
// one that was moved, or made anew of equal elements.
func (s *symbol) standsFor(both *symbol) (bool, error) {
	if s.copies(both.ref) || s.kind != kindTensor || both.kind != kindTensor {
		return s.copies(both.ref), nil
	}
	return sameArrays(s.d.thread, s, both, true)
}
