package script

import (
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"plumb/global"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
)

// follower follows how values lie through the calls that make them: each by the
// signature that costs least to reach from how its arguments lie. It looks at
// layouts alone.
type follower struct {
	d       *draw
	runtime global.Runtime
	lies    map[op.Value]global.SBP // values that are not here are whole on each rank
}

// follows is how a result lies that a call gave.
func (s *symbol) follows() (starlark.Tuple, error) {
	c, path, err := s.origin()
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, lack("the sbp of %s is not said", s.ref)
	}
	if ref, ok := firstRef(c); ok && s.d.keeps(c) && s.d.symbols[ref].spread != nil {
		return s.d.symbols[ref].signature()
	}
	unknown := lack("the sbp of %s follows from %s; to_global says one", s.ref, c.Target)
	f, err := s.d.follower(s.spread.placement)
	if err != nil {
		return nil, err
	}
	out, paired, err := f.call(c)
	if err != nil {
		return nil, unknown
	}
	at := 0
	switch {
	case len(path) == 1:
		at = path[0]
	case len(path) == 2 && paired && path[0] == 1:
		at = 1 + path[1]
	case len(path) > 0:
		return nil, unknown
	}
	if at < 0 || at >= len(out) || out[at] == nil {
		return nil, unknown
	}
	return sbpOf(f.lies[out[at]]), nil
}

// firstRef is the first argument of a call, if it is a value.
func firstRef(c *program.Call) (program.Ref, bool) {
	if len(c.Args) == 0 {
		return "", false
	}
	ref, ok := c.Args[0].(program.Ref)
	return ref, ok
}

// origin is the call that a value came from, and by which indices of its tuples.
func (s *symbol) origin() (c *program.Call, path []int, err error) {
	for c = s.d.callOf(s.ref); c != nil && c.Target == "operator.getitem"; c = s.d.callOf(s.ref) {
		i, isInt := c.Args[1].(int64)
		ref, _ := c.Args[0].(program.Ref)
		of := s.d.symbols[ref]
		if !isInt || of == nil {
			return c, path, nil
		}
		kind, err := of.known()
		if err != nil {
			return nil, nil, err
		}
		if kind != kindTuple || s.d.callOf(ref) == nil {
			return c, path, nil
		}
		path, s = append([]int{int(i)}, path...), of
	}
	return c, path, nil
}

func (d *draw) follower(at placement) (*follower, error) {
	p, err := global.ParsePlacement(at.Device + at.Nested())
	return &follower{d: d, runtime: global.Runtime{Placement: p}, lies: map[op.Value]global.SBP{}}, err
}

// errUnfollowed says that how a value lies is not known.
var errUnfollowed = lack("how a value lies is not known")

// layout is a value of the program without its elements.
func (f *follower) layout(ref program.Ref) (any, error) {
	s := f.d.symbols[ref]
	if s == nil || s.spread == nil {
		return nil, errUnfollowed
	}
	signature, err := s.signature()
	if err != nil {
		return nil, err
	}
	t, err := s.tensor()
	if err != nil || t == nil {
		return nil, errUnfollowed
	}
	v := op.Layout(op.Meta{DType: t.DType(), Shape: t.Shape(), Strides: t.Strides()})
	f.lies[v], err = f.d.programSBP(signature)
	return v, err
}

// call follows a call of the program; paired says that its results after the first
// are a tuple of their own.
func (f *follower) call(c *program.Call) (out []op.Value, paired bool, err error) {
	if c.Target == "Module.__call__" || c.Target == "Module.forward" {
		return f.module(c)
	}
	args, kwargs, err := c.OpArgs(f.layout)
	if err != nil {
		return nil, false, err
	}
	call, err := program.Resolve(ops.Table(), c.Target, args, kwargs)
	if err != nil {
		return nil, false, err
	}
	out, err = f.execute(call)
	return out, false, err
}

// Apply follows an operator within a module.
func (f *follower) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := ops.Table().ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return f.execute(call)
}

func (f *follower) execute(call *op.Call) ([]op.Value, error) {
	metas, err := call.Infer()
	if err != nil {
		return nil, err
	}
	way, err := f.runtime.Follows(call, f.of)
	if err != nil {
		return nil, err
	}
	out := make([]op.Value, len(metas))
	for i, m := range metas {
		out[i] = op.Layout(m)
		f.lies[out[i]] = way.Results[i]
		if given := call.Args.AllValues(); call.Def.Traits.Has(op.Random) && len(given) > 0 && slices.Equal(given[0].Shape(), m.Shape) {
			f.lies[out[i]] = f.of(given[0]) // OneFlow draws for the elements that a rank has
		}
	}
	return out, nil
}

