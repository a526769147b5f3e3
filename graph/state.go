package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/internal/eager"
	"plumb/nn"
	"plumb/optim"
	"plumb/tensor"
)

// State is all that a graph keeps between two calls.
type State struct {
	// Entries are copies of the parameters and buffers of the modules, by their
	// names, and of the optimizers' parameters that are not theirs.
	Entries []nn.Entry
	// Optimizers and Schedules are in the order of AddOptimizer; a schedule is
	// nil where there is none.
	Optimizers []*optim.StateDict
	Schedules  []map[string]any
	// Steps counts the calls, Draws those of random operators in them.
	Steps, Draws int
}

// recalling is a schedule that has a state, as those of optim have.
type recalling interface {
	StateDict() map[string]any
	LoadStateDict(map[string]any) error
}

// StateDict returns what the graph keeps. The error names a schedule that has
// no state, and a name that two parameters have.
func (g *Graph) StateDict() (*State, error) {
	s := &State{Steps: g.steps, Draws: g.draws}
	named, err := g.named()
	if err != nil {
		return nil, err
	}
	for _, e := range named {
		x := plainTensor(e.value)
		t := tensor.NewStrided(x.DType(), x.Shape(), x.Strides())
		t.CopyFrom(x)
		s.Entries = append(s.Entries, nn.Entry{Name: e.name, Value: t})
	}
	for _, o := range g.optimizers {
		s.Optimizers = append(s.Optimizers, o.StateDict())
		r, err := g.recalling(o)
		if err != nil {
			return nil, err
		}
		var d map[string]any
		if r != nil {
			d = r.StateDict()
		}
		s.Schedules = append(s.Schedules, d)
	}
	return s, nil
}

// recalling returns the schedule of an optimizer; nil when it has none.
func (g *Graph) recalling(o *attachedOptimizer) (recalling, error) {
	if o.schedule == nil {
		return nil, nil
	}
	r, ok := o.schedule.(recalling)
	if !ok {
		return nil, fmt.Errorf("graph %s: the schedule %T has no state", g.Name, o.schedule)
	}
	return r, nil
}

// load sets the elements of a variable, or replaces what is none.
func (c *cell) load(t *tensor.Tensor) {
	if x, ok := c.value.(*eager.Var); ok {
		x.CopyFrom(t)
		return
	}
	own := tensor.NewStrided(t.DType(), t.Shape(), t.Strides())
	own.CopyFrom(t)
	c.set(own)
}

// named lists the names of parameters and buffers, which must differ.
func (g *Graph) named() ([]cellName, error) {
	cells, err := g.cells()
	if err != nil {
		return nil, err
	}
	var all []cellName
	taken := map[string]bool{}
	for _, c := range cells {
		for _, name := range c.names {
			if taken[name] {
				return nil, fmt.Errorf("graph %s: two parameters are named %q", g.Name, name)
			}
			taken[name] = true
			all = append(all, cellName{name, c})
		}
	}
	return all, nil
}

// cellName is one of the names of a parameter or buffer.
type cellName struct {
	name string
	*cell
}

// LoadStateDict restores what StateDict returned, in a graph of the same
// modules, optimizers and schedules. The error lists what does not fit; nothing
// is loaded then, unless an optimizer or a schedule refuses its own.
func (g *Graph) LoadStateDict(s *State) error {
	named, err := g.named()
	if err != nil {
		return err
	}
	saved := map[string]*tensor.Tensor{}
	for _, e := range s.Entries {
		saved[e.Name] = plainTensor(e.Value)
	}
	var wrong []string
	for _, e := range named {
		t, x := saved[e.name], plainTensor(e.value)
		delete(saved, e.name)
		switch {
		case t == nil:
			wrong = append(wrong, e.name+" is missing")
		case t.DType() != x.DType() || !slices.Equal(t.Shape(), x.Shape()):
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s", e.name, x, t))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		wrong = append(wrong, name+" is unexpected")
	}
	if len(s.Optimizers) != len(g.optimizers) || len(s.Schedules) != len(g.optimizers) {
		wrong = append(wrong, fmt.Sprintf("it has %d optimizers, not %d", len(s.Optimizers), len(g.optimizers)))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("graph %s: the state does not fit: %s", g.Name, strings.Join(wrong, "; "))
	}
	for _, e := range s.Entries {
		i := slices.IndexFunc(named, func(n cellName) bool { return n.name == e.Name })
		named[i].load(plainTensor(e.Value))
	}
	g.steps, g.draws = s.Steps, s.Draws
	return g.loadOptimizers(s)
}

func (g *Graph) loadOptimizers(s *State) error {
	for i, o := range g.optimizers {
		if err := o.LoadStateDict(s.Optimizers[i]); err != nil {
			return fmt.Errorf("graph %s: %w", g.Name, err)
		}
		r, err := g.recalling(o)
		switch {
		case err != nil:
			return err
		case (r == nil) != (s.Schedules[i] == nil):
			return fmt.Errorf("graph %s: the state has a schedule for optimizer %d: %t, the graph: %t", g.Name, i, s.Schedules[i] != nil, r != nil)
		case r == nil:
			continue
		}
		if err := r.LoadStateDict(s.Schedules[i]); err != nil {
			return fmt.Errorf("graph %s: %w", g.Name, err)
		}
	}
	return nil
}
