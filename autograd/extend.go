package autograd

import (
	"fmt"

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
// modules are not extended.
func Extend(p *program.Program, table *op.Table) (*Extended, error) {
	e := &extender{
		out:   &program.Program{Name: p.Name, Seed: p.Seed, RTol: p.RTol, ATol: p.ATol, Inputs: append([]program.Input(nil), p.Inputs...)},
		env:   map[program.Ref][]op.Value{},
		needs: map[op.Value]bool{},
		table: table,
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		s := in.Symbol()
		e.env[s.Ref] = []op.Value{s}
		e.needs[s] = in.RequiresGrad
	}
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
	env   map[program.Ref][]op.Value
	needs map[op.Value]bool
	tape  []Node
	table *op.Table
	keys  op.Keys
}

func (e *extender) lookup(r program.Ref) (any, error) {
	vs := e.env[r]
	if len(vs) != 1 {
		return nil, fmt.Errorf("%s is not a tensor", r)
	}
	return vs[0], nil
}

func (e *extender) call(c *program.Call) error {
	if c.Target == "operator.getitem" {
		if r, ok := c.Args[0].(program.Ref); ok && len(e.env[r]) > 1 {
			i, ok := c.Args[1].(int64)
			if !ok || i < 0 || int(i) >= len(e.env[r]) {
				return fmt.Errorf("%s has no element %v", r, c.Args[1])
			}
			e.env[program.Ref(c.Result)] = e.env[r][i : i+1]
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
	if bound.Def.Traits.Has(op.Random) {
		bound.Draw, _ = e.keys.Key(bound)
	}
	out, err := program.NewRecorder(e.out, e.table, "").Record(e.rename(*c), bound)
	if err != nil {
		return err
	}
	e.env[program.Ref(c.Result)] = out
	e.record(bound, out)
	return nil
}

// rename replaces names of the original program by those under which the
// values were recorded.
func (e *extender) rename(c program.Call) program.Call {
	recorded := func(r program.Ref) any {
		if vs := e.env[r]; len(vs) == 1 {
			return vs[0].(*program.Symbol).Ref
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
		v, err := e.lookup(w.Value)
		if err != nil {
			return nil, err
		}
		s := v.(*program.Symbol)
		if w.Auto && !e.needs[s] {
			continue
		}
		in := program.Input{Name: fmt.Sprintf("cotangent%d", i), DType: s.DType(), Shape: s.Shape(), Fill: w.Cotangent}
		if in.Fill.Dist == "" {
			in.Fill = program.Fill{Dist: program.Integer, Lo: 1, Hi: 1}
		}
		e.out.Inputs = append(e.out.Inputs, in)
		if err := cot.Seed(b, s, in.Symbol()); err != nil {
			return nil, err
		}
	}
	if err := Walk(b, e.tape, cot, func(v op.Value) bool { return e.needs[v] }); err != nil {
		return nil, err
	}
	grads := map[string]program.Ref{}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if g := cot[e.env[program.Ref(in.Name)][0]]; g != nil && in.RequiresGrad {
			grads[in.Name] = g.(*program.Symbol).Ref
		}
	}
	return grads, nil
}
