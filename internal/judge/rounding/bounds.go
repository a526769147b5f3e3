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
	b := &compare.Bounds{Values: make([]compare.ValueBound, len(p.Calls))}
	for i, v := range out.Values {
		b.Values[i] = bound.value(v)
	}
	if out.Status == backend.OK {
		b.Grads, b.SecondGrads = bound.named(out.Grads), bound.named(out.SecondGrads)
		b.ParamGrads, b.SecondParamGrads = bound.states(out.ParamGrads), bound.states(out.SecondParamGrads)
	}
	return b
}

func (bound boundsBy) named(ts map[string]*tensor.Tensor) map[string]*compare.Bound {
	out := map[string]*compare.Bound{}
	for name, t := range ts {
		out[name] = bound(t)
	}
	return out
}

func (bound boundsBy) states(states map[string]backend.State) map[string]map[string]*compare.Bound {
	out := map[string]map[string]*compare.Bound{}
	for name, st := range states {
		out[name] = map[string]*compare.Bound{}
		for _, n := range st {
			out[name][n.Name] = bound(n.Tensor)
		}
	}
	return out
}

func (s *errorSession) collect(p *program.Program, out *backend.Outcome) *compare.Bounds {
	b := boundsBy(s.bound).of(p, out)
	for _, v := range out.Values {
		b.Poles = b.Poles || out.Status == backend.OK && s.poles[v.Tensor]
	}
	return b
}
