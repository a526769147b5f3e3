package program

import "slices"

// Clone returns a program whose parts can be changed without changing p's. The
// elements of literal inputs are shared.
func (p *Program) Clone() *Program {
	q := *p
	q.Inputs = slices.Clone(p.Inputs)
	for i := range q.Inputs {
		q.Inputs[i].Shape = slices.Clone(q.Inputs[i].Shape)
		q.Inputs[i].Strides = slices.Clone(q.Inputs[i].Strides)
	}
	q.Calls = slices.Clone(p.Calls)
	for i := range q.Calls {
		c := &q.Calls[i]
		c.Args = cloneAll(c.Args)
		c.Kwargs = slices.Clone(c.Kwargs)
		for k := range c.Kwargs {
			c.Kwargs[k].Value = cloneArg(c.Kwargs[k].Value)
		}
	}
	q.Backward = slices.Clone(p.Backward)
	return &q
}

func cloneAll(vs []any) []any {
	out := slices.Clone(vs)
	for i := range out {
		out[i] = cloneArg(out[i])
	}
	return out
}

func cloneArg(v any) any {
	switch v := v.(type) {
	case List:
		return List(cloneAll(v))
	case Tuple:
		return Tuple(cloneAll(v))
	case Slice:
		return Slice{cloneArg(v.Start), cloneArg(v.Stop), cloneArg(v.Step)}
	}
	return v
}
