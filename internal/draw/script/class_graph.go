package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/program"
)

// graphClass are OneFlow's static graphs, classes that derive from nn.Graph. A
// call of one is its build, then the step of its optimizers: the program that
// eager and the graph modes of candidates run alike.
type graphClass struct{}

// graphState is what a graph is told of.
type graphState struct {
	optimizers []*optimizer
	schedules  []*schedule
	parts      int // micro-batches of a call
	level      int // of debug
	built      bool
	zero       *zero // of enable_zero
}

func graphOf(o *object) *graphState {
	s, ok := o.state.(*graphState)
	if !ok {
		s = &graphState{parts: 1, level: minDebug}
		o.state = s
	}
	return s
}

func (graphClass) init(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) error {
	graphOf(o)
	if len(args) > 0 {
		return fmt.Errorf("%s() takes no arguments", o.class.name)
	}
	return nil
}

// attr are the methods of every graph.
func (graphClass) attr(o *object, name string) (starlark.Value, error) {
	g := graphOf(o)
	switch name {
	case "config":
		return graphConfig{g}, nil
	case "add_optimizer":
		return declare(name, []string{"optim", "lr_sch", "is_sparse"}, g.addOptimizer), nil
	case "debug":
		return declare(name, []string{"v_level", "ranks", "max_py_stack_depth", "only_user_py_stack", "op_repr_with_py_stack"}, g.debug), nil
	case "set_grad_scaler":
		return nil, lack("set_grad_scaler is not supported in test files")
	}
	return nil, nil
}

func (g *graphState) addOptimizer(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	o, ok := a.get("optim").(*optimizer)
	if !ok {
		return nil, a.wrong("optim", "an optimizer of torch.optim")
	}
	switch s := a.get("lr_sch").(type) {
	case nil, starlark.NoneType:
	case *schedule:
		g.schedules = append(g.schedules, s)
	default:
		return nil, a.wrong("lr_sch", "a schedule of torch.optim.lr_scheduler")
	}
	g.optimizers = append(g.optimizers, o)
	return starlark.None, nil
}

// The levels of debug, which are OneFlow's.
const minDebug, maxDebug = -1, 3

// debug has the graph's first call print how the graph is built.
func (g *graphState) debug(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	if v := a.get("v_level"); v != nil {
		n, err := starlark.AsInt32(v)
		if err != nil || n < minDebug || n > maxDebug {
			return nil, a.wrong("v_level", fmt.Sprintf("a level from %d to %d", minDebug, maxDebug))
		}
		g.level = n
	}
	return starlark.None, nil
}

// graphConfig is g.config.
type graphConfig struct{ g *graphState }

func (graphConfig) String() string        { return "config" }
func (graphConfig) Type() string          { return "GraphConfig" }
func (graphConfig) Freeze()               {}
func (graphConfig) Truth() starlark.Bool  { return true }
func (graphConfig) Hash() (uint32, error) { return 0, nil }
func (graphConfig) AttrNames() []string   { return nil }

// Attr returns a setter. Most say how a graph is to be run, which changes no
// result.
func (c graphConfig) Attr(name string) (starlark.Value, error) {
	switch {
	case name == "set_gradient_accumulation_steps":
		return declare(name, []string{"value"}, func(_ *starlark.Thread, a arguments) (starlark.Value, error) {
			n, err := starlark.AsInt32(a.get("value"))
			if err != nil || n < 1 {
				return nil, a.wrong("value", "a positive int")
			}
			c.g.parts = n
			return starlark.None, nil
		}), nil
	case name == "enable_zero":
		return declare(name, []string{"mode", "stage", "shard_min_size", "shard_restore_level"}, c.g.enableZero), nil
	case name == "enable_amp":
		return declare(name, []string{"mode", "dtype"}, func(_ *starlark.Thread, a arguments) (starlark.Value, error) {
			if v := a.get("mode"); v == nil || bool(v.Truth()) {
				return nil, lack("enable_amp is not supported in test files")
			}
			return starlark.None, nil
		}), nil
	case strings.HasPrefix(name, "enable_"), strings.HasPrefix(name, "allow_"), strings.HasPrefix(name, "set_"), name == "disable_straighten_algorithm":
		return ignoredCall(name), nil
	}
	return nil, nil
}

// blockConfig is m.config of a module in a graph: on which stage of a pipeline it is,
// or what it recomputes, which changes no result.
type blockConfig struct{}

func (blockConfig) String() string        { return "config" }
func (blockConfig) Type() string          { return "BlockConfig" }
func (blockConfig) Freeze()               {}
func (blockConfig) Truth() starlark.Bool  { return true }
func (blockConfig) Hash() (uint32, error) { return 0, nil }
func (blockConfig) AttrNames() []string   { return nil }

