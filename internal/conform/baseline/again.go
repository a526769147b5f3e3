package baseline

import (
	"errors"
	"fmt"
	"strings"
)

// Differs says how what was recorded again differs from the first recording;
// nil where all files have the same bits.
func (m *Manifest) Differs(again *Manifest) error {
	var unlike []string
	for i := range m.Shards {
		if i >= len(again.Shards) || m.Shards[i] != again.Shards[i] {
			unlike = append(unlike, m.Shards[i].Name)
		}
	}
	if len(unlike) == 0 && len(m.Shards) == len(again.Shards) {
		return nil
	}
	const named = 3
	text := fmt.Sprintf("%d of %d shards have other bits than were recorded: %s", len(unlike), len(m.Shards), strings.Join(unlike[:min(named, len(unlike))], " "))
	for _, side := range []struct{ what, before, now string }{
		{"the reference", m.Reference.Name + " " + m.Reference.Version, again.Reference.Name + " " + again.Reference.Version},
		{"Plumb", m.Plumb, again.Plumb},
	} {
		if side.before != side.now {
			text += fmt.Sprintf("; %s was %s, and is %s", side.what, side.before, side.now)
		}
	}
	return errors.New(text)
}
