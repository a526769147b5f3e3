package graph

import (
	"slices"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/optim"
	"plumb/tensor"
)

// change says what becomes of a graph's state in a call: outputs are counted
// from the first that is not the function's.
type change struct {
	cells  []cellChange
	states [][]stateChange // by optimizer
}

// cellChange is the output that a parameter or buffer becomes.
type cellChange struct{ cell, output int }

// stateChange is what an optimizer makes of a parameter's state.
type stateChange struct {
	param   *optim.Param
	entries []stateEntry
}

// stateEntry becomes an output, grows by a number where output is −1, or is None.
type stateEntry struct {
	name   string
	output int
	grows  int64
	none   bool
}

// cellsOut makes outputs of the parameters and buffers that are others now.
func (t *tracer) cellsOut() {
	for i, c := range t.cells {
		for _, home := range c.home {
			if v := t.b.output(home()); v != t.inputs[i] {
				t.change.cells = append(t.change.cells, cellChange{i, t.emit(v)})
				break
			}
		}
	}
}

// stateOut makes outputs of what a step made of a parameter's state.
func (t *tracer) stateOut(p *optim.Param, was, is optim.State) stateChange {
	c := stateChange{param: p}
	for _, name := range sortedNames(is) {
		e := stateEntry{name: name, output: -1}
		switch v := is[name].(type) {
		case op.Value:
			e.output = t.emit(v)
		case int64:
			old, _ := was[name].(int64)
			e.grows = v - old
		default:
			e.none = true
		}
		c.entries = append(c.entries, e)
	}
	return c
}

// advance puts what a call computed into its places, and goes on with the schedules.
func (g *Graph) advance(e *entry, cells []*cell, out []*tensor.Tensor) error {
	for _, c := range e.change.cells {
		v := cells[c.cell]
		if x, ok := v.value.(*eager.Var); ok {
			x.CopyFrom(out[c.output-e.results])
			continue
		}
		v.set(out[c.output-e.results])
	}
	for k, changes := range e.change.states {
		o, states := g.optimizers[k], map[*optim.Param]optim.State{}
		for _, c := range changes {
			states[c.param] = c.after(o.StateOf(c.param), out, e.results)
		}
		o.Stepped(states)
	}
	g.steps++
	g.draws += e.draws
	for _, o := range g.optimizers {
		if o.schedule == nil {
			continue
		}
		if err := o.schedule.Step(); err != nil {
			return err
		}
	}
	return nil
}

// after returns the state after a call.
func (c *stateChange) after(was optim.State, out []*tensor.Tensor, results int) optim.State {
	is := optim.State{}
	for _, e := range c.entries {
		switch {
		case e.none:
			is[e.name] = nil
		case e.output >= 0:
			is[e.name] = out[e.output-results]
		default:
			n, _ := was[e.name].(int64)
			is[e.name] = n + e.grows
		}
	}
	return is
}

func sortedNames(st optim.State) []string {
	var names []string
	for name := range st {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// plainTensor returns the tensor of a computed value; nil for any other.
func plainTensor(v any) *tensor.Tensor {
	switch v := v.(type) {
	case *eager.Var:
		return v.Tensor
	case *tensor.Tensor:
		return v
	}
	return nil
}

// trainable reports whether a parameter asks for a gradient: variables may not.
func trainable(v op.Value) bool {
	x, ok := v.(*eager.Var)
	return !ok || x.RequiresGrad()
}
