package verdict

import (
	"slices"

	"plumb/program"
)

// singleCall returns a program of call i only, behind those that make the module
// that it calls, which reads the values that the reference has; the whole program
// where it has no other call, where the call reads what is no tensor, or where
// what is at fault is a graph, not a call.
func (j *judge) singleCall(i int) *program.Program {
	if j.wholeProgram || len(j.p.Calls) < 2 || i >= len(j.p.Calls) {
		return j.p
	}
	p, c, ok := *j.p, j.p.Calls[i], true
	p.Inputs, p.Calls = nil, nil
	own := func(r program.Ref) any {
		t := values(j.p, j.ref)(r)
		if t == nil {
			if made := j.construction(r, nil); made != nil {
				p.Calls = made
				return r
			}
			ok = false
			return r
		}
		if !slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(r) }) {
			in := literal(string(r), t)
			in.RequiresGrad = j.differentiable(r)
			p.Inputs = append(p.Inputs, in)
		}
		return r
	}
	for _, a := range c.Args {
		program.MapRefs(a, own)
	}
	for _, kw := range c.Kwargs {
		program.MapRefs(kw.Value, own)
	}
	if !ok {
		return j.p
	}
	p.Calls = append(p.Calls, c)
	p.Backward = nil
	if len(j.p.Backward) > 0 {
		p.Backward = []program.Backward{{Value: program.Ref(c.Result), Auto: true}}
	}
	return &p
}

// construction adds the calls that make a module to others; nil where a name is none.
func (j *judge) construction(module program.Ref, calls []program.Call) []program.Call {
	i := slices.IndexFunc(j.p.Calls, func(c program.Call) bool { return c.Result == string(module) && program.IsModule(c.Target) })
	if i < 0 {
		return calls
	}
	j.p.Calls[i].EachRef(func(r program.Ref) { calls = j.construction(r, calls) })
	return append(calls, j.p.Calls[i])
}

// differentiable reports whether the reference differentiates a value.
func (j *judge) differentiable(r program.Ref) bool {
	for _, in := range j.p.Inputs {
		if in.Name == string(r) {
			return in.RequiresGrad
		}
	}
	for i, c := range j.p.Calls {
		if c.Result == string(r) && i < len(j.ref.Values) {
			return j.ref.Values[i].RequiresGrad
		}
	}
	return false
}

// behind returns the results that follow from a name; all results for the empty
// name, and for one that no call reads.
func (j *judge) behind(name string) map[string]bool {
	reached, found := map[string]bool{name: true}, false
	for _, c := range j.p.Calls {
		c.EachRef(func(r program.Ref) {
			if reached[string(r)] {
				reached[c.Result], found = true, true
			}
		})
	}
	if found {
		return reached
	}
	for _, c := range j.p.Calls {
		reached[c.Result] = true
	}
	return reached
}
