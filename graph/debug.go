package graph

import (
	"fmt"
	"io"
	"time"
)

// Level says how much is told of the building of a graph, on the scale of
// OneFlow's graph.debug.
type Level int

// The levels; each tells what those before it do.
const (
	Silent    Level = iota - 1
	Stages          // the stages of building, with their times
	Modules         // calls of modules, with their inputs, outputs, parameters and buffers
	Operators       // operators, with their attributes, device and legal shardings
	Details         // attributes at their defaults, strides, and where each call is from
)

// Debug tells how graphs are built. The zero Debug tells nothing.
type Debug struct {
	Level Level
	W     io.Writer // nil for nothing
}

func (d Debug) tells(l Level) bool { return d.W != nil && d.Level >= l }

func (d Debug) logf(l Level, format string, args ...any) {
	if d.tells(l) {
		fmt.Fprintf(d.W, format, args...)
	}
}

// Debug has the graph tell on w how it is built, from the next signature that
// it compiles. The error says that there is no such level.
func (g *Graph) Debug(l Level, w io.Writer) error {
	if l < Silent || l > Details {
		return fmt.Errorf("graph %s: debug(%d): want a level from %d to %d", g.Name, l, Silent, Details)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.debug = Debug{l, w}
	return nil
}

// Compile compiles code that was traced since began, and tells how.
func (d Debug) Compile(code *Code, o Options, began time.Time) (*Compiled, error) {
	d.logf(Stages, "(GRAPH:%s) traced: %d operators, %s\n", code.Name, code.count(), since(began))
	if d.tells(Modules) {
		fmt.Fprint(d.W, code.described(d.Level))
	}
	start := time.Now()
	c, err := Compile(code, o)
	if err != nil {
		return nil, err
	}
	d.logf(Stages, "(GRAPH:%s) compiled: %d operators, %s; memory: %s\n", code.Name, c.Code.count(), since(start), c.Memory())
	d.logf(Stages, "(GRAPH:%s) built: %s in all\n", code.Name, since(began))
	return c, nil
}

func since(start time.Time) time.Duration { return time.Since(start).Round(time.Microsecond) }