func (f *follower) of(v op.Value) global.SBP {
	if s := f.lies[v]; s != nil {
		return s
	}
	return global.Broadcast(len(f.runtime.Placement.Hierarchy))
}

// module follows a call of one of torch.nn's modules.
func (f *follower) module(c *program.Call) ([]op.Value, bool, error) {
	ref, _ := c.Args[0].(program.Ref)
	m, err := f.build(ref, nil)
	if err != nil {
		return nil, false, err
	}
	rest := program.Call{Args: c.Args[1:], Kwargs: c.Kwargs}
	args, kwargs, err := rest.OpArgs(f.layout)
	if err != nil {
		return nil, false, err
	}
	out, err := m.Call(op.Builder{Applier: f}, args, kwargs)
	return out, m.Def.Paired, err
}

// torchModules are those of torch.nn.
var torchModules = sync.OnceValues(func() (*nn.Table, error) { return nn.NewTable(nn.All()...) })

// build makes a module whose state has no elements. It lies as the program says, or as
// what holds the module does.
func (f *follower) build(ref program.Ref, holder *spread) (*nn.Module, error) {
	table, err := torchModules()
	if err != nil {
		return nil, err
	}
	made, s := f.d.callOf(ref), f.d.symbols[ref]
	if made == nil || table.Lookup(made.Target) == nil {
		return nil, errUnfollowed
	}
	if s.spread != nil {
		holder = s.spread
	}
	args, kwargs, err := made.OpArgs(func(ref program.Ref) (any, error) {
		if f.d.symbols[ref].kind == kindModule {
			return f.build(ref, holder)
		}
		return f.layout(ref)
	})
	if err != nil {
		return nil, err
	}
	m, err := table.Lookup(made.Target).New(args, kwargs)
	if err != nil {
		return nil, err
	}
	if s.mode != nil {
		m.Train(bool(s.mode.Truth()))
	}
	if m.Def.Container { // whose modules have their state
		return m, nil
	}
	for _, slot := range m.State() {
		shape := slot.Shape
		if s.shapes[slot.Name] != nil {
			shape = s.shapes[slot.Name]
		}
		v := op.Layout(op.Meta{DType: slot.DType, Shape: shape})
		if f.lies[v], err = f.slot(ref, slot.Name, holder); err == nil {
			err = m.Assign(slot.Name, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// slot is how an entry of a module's state lies.
func (f *follower) slot(module program.Ref, name string, holder *spread) (global.SBP, error) {
	at := f.d.slotSpread(module, name, holder)
	if at == nil || at.sbp == nil {
		return global.Broadcast(len(f.runtime.Placement.Hierarchy)), nil
	}
	return f.d.programSBP(at.sbp)
}

// slotSpread is how an entry of a module's state lies: as what was assigned to it since
// the module was placed, else as the module does.
func (d *draw) slotSpread(module program.Ref, name string, otherwise *spread) *spread {
	for _, c := range slices.Backward(d.prog.Calls) {
		if c.Target == program.ModuleToGlobal && c.Args[0] == any(module) {
			break
		}
		if c.Target == program.ToGlobal && slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool { return kw.Name == program.Itself }) && d.isEntry(c.Args[0], module, name) {
			return d.symbols[program.Ref(c.Result)].spread
		}
		if c.Target != "setattr" || c.Args[0] != any(module) || c.Args[1] != any(name) {
			continue
		}
		if ref, ok := c.Args[2].(program.Ref); ok && d.symbols[ref].spread != nil {
			return d.symbols[ref].spread
		}
		break
	}
	return otherwise
}

// isEntry reports whether a value is what a module has by a name.
func (d *draw) isEntry(v any, module program.Ref, name string) bool {
	ref, _ := v.(program.Ref)
	c := d.callOf(ref)
	return c != nil && len(c.Args) == 2 && c.Args[0] == any(module) && c.Args[1] == any(name) && d.keeps(c)
}

// programSBP is an sbp of the test file as programs have it.
func (d *draw) programSBP(all starlark.Tuple) (global.SBP, error) {
	text, err := d.sbpText(all)
	if err != nil {
		return nil, err
	}
	return global.ParseSBP(text)
}

// sbpOf is x.sbp of a tensor that lies so.
func sbpOf(all global.SBP) starlark.Tuple {
	var out starlark.Tuple
	for _, e := range all {
		switch axis, split := e.Axis(); {
		case split:
			out = append(out, sbp{Kind: 'S', Axis: axis})
		case e == op.P:
			out = append(out, sbp{Kind: 'P'})
		default:
			out = append(out, sbp{Kind: 'B'})
		}
	}
	return out
}
