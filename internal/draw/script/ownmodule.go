package script

import (
	"slices"

	"go.starlark.net/starlark"

	"plumb/global"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
)

// flowModules is oneflow.nn.
type flowModules struct{ path }

// Attr returns a name of it; a class of modules makes some of OneFlow's alone.
func (m flowModules) Attr(name string) (starlark.Value, error) {
	v, err := m.path.Attr(name)
	if p, ok := v.(path); ok && err == nil {
		table, err := torchModules()
		if err != nil {
			return nil, err
		}
		if def := table.Lookup(string(p)); def != nil && !def.Container {
			return ownClass{p}, nil
		}
	}
	return v, err
}

// ownClass is a class of oneflow.nn. OneFlow's utilities do not know the modules that a
// test makes of it, so that no @globaltest places them: each rank has its own.
type ownClass struct{ path }

// CallInternal makes a module.
func (c ownClass) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := c.path.CallInternal(t, args, kwargs)
	if s, ok := v.(*symbol); ok && s.kind == kindModule {
		s.own = true
	}
	return v, err
}

// asPath is a class of oneflow.nn as that of torch.nn; other values as they are.
func asPath(v starlark.Value) starlark.Value {
	if c, ok := v.(ownClass); ok {
		return c.path
	}
	return v
}

// assembleOwn is assembleState of a module, and of those that it is made of, where they
// are each rank's own yet.
func (d *draw) assembleOwn(m *symbol, at *spread) error {
	if m.own && m.spread == nil {
		if err := d.assembleState(m, at.placement, at.sbp); err != nil {
			return err
		}
	}
	for _, c := range m.children {
		s, ok := c.value.(*symbol)
		if !ok {
			continue
		}
		if err := d.assembleOwn(s, at); err != nil {
			return err
		}
		if s.own {
			s.spread, s.entries = at, nil
		}
	}
	return nil
}

// assembleState makes what a module of each rank holds the pieces or summands of what the
// module holds over ranks, as assembled does of a tensor.
func (d *draw) assembleState(m *symbol, at placement, all starlark.Tuple) error {
	if at.Hierarchy == nil || len(all) != len(at.Hierarchy) || !slices.ContainsFunc(all, func(v starlark.Value) bool { return v.(sbp).Kind != 'B' }) {
		return nil
	}
	f := &follower{d: d, lies: map[op.Value]global.SBP{}}
	made, err := f.build(m.ref, nil)
	if err != nil {
		return lack("to_global of %s: what it holds is not known", m.made)
	}
	m.shapes = map[string][]int{}
	for _, slot := range made.State() {
		if made.Value(slot.Name) == nil {
			continue
		}
		held, err := d.getattr(m, slot.Name)
		if err != nil {
			return err
		}
		held.kind = kindTensor
		each, err := d.local("Tensor.detach", held)
		if err != nil {
			return err
		}
		whole, err := d.assembled(each, at, all)
		if err != nil {
			return err
		}
		if m.shapes[slot.Name], err = whole.shape(); err != nil {
			return err
		}
		if slot.Kind == nn.Param {
			if whole, err = d.local("torch.nn.Parameter", whole); err != nil {
				return err
			}
		}
		whole.spread = nil
		if err := m.SetField(slot.Name, whole); err != nil {
			return err
		}
	}
	return nil
}

// ownState reports whether a value is what a module of each rank's own holds.
func (d *draw) ownState(ref program.Ref) bool {
	s := d.symbols[ref]
	return s != nil && s.own && s.spread == nil
}
