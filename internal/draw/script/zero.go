package script

import (
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"plumb/optim"
	"plumb/program"
)

// zero is how a graph shards what its optimizers keep, as enable_zero says: each rank
// has and updates its own rows of the states, from stage 3 on of the parameters too.
type zero struct {
	stage int
	least int // elements of a parameter, below which it is left
}

// enableZero is g.config.enable_zero.
func (g *graphState) enableZero(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	g.zero = nil
	if v := a.get("mode"); v != nil && !bool(v.Truth()) {
		return starlark.None, nil
	}
	z := &zero{}
	var err error
	if z.stage, err = a.within("stage", 2, 1, 3); err != nil {
		return nil, err
	}
	if z.least, err = a.within("shard_min_size", 1024, 0, 1<<30); err != nil {
		return nil, err
	}
	g.zero = z
	return starlark.None, nil
}

// within is an int between bounds that a call may leave out.
func (a arguments) within(param string, otherwise, low, high int) (int, error) {
	v := a.get(param)
	if v == nil {
		return otherwise, nil
	}
	n, err := starlark.AsInt32(v)
	if err != nil || n < low || n > high {
		return 0, a.wrong(param, "an int within its bounds")
	}
	return n, nil
}

// rows is how a parameter is sharded, its rows along the first dimension of the
// hierarchy in which all ranks have it; nil where it is not.
func (z *zero) rows(s *symbol) (*spread, error) {
	if s.spread == nil {
		return nil, nil
	}
	all, err := s.signature()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(v starlark.Value) bool { return v.(sbp).Kind == 'B' })
	shape, err := s.shape()
	if err != nil || at < 0 || len(shape) == 0 || shape[0] < s.spread.placement.Hierarchy[at] {
		return nil, err
	}
	elements := 1
	for _, n := range shape {
		elements *= n
	}
	if elements < z.least {
		return nil, nil
	}
	sharded := slices.Clone(all)
	sharded[at] = sbp{Kind: 'S'}
	return &spread{s.spread.placement, sharded}, nil
}

// bring records that a tensor is brought to lie so, itself or a copy of it.
func (at *spread) bring(d *draw, s *symbol, itself bool) (*symbol, error) {
	v, err := d.toGlobalOf(s, "to_global", nil, []starlark.Tuple{{starlark.String("placement"), at.placement}, {starlark.String("sbp"), at.sbp}}, false)
	if err != nil {
		return nil, err
	}
	out := v.(*symbol)
	if itself {
		s.placedAs(out)
	}
	return out, nil
}

// shardGradient has each rank reduce its own rows of a parameter's gradient.
func (o *optimizer) shardGradient(p *optim.Param) error {
	if o.zero == nil || p.Grad == nil {
		return nil
	}
	at, err := o.sharded[p], error(nil)
	if at == nil { // later steps of stage 3 find the parameter sharded
		at, err = o.zero.rows(o.symbols[p])
	}
	if err != nil || at == nil {
		return err
	}
	if o.zero.stage >= 3 {
		if _, err := at.bring(o.d, o.symbols[p], true); err != nil {
			return err
		}
	}
	g, err := at.bring(o.d, o.d.symbols[p.Grad.(*program.Symbol).Ref], false)
	if err == nil {
		o.sharded[p] = at
		p.Grad, err = g.metaOf()
	}
	return err
}

// shardState has each rank keep its own rows of what the optimizer keeps of a
// parameter, and the whole of the parameter again before stage 3.
func (o *optimizer) shardState(p *optim.Param, updated *symbol) (*symbol, error) {
	at := o.sharded[p]
	if o.zero == nil || at == nil {
		return updated, nil
	}
	shape, err := o.symbols[p].shape()
	if err != nil {
		return nil, err
	}
	state := o.o.StateOf(p)
	for _, name := range slices.Sorted(maps.Keys(state)) {
		v, ok := state[name].(*program.Symbol)
		if !ok || !slices.Equal(v.Shape(), shape) {
			continue
		}
		if _, err := at.bring(o.d, o.d.symbols[v.Ref], true); err != nil {
			return nil, err
		}
	}
	if o.zero.stage >= 3 {
		return updated, nil
	}
	return o.symbols[p].spread.bring(o.d, updated, false)
}
