package program

import (
	"slices"
	"strings"

	"plumb/op"
)

// MayChange reports whether call i may change a tensor that is there before
// it: by its name, by assigning an attribute, or by an inplace=True, its own or
// that of a module. A True by position counts as one where torch.nn has it.
func (p *Program) MayChange(i int) bool {
	c := &p.Calls[i]
	switch {
	case c.Target == "Module.__call__", c.Target == "Module.forward":
		return slices.ContainsFunc(p.Calls[:i], func(c Call) bool { return IsModule(c.Target) && c.inPlace() })
	case strings.HasPrefix(c.Target, "Module."):
		return c.Target != "Module.train" && c.Target != "Module.eval"
	case IsModule(c.Target):
		return false
	}
	return c.Target == "setattr" || op.InPlace(c.Target) || c.inPlace() || c.Out() != ""
}

// Out is the tensor that the keyword out gives a call's result; "" for none.
func (c *Call) Out() Ref {
	for _, kw := range c.Kwargs {
		if ref, ok := kw.Value.(Ref); ok && kw.Name == "out" {
			return ref
		}
	}
	return ""
}

// inPlace reports whether an argument inplace may be True.
func (c *Call) inPlace() bool {
	return slices.Contains(c.Kwargs, Kwarg{Name: "inplace", Value: true}) || strings.HasPrefix(c.Target, "torch.nn.") && slices.Contains(c.Args, any(true))
}

// ChangesAfter reports whether a call after call i may change a tensor.
func (p *Program) ChangesAfter(i int) bool {
	for k := i + 1; k < len(p.Calls); k++ {
		if p.MayChange(k) {
			return true
		}
	}
	return false
}

// GathersAfter reports whether a call after call i may add to its result: it is
// a gradient, or computed from one, and a backward pass follows.
func (p *Program) GathersAfter(i int) bool {
	if !slices.ContainsFunc(p.Calls[i+1:], func(c Call) bool { return c.IsBackward() }) {
		return false
	}
	for ref := Ref(p.Calls[i].Result); i >= 0; i-- {
		c := &p.Calls[i]
		if Ref(c.Result) != ref {
			continue
		}
		if c.Target == "getattr" && c.Args[1] == "grad" {
			return true
		}
		if len(c.Args) == 0 {
			return false
		}
		ref, _ = c.Args[0].(Ref)
	}
	return false
}

// AsNow returns p with one more call: a view of the tensor that ref names,
// which shows it as it is then. A result by its own name is what its call gave.
func (p *Program) AsNow(ref Ref) *Program {
	name := p.Unused("now")
	q := *p
	q.Calls = append(slices.Clip(q.Calls), Call{Result: name, Target: "operator.getitem", Args: []any{ref, Ellipsis{}}})
	return &q
}

// Unused returns a name that the program does not define: base, with underscores.
func (p *Program) Unused(base string) string {
	for p.has(base) {
		base += "_"
	}
	return base
}

func (p *Program) has(name string) bool {
	return slices.ContainsFunc(p.Inputs, func(in Input) bool { return in.Name == name }) ||
		slices.ContainsFunc(p.Calls, func(c Call) bool { return c.Result == name })
}
