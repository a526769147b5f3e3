package command

import (
	"plumb/backend"
	"plumb/internal/draw/choice"
)

// shapes says whether the cases of a test share programs.
type shapes string

const (
	fewShapes shapes = "few"
	anyShapes shapes = "any"
)

// drawn are the sources of a test's cases, whose calls take turns. Where programs
// may be shared is known once the candidates have said what they are.
func (d *drawing) drawn(name string, seed uint64, calls int, mayShare bool) func() choice.Cases {
	cases := choice.Cases{Key: choice.DeriveName(seed, name), Name: name, Turns: calls}
	return func() choice.Cases {
		c := cases
		if c.Few = mayShare && d.shapes == fewShapes; c.Few {
			d.shared.Store(true)
		}
		return c
	}
}

// settleShapes chooses for candidates where the command line does not.
func (d *drawing) settleShapes(_ backend.Info, candidates []backend.Info) {
	if d.shapes != "" {
		return
	}
	d.shapes = anyShapes
	for _, c := range candidates {
		if c.Compiles {
			d.shapes = fewShapes
		}
	}
}