// Attr returns set_stage.
func (blockConfig) Attr(name string) (starlark.Value, error) {
	if name == "set_stage" {
		return ignoredCall(name), nil
	}
	return nil, nil
}

// SetField takes a setting.
func (blockConfig) SetField(name string, _ starlark.Value) error {
	if name != "stage_id" && name != "activation_checkpointing" {
		return starlark.NoSuchAttrError(fmt.Sprintf("a module's config has no setting %s", name))
	}
	return nil
}

// call runs build, and the step that it asks for.
func (graphClass) call(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, o.class.name)
	if err != nil {
		return nil, err
	}
	build := o.class.lookup("build")
	if build == nil {
		return nil, fmt.Errorf("graph %s has no method build", o.class.name)
	}
	g := graphOf(o)
	return g.told(d, o, args, func() (starlark.Value, error) {
		return g.step(d, func(args starlark.Tuple) (starlark.Value, error) {
			return starlark.Call(t, o.bound(build), args, kwargs)
		}, args)
	})
}

// step runs build, and updates where that calls backward.
func (g *graphState) step(d *draw, run func(starlark.Tuple) (starlark.Value, error), args starlark.Tuple) (starlark.Value, error) {
	before := len(d.prog.Calls)
	out, err := g.build(d, run, args)
	if err != nil {
		return nil, err
	}
	trains := slices.ContainsFunc(d.prog.Calls[before:], func(c program.Call) bool { return c.IsBackward() })
	if !trains {
		return out, nil
	}
	return out, g.update()
}

// build runs the function on the whole, or on each micro-batch.
func (g *graphState) build(d *draw, run func(starlark.Tuple) (starlark.Value, error), args starlark.Tuple) (starlark.Value, error) {
	if g.parts == 1 {
		return run(args)
	}
	var outs []starlark.Value
	for k := range g.parts {
		part := make(starlark.Tuple, len(args))
		for i, a := range args {
			v, err := d.microBatch(a, k, g.parts)
			if err != nil {
				return nil, err
			}
			part[i] = v
		}
		out, err := run(part)
		if err != nil {
			return nil, err
		}
		outs = append(outs, out)
	}
	return d.joined(outs)
}

// microBatch is the k-th of n parts of a tensor along its first dimension.
func (d *draw) microBatch(v starlark.Value, k, n int) (starlark.Value, error) {
	s, ok := v.(*symbol)
	if !ok {
		return v, nil
	}
	shape, err := s.shape()
	if err != nil || len(shape) == 0 {
		return v, err
	}
	if shape[0]%n != 0 {
		return nil, fmt.Errorf("a tensor with %d samples cannot be split into %d micro-batches", shape[0], n)
	}
	size := shape[0] / n
	return d.apply("torch.narrow", s, starlark.MakeInt(0), starlark.MakeInt(k*size), starlark.MakeInt(size))
}

// joined puts the results of the micro-batches together.
func (d *draw) joined(outs []starlark.Value) (starlark.Value, error) {
	switch first := outs[0].(type) {
	case *symbol:
		shape, err := first.shape()
		if err != nil {
			return nil, err
		}
		if len(shape) == 0 {
			return d.apply("torch.stack", starlark.NewList(outs))
		}
		return d.apply("torch.cat", starlark.NewList(outs))
	case starlark.Tuple, *starlark.List:
		n := starlark.Len(first)
		all := make(starlark.Tuple, n)
		for i := range n {
			column := make([]starlark.Value, len(outs))
			for k, o := range outs {
				if starlark.Len(o) != n {
					return nil, fmt.Errorf("the results of micro-batches are not alike")
				}
				column[k] = o.(starlark.Indexable).Index(i)
			}
			v, err := d.joined(column)
			if err != nil {
				return nil, err
			}
			all[i] = v
		}
		if _, list := first.(*starlark.List); list {
			return starlark.NewList(all), nil
		}
		return all, nil
	}
	return outs[0], nil
}

// update weights the gradients of the micro-batches, steps, and forgets them.
func (g *graphState) update() error {
	for _, o := range g.optimizers {
		o.zero = g.zero
		if err := o.average(g.parts); err != nil {
			return err
		}
		err := o.step()
		o.zero = nil
		if err != nil {
			return err
		}
		if err := o.zeroGrad(); err != nil {
			return err
		}
	}
	for _, s := range g.schedules {
		if err := s.step(nil); err != nil {
			return err
		}
	}
	return nil
}

// average divides the gradients by how many micro-batches added to them.
func (o *optimizer) average(parts int) error {
	if parts == 1 {
		return nil
	}
	return o.d.within(func() error {
		for _, group := range o.o.Groups {
			for _, p := range group.Params {
				if err := o.read(p); err != nil {
					return err
				}
				if p.Grad == nil {
					continue
				}
				if _, err := o.d.apply("Tensor.div_", o.d.symbols[p.Grad.(*program.Symbol).Ref], starlark.MakeInt(parts)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
