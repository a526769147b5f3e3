package shrink

import (
	"strings"

	"plumb/op"
	"plumb/program"
)

// outOfPlace makes calls that change their receiver calls that do not: what
// reads the receiver later reads the result. A leaf needs no copy then.
func (s *search) outOfPlace() bool {
	taken := false
	for i := len(s.best().Calls) - 1; i >= 0; i-- {
		c := &s.best().Calls[i]
		r, ok := receiver(c).(program.Ref)
		name, stores := strings.CutSuffix(c.Target, "_")
		if !ok || !stores || !op.InPlace(c.Target) {
			continue
		}
		taken = s.edit(func(p *program.Program) {
			p.Calls[i].Target = name
			later := program.Program{Calls: p.Calls[i+1:], Backward: p.Backward}
			rename(&later, r, program.Ref(p.Calls[i].Result))
		}) || taken
	}
	return taken
}

// inPlaceCalls counts the calls that change their receiver.
func inPlaceCalls(p *program.Program) int {
	n := 0
	for i := range p.Calls {
		if op.InPlace(p.Calls[i].Target) {
			n++
		}
	}
	return n
}
