package program

import (
	"slices"
	"strings"
)

// scopeTargets are the context managers that calls may stand in.
var scopeTargets = []string{
	"torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.autograd.no_grad", "torch.autograd.enable_grad",
	"torch.autocast", "torch.cpu.amp.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast",
}

// IsScope reports whether a call of the target makes a context that calls of a
// program may stand in.
func IsScope(target string) bool { return slices.Contains(scopeTargets, target) }

// String returns the header of the with statement.
func (s *Scope) String() string {
	c := Call{Target: s.Target, Args: s.Args, Kwargs: s.Kwargs}
	return "with " + c.Expr() + ":"
}

// Grad says whether the scopes around the call let it record for gradients.
func (c *Call) Grad() bool {
	on := true
	for _, s := range c.Scopes {
		switch s.Target[strings.LastIndexByte(s.Target, '.')+1:] {
		case "no_grad":
			on = false
		case "enable_grad":
			on = true
		case "set_grad_enabled":
			on = len(s.Args) == 0 || s.Args[0] == true
			for _, kw := range s.Kwargs {
				on = on && kw.Value == true
			}
		}
	}
	return on
}

// Differentiates reports whether a call of the program computes gradients that
// stay with their tensors, or the program's end does.
func (p *Program) Differentiates() bool {
	return len(p.Backward) > 0 || slices.ContainsFunc(p.Calls, func(c Call) bool { return c.IsBackward() })
}

// IsBackward reports whether the call computes gradients that stay with their
// tensors.
func (c *Call) IsBackward() bool {
	return c.Target == "Tensor.backward" || c.Target == "torch.autograd.backward"
}

// MakesLeaves reports whether a call may make a tensor require a gradient that
// is no input: its gradient is an outcome too.
func (p *Program) MakesLeaves() bool {
	return slices.ContainsFunc(p.Calls, func(c Call) bool { return c.MakesLeaf() })
}

// MakesLeaf reports whether the call may make a tensor require a gradient.
func (c *Call) MakesLeaf() bool {
	switch c.Target {
	case "torch.nn.Parameter", "torch.nn.parameter.Parameter", "Tensor.requires_grad_":
		return true
	case "setattr":
		return len(c.Args) > 1 && c.Args[1] == "requires_grad"
	}
	return slices.Contains(c.Kwargs, Kwarg{"requires_grad", true})
}

// writeCalls prints the calls, in blocks of their scopes.
func (p *Program) writeCalls(b *strings.Builder) {
	var open []*Scope
	for i := range p.Calls {
		c := &p.Calls[i]
		same := 0
		for same < len(open) && same < len(c.Scopes) && open[same] == c.Scopes[same] {
			same++
		}
		for open = open[:same]; len(open) < len(c.Scopes); {
			s := c.Scopes[len(open)]
			b.WriteString(strings.Repeat("    ", len(open)) + s.String() + "\n")
			open = append(open, s)
		}
		b.WriteString(strings.Repeat("    ", len(open)) + c.String() + "\n")
	}
}

// openScope is a with statement whose block is being read.
type openScope struct {
	scope  *Scope
	indent int
}

// leave closes the blocks that a line with this indentation is not part of.
func (r *reader) leave(indent int) {
	for n := len(r.open); n > 0 && r.open[n-1].indent >= indent; n = len(r.open) {
		r.open = r.open[:n-1]
	}
}

// with reads "with CONTEXT:".
func (r *reader) with(indent int) {
	r.at++
	n := r.expr()
	if n.op != "call" || n.recv != nil || !IsScope(n.name) {
		r.fail(n.col, "with needs one of %s", strings.Join(scopeTargets, ", "))
	}
	c := r.call(n)
	r.expect(":")
	if t := r.peek(); t.kind != tEnd {
		r.fail(t.col, "unexpected %q", t.text)
	}
	r.open = append(r.open, openScope{&Scope{c.Target, c.Args, c.Kwargs}, indent})
}

func (r *reader) scopes() []*Scope {
	var out []*Scope
	for _, o := range r.open {
		out = append(out, o.scope)
	}
	return out
}
