package optim

import (
	"maps"

	"plumb/op"
)

// Recording says what stands for an optimizer's parts while a step of it is
// recorded rather than computed.
type Recording struct {
	// Param returns the parameter, with its gradient, in the place of p.
	Param func(p *Param) *Param
	// State returns the state of p before the step; the recording may change it.
	State func(p *Param) State
	// Rate returns the learning rate of the i-th group, a 0-d tensor.
	Rate func(i int) op.Value
}

// Recorded returns an optimizer of the same options whose Step, on a recording
// Builder, leaves o alone: what it makes of parameters and states is in its own.
func (o *Optimizer) Recorded(r Recording) *Optimizer {
	c := &Optimizer{Def: o.Def, Output: o.Output, defaults: o.defaults, state: map[*Param]State{}}
	for i, g := range o.Groups {
		h := g.clone()
		h.Params = nil
		h.Set("lr", r.Rate(i))
		for _, p := range g.Params {
			q := r.Param(p)
			h.Params = append(h.Params, q)
			c.state[q] = r.State(p)
		}
		c.Groups = append(c.Groups, h)
	}
	return c
}

// StateOf returns a copy of what the optimizer keeps about a parameter of its
// groups; before the first step, that with which it would begin. Nil for any
// other parameter.
func (o *Optimizer) StateOf(p *Param) State {
	if st := o.state[p]; st != nil {
		return maps.Clone(st)
	}
	for _, g := range o.Groups {
		for _, q := range g.Params {
			if p == q {
				return o.stateOf(g, p)
			}
		}
	}
	return nil
}

// Stepped notes a step that was computed elsewhere: the states that it left.
func (o *Optimizer) Stepped(states map[*Param]State) {
	maps.Copy(o.state, states)
	o.steps++
}
