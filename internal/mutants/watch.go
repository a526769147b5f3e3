package mutants

import (
	"plumb/nn"
	"plumb/op"
)

// Watched returns the true tables, whose every entry tells touch its operator's
// id, or its module's first public name, before it is used: what a case does
// not touch cannot change its outcome.
func Watched(touch func(name string)) (*op.Table, *nn.Table, error) {
	return Plant(func(defs map[string]*op.Def, modules map[string]*nn.Def) error {
		for id, d := range defs {
			watch(d, func() { touch(id) })
		}
		for name, d := range modules {
			watchModule(d, func() { touch(name) })
		}
		return nil
	})
}

func watch(d *op.Def, touch func()) {
	RewriteArgs(d, func(a op.Args) op.Args {
		touch()
		return a
	})
}

func watchModule(d *nn.Def, touch func()) {
	check, state, forward := d.Reject, d.State, d.Forward
	d.Reject = func(a op.Args) error {
		touch()
		if check == nil {
			return nil
		}
		return check(a)
	}
	if state != nil {
		d.State = func(a op.Args) []nn.Slot {
			touch()
			return state(a)
		}
	}
	d.Forward = func(b op.Builder, m *nn.Module, a op.Args) []op.Value {
		touch()
		return forward(b, m, a)
	}
}
