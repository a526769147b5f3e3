package campaign

import (
	"errors"

	"plumb/internal/draw/choice"
	"plumb/program"
)

// Drawn returns a test whose cases follow from a key and their index alone. Its
// programs are named name. Draw takes all decisions from its source.
func Drawn(test, name string, n int, key uint64, draw func(src *choice.Source, index int, o Observer) (*program.Program, error)) Test {
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
	t := Test{Name: test, N: n}
	t.Draw = func(i int, o Observer) (*program.Program, error) {
		return from(choice.New(choice.Derive(key, uint64(i))), i, o)
	}
	t.Redraw = func(i int, record []choice.Choice, o Observer) (*program.Program, []choice.Choice, error) {
		src := choice.Replay(choice.Derive(key, uint64(i)), record)
		p, err := from(src, i, o)
		if cut := (*CutShort)(nil); errors.As(err, &cut) {
			err = nil
		}
		return p, src.Record(), err
	}
	return t
}
