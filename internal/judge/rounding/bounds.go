package rounding

import (
	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// boundsBy puts what it returns for the tensors of an outcome in their places.
type boundsBy func(t *tensor.Tensor) *compare.Bound

func (bound boundsBy) value(v backend.Value) compare.ValueBound {
	if v.Tensor != nil {
		return compare.ValueBound{Bound: bound(v.Tensor)}
	}
	var b compare.ValueBound
	for _, item := range v.Tuple {
		b.Tuple = append(b.Tuple, bound.value(item))
	}
	return b
}

func (bound boundsBy) of(p *program.Program, out *backend.Outcome) *compare.Bounds {
	b := &compare.Bounds{Values: make([]compare.ValueBound, len(p.Calls)), Slots: map[backend.Place]*compare.Bound{}}
	for i, v := range out.Values {
		b.Values[i] = bound.value(v)
	}
	if out.Status == backend.OK {
		for _, s := range out.Slots {
			if s.Part.IsGradient() {
				b.Slots[s.Place] = bound(s.Tensor)
			}
		}
	}
	return b
}

func (s *errorSession) collect(p *program.Program, out *backend.Outcome) *compare.Bounds {
	b := boundsBy(s.bound).of(p, out)
	for _, v := range out.Values {
		b.Poles = b.Poles || out.Status == backend.OK && s.poles[v.Tensor]
	}
	return b
}
