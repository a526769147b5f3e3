package autograd

import (
	"fmt"
	"slices"

	"plumb/internal/inplace"
	"plumb/op"
	"plumb/program"
)

// Extended is a program that computes its own gradients.
type Extended struct {
	Program *program.Program
	// Grads names the gradient of each input that requires one.
	Grads map[string]program.Ref
}

// Extend returns p with its Backward entries written out as calls. The
// cotangents become inputs. The program must use operators of the table only;
// modules are not extended. In-place calls are written in pure operators.
func Extend(p *program.Program, table *op.Table) (*Extended, error) {
	e := &extender{
		out:   &program.Program{Name: p.Name, Seed: p.Seed, RTol: p.RTol, ATol: p.ATol, Inputs: append([]program.Input(nil), p.Inputs...)},
		env:   map[program.Ref]named{},
		needs: map[op.Value]bool{},
		table: table,
	}
	e.space = inplace.New(table, host{&parts{e, program.NewRecorder(e.out, table, "p")}})
	for i := range p.Inputs {
		in := &p.Inputs[i]
		s := in.Symbol()
		e.env[s.Ref] = named{values: []op.Value{s}}
		e.needs[s] = in.RequiresGrad
		e.leaves = append(e.leaves, s)
		e.space.Leaf(s)
	}
	e.changes = slices.ContainsFunc(p.Calls, func(c program.Call) bool { return changes(c, table) })
	for i := range p.Calls {
		if err := e.call(&p.Calls[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Calls[i].Result, err)
		}
	}
	grads, err := e.backward(p)
	if err != nil {
		return nil, err
	}
	return &Extended{e.out, grads}, nil
}

type extender struct {
	out   *program.Program
	env   map[program.Ref]named
	needs map[op.Value]bool
	tape  []Node
	table *op.Table
	keys  op.Keys
	// space is used only where changes says that a call is in place.
	space   *inplace.Space
	changes bool
	leaves  []op.Value
}

// named is what a name stands for: a tensor, or a tuple of them.
type named struct {
	values []op.Value
	tuple  bool
}

func (e *extender) lookup(r program.Ref) (any, error) {
	if err := e.refresh(r); err != nil {
		return nil, err
	}
	v := e.env[r]
	switch {
	case v.tuple:
		return anys(v.values), nil
	case len(v.values) != 1:
		return nil, fmt.Errorf("%s is not a tensor", r)
	}
	return v.values[0], nil
}

func (e *extender) call(c *program.Call) error {
	if c.Target == "operator.getitem" {
		if r, ok := c.Args[0].(program.Ref); ok && e.env[r].tuple {
			i, ok := c.Args[1].(int64)
			vs := e.env[r].values
			if !ok || i < 0 || int(i) >= len(vs) {
				return fmt.Errorf("%s has no element %v", r, c.Args[1])
			}
			e.env[program.Ref(c.Result)] = named{values: vs[i : i+1]}
			return nil
		}
	}
	args, kwargs, err := c.OpArgs(e.lookup)
	if err != nil {
		return err
	}
	bound, err := program.Resolve(e.table, c.Target, args, kwargs)
	if err != nil {
		return err
	}
	var out []op.Value
	if e.changes {
		out, err = e.space.Execute(bound)
	} else {
		out, err = e.apply(c, bound)
	}
	sig := bound.Def.Sigs()[0]
	e.env[program.Ref(c.Result)] = named{out, sig.Many || len(sig.Results) > 1}
	return err
}

// apply records a call; a composition as its parts.
func (e *extender) apply(c *program.Call, bound *op.Call) ([]op.Value, error) {
	if bound.Def.Compose != nil {
		return bound.Parts(op.Builder{Applier: &parts{e, program.NewRecorder(e.out, e.table, c.Result+"_part")}})
	}
	e.draw(bound)
	out, err := program.NewRecorder(e.out, e.table, "").Record(e.rename(*c), bound)
	if err == nil {
		e.record(bound, out)
	}
	return out, err
}

// draw numbers a random call, so that its gradient can repeat it.
func (e *extender) draw(bound *op.Call) {
	if bound.Def.Traits.Has(op.Random) {
		bound.Draw, _ = e.keys.Key(bound)
	}
}

// parts records the parts of a composition, in the program and on the tape.
type parts struct {
	*extender
	recorder *program.Recorder
}

// Apply records a part by id.
func (p *parts) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	bound, err := p.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	if bound.Def.Compose != nil {
		return bound.Parts(op.Builder{Applier: p})
	}
	p.draw(bound)
	out, err := p.recorder.Apply(id, args, kwargs)
	if err == nil {
		p.record(bound, out)
	}
	return out, err
}

func anys(vs []op.Value) []any {
	out := make([]any, len(vs))
	for i, v := range vs {
		out[i] = v
	}
	return out
}

// rename replaces names of the original program by those under which the
// values were recorded.
func (e *extender) rename(c program.Call) program.Call {
	recorded := func(r program.Ref) any {
		v := e.env[r]
		switch {
		case v.tuple:
			list := make(program.List, len(v.values))
			for i, s := range v.values {
				list[i] = s.(*program.Symbol).Ref
			}
			return list
		case len(v.values) == 1:
			return v.values[0].(*program.Symbol).Ref
		}
		return r
	}
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = program.MapRefs(a, recorded)
	}
	kwargs := make([]program.Kwarg, len(c.Kwargs))
	for i, kw := range c.Kwargs {
		kwargs[i] = program.Kwarg{Name: kw.Name, Value: program.MapRefs(kw.Value, recorded)}
	}
	c.Args, c.Kwargs = args, kwargs
	return c
}

func (e *extender) record(call *op.Call, out []op.Value) {
	needed := false
	for _, v := range call.Args.AllValues() {
		needed = needed || e.needs[v]
	}
	if !needed || call.Def.Traits.Has(op.NoGrad) {
		return
	}
	for _, v := range out {
		e.needs[v] = v.DType().IsDifferentiable()
	}
	e.tape = append(e.tape, Node{call, out})
}

func (e *extender) backward(p *program.Program) (map[string]program.Ref, error) {
	b := op.Builder{Applier: program.NewRecorder(e.out, e.table, "g")}
	cot := Cotangents{}
	for i, w := range p.Backward {
		if err := e.refresh(w.Value); err != nil {
			return nil, err
		}
		if len(e.env[w.Value].values) == 0 {
			return nil, fmt.Errorf("%s is not a tensor", w.Value)
		}
		for j, v := range e.env[w.Value].values {
			if w.Auto && !e.needs[v] {
				continue
			}
			if err := cot.Seed(b, v, e.cotangent(fmt.Sprintf("cotangent%d_%d", i, j), v, w.Cotangent)); err != nil {
				return nil, err
			}
		}
	}
	if err := Walk(b, e.tape, cot, func(v op.Value) bool { return e.needs[v] }); err != nil {
		return nil, err
	}
	grads := map[string]program.Ref{}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if g := cot[e.leaves[i]]; g != nil && in.RequiresGrad {
			grads[in.Name] = g.(*program.Symbol).Ref
		}
	}
	return grads, nil
}

// cotangent adds an input of v's shape to the program.
func (e *extender) cotangent(name string, v op.Value, fill program.Fill) op.Value {
	in := program.Input{Name: name, DType: v.DType(), Shape: v.Shape(), Fill: fill}
	if in.Fill.Dist == "" {
		in.Fill = program.Fill{Dist: program.Integer, Lo: 1, Hi: 1}
	}
	e.out.Inputs = append(e.out.Inputs, in)
	return in.Symbol()
}
