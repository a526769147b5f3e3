package campaign

import (
	"errors"

	"plumb/internal/draw/choice"
	"plumb/program"
)

// Drawn returns a test whose cases follow from their sources alone. Its
// programs are named name. Draw takes all decisions from its source. Cases are
// asked for when the first case is drawn.
func Drawn(test, name string, n int, cases func() choice.Cases, draw func(src *choice.Source, index int, o Observer) (*program.Program, error)) Test {
	from := func(src *choice.Source, i int, o Observer) (*program.Program, error) {
		p, err := draw(src, i, o)
		if cut := (*CutShort)(nil); errors.As(err, &cut) {
			p = cut.Program
		}
		if p != nil {
			p.Name = name
		}
		return p, err
	}
	t := Test{Name: test, N: n, Sharing: func() int { return cases().Sharing() }}
	t.Draw = func(i int, o Observer) (*program.Program, error) {
		return from(cases().Source(i, nil), i, o)
	}
	t.Redraw = func(i int, record []choice.Choice, o Observer) (*program.Program, []choice.Choice, error) {
		src := cases().Source(i, record)
		p, err := from(src, i, o)
		if cut := (*CutShort)(nil); errors.As(err, &cut) {
			err = nil
		}
		return p, src.Record(), err
	}
	return t
}
