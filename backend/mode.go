package backend

import (
	"fmt"
	"slices"
	"strings"
)

// Eager is the mode that runs call by call. A backend without modes has it.
const Eager = "eager"

// Modal is a Backend that runs programs in each of its Info's Modes.
type Modal interface {
	Backend
	// In returns the same subject in another mode. It ends with the backend that
	// it was got from, needs no Close of its own, and the two do not run at the
	// same time. The error says that there is no such mode.
	In(mode string) (Backend, error)
}

// ModeError says that a subject has no such mode.
type ModeError struct {
	Backend, Mode string
	Modes         []string // that it has
}

// Error lists the modes that there are.
func (e *ModeError) Error() string {
	return fmt.Sprintf("%s has no mode %q; it has %s", e.Backend, e.Mode, strings.Join(e.Modes, ", "))
}

// Own returns the mode in which the backend runs programs.
func (i Info) Own() string {
	if i.Mode == "" {
		return Eager
	}
	return i.Mode
}

// GraphModes returns the modes in which a check of graphs judges a backend
// that runs eagerly: "graph", and those whose names begin with "graph-".
func (i Info) GraphModes() []string {
	if i.Own() != Eager {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(i.Modes), func(m string) bool { return m != "graph" && !strings.HasPrefix(m, "graph-") })
}

// Condemned returns the outcome of a subject that finds itself at fault,
// whatever it computed: a crash that names the pass.
func (o *Outcome) Condemned() *Outcome {
	if o.Blame == "" {
		return o
	}
	return &Outcome{Status: Crashed, Class: "pass", Message: o.Evidence, Blame: o.Blame, Evidence: o.Evidence}
}
