package onekernel

import (
	"plumb/program"
)

// searched are the functions of PyTorch that take what is sorted, by the name of that argument and
// its place.
var searched = map[string]struct {
	name string
	at   int
}{
	"torch.searchsorted": {"sorted_sequence", 0},
	"torch.bucketize":    {"boundaries", 1},
}

// sorts has the arguments that the reference searches in drawn in order from now on, and reports
// whether any was not: what it finds in others is nobody's (PyTorch's documentation of searchsorted).
func (s *Session) sorts(c *Case) (again bool) {
	if s.traced == nil || s.maker.form != nil {
		return false
	}
	r := s.traced.recorded(c.program)
	if r == nil {
		return false
	}
	for i := range r.program.Calls {
		call := &r.program.Calls[i]
		of, ok := searched[call.Target]
		if !ok {
			continue
		}
		var v any
		if of.at < len(call.Args) {
			v = call.Args[of.at]
		}
		for _, given := range call.Kwargs {
			if given.Name == of.name {
				v = given.Value
			}
		}
		for k := range r.program.Inputs {
			if v == any(program.Ref(r.program.Inputs[k].Name)) && c.sig.Inputs[k].Pattern == "" {
				c.sig.Inputs[k].Pattern, again = Ascending, true
			}
		}
	}
	return again
}
