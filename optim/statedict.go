package optim

import (
	"maps"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// StateDict is an optimizer's state in the layout of PyTorch's state_dict:
// parameters are numbered through all groups, and State has an entry for each
// that was ever updated.
type StateDict struct {
	State  map[int]State
	Groups []GroupState
}

// GroupState is a group's options, under PyTorch's names, and the numbers of
// its parameters ("params").
type GroupState struct {
	Options map[string]any
	Params  []int
}

// StateDict returns the optimizer's state. Its tensors are *tensor.Tensor
// where they are computed, and shared with the optimizer.
func (o *Optimizer) StateDict() *StateDict {
	d := &StateDict{State: map[int]State{}}
	number := 0
	for _, g := range o.Groups {
		gs := GroupState{Options: maps.Clone(g.options)}
		for _, p := range g.Params {
			if st := o.state[p]; st != nil {
				d.State[number] = st.plain()
			}
			gs.Params = append(gs.Params, number)
			number++
		}
		d.Groups = append(d.Groups, gs)
	}
	return d
}

// plain returns the state with variables as the tensors they are.
func (st State) plain() State {
	out := State{}
	for name, v := range st {
		if t := tensorOf(v); t != nil {
			v = t
		}
		out[name] = v
	}
	return out
}

// LoadStateDict replaces the options and the state by copies of d's. States
// other than "step" get the dtype of their parameter. The error is a
// rejection: a ValueError when the groups do not match.
func (o *Optimizer) LoadStateDict(d *StateDict) (err error) {
	defer func() { named(&err, o.Def.Name) }()
	if len(d.Groups) != len(o.Groups) {
		return op.ValueError("loaded state dict has a different number of parameter groups")
	}
	for i, g := range o.Groups {
		if len(d.Groups[i].Params) != len(g.Params) {
			return op.ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
		}
	}
	groups, state := make([]*Group, len(o.Groups)), map[*Param]State{}
	for i, g := range o.Groups {
		if groups[i], err = o.loaded(g, d.Groups[i].Options); err != nil {
			return err
		}
		for j, number := range d.Groups[i].Params {
			if st := d.State[number]; st != nil {
				state[g.Params[j]] = o.castFor(st, groups[i], g.Params[j])
			}
		}
	}
	for i, g := range o.Groups {
		*g = *groups[i]
	}
	o.state = state
	return nil
}

// loaded returns the group with the saved options; those that a newer or
// older PyTorch did not save have their defaults.
func (o *Optimizer) loaded(g *Group, saved map[string]any) (*Group, error) {
	fresh := o.defaults.clone()
	fresh.Params = g.Params
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		if err := o.Def.option(fresh, op.Kw(name, saved[name])); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// castFor returns a copy of the state in the dtype of its parameter. Begin's
// step is a tensor or an int64 by the optimizer; PyTorch's is by the version too.
func (o *Optimizer) castFor(st State, g *Group, p *Param) State {
	out := maps.Clone(st)
	for name, v := range st {
		t := tensorOf(v)
		if t == nil {
			continue
		}
		d := t.DType()
		if name != "step" && p.Value.DType().IsFloat() {
			d = p.Value.DType()
		}
		u := tensor.NewStrided(d, t.Shape(), t.Strides())
		u.CopyFrom(t)
		out[name] = u
	}
	if o.Def.Begin != nil {
		_, whole := o.Def.Begin(g, p)["step"].(int64)
		out["step"] = stepAs(out["step"], whole)
	}
	return out
}

// stepAs returns a step count as an int64 or as a 0-d float32 tensor.
func stepAs(step any, whole bool) any {
	t := tensorOf(step)
	n, isInt := step.(int64)
	switch {
	case whole && t != nil && t.Len() == 1:
		return int64(t.Float(0))
	case !whole && isInt:
		return tensor.Float64s(tensor.F32, nil, float64(n))
	}
	return step
}
