// Package optim holds PyTorch's optimizers and learning-rate schedules by
// their names, options and state. An optimizer's arithmetic is an operator of
// the table ("adam.update"), applied through a Builder: on an eager one a step
// computes at once, on a recording one it becomes part of the program.
package optim

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// Param is a trained tensor. A Step leaves it as it is while Grad is nil.
// When Value is an *eager.Var, a Step overwrites its elements and the variable
// stays the same, as in PyTorch; any other Value is replaced.
type Param struct {
	Name  string
	Value op.Value
	Grad  op.Value
}

// Parameters returns the parameters of a module in the order of its state.
// All of them must be loaded.
func Parameters(m *nn.Module) []*Param {
	var ps []*Param
	for _, s := range m.State() {
		if s.Kind == nn.Param {
			ps = append(ps, &Param{Name: s.Name, Value: m.Value(s.Name)})
		}
	}
	return ps
}

func (p *Param) set(v op.Value) {
	if x, ok := p.Value.(*eager.Var); ok {
		x.CopyFrom(tensorOf(v))
		return
	}
	p.Value = v
}

// tensorOf returns the tensor of a computed value; nil for any other.
func tensorOf(v any) *tensor.Tensor {
	switch v := v.(type) {
	case *eager.Var:
		return v.Tensor
	case *tensor.Tensor:
		return v
	}
	return nil
}

// State is what an optimizer keeps about one parameter, under PyTorch's names:
// op.Value, int64, or nil for None.
type State map[string]any

// Def is one kind of optimizer.
type Def struct {
	// Name is the name in torch.optim.
	Name string
	// Sig lists the options after the parameters, in schema notation.
	Sig string
	// Doc is one sentence.
	Doc string
	// Reject returns a rejection of options, each of which g has.
	Reject func(g *Group) error
	// Begin returns the first state of a parameter; nil means an empty one.
	Begin func(g *Group, p *Param) State
	// Early tells that the state is there before the first step.
	Early bool
	// Update returns the parameter's new value and changes st.
	Update func(b op.Builder, g *Group, p *Param, st State) op.Value

	sig *op.Sig
}

// Lookup returns the optimizer of a name in torch.optim, such as "Adam"; nil
// when there is none.
func Lookup(name string) *Def {
	for _, d := range All() {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// All returns the optimizers.
var All = sync.OnceValue(func() []*Def {
	for _, d := range defs {
		d.sig = op.MustParseSig(d.Sig)
	}
	return defs
})

// Optimizer updates groups of parameters. It is for one goroutine.
type Optimizer struct {
	Def    *Def
	Groups []*Group
	// Output is where verbose schedules print; nil means standard output.
	Output io.Writer

	defaults Group
	state    map[*Param]State
	steps    int // since a schedule was attached
}

// New makes an optimizer of one group. Args and kwargs are its options, as in
// PyTorch after the parameters. The error is a rejection (*op.Error).
func (d *Def) New(params []*Param, args []any, kwargs ...op.Kwarg) (*Optimizer, error) {
	return d.NewGroups([]GroupSpec{{Params: params}}, args, kwargs...)
}

// GroupSpec is a group of parameters with the options in which it differs
// from the optimizer's.
type GroupSpec struct {
	Params  []*Param
	Options []op.Kwarg
}

// NewGroups is New for several groups.
func (d *Def) NewGroups(groups []GroupSpec, args []any, kwargs ...op.Kwarg) (o *Optimizer, err error) {
	defer func() { named(&err, d.Name) }()
	if len(groups) == 0 || len(groups) == 1 && len(groups[0].Params) == 0 {
		return nil, op.ValueError("optimizer got an empty parameter list")
	}
	bound, err := d.sig.Bind(args, kwargs, false)
	if err != nil {
		return nil, err
	}
	o = &Optimizer{Def: d, state: map[*Param]State{}}
	for i, p := range d.sig.Params {
		o.defaults.Set(p.Name, bound.Vals[i])
	}
	if err := d.check(&o.defaults); err != nil {
		return nil, err
	}
	for _, g := range groups {
		if err := o.AddGroup(g); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func named(err *error, name string) {
	var e *op.Error
	if errors.As(*err, &e) && e.Op == "" {
		e.Op = name
	}
}

func (d *Def) check(g *Group) error {
	for _, name := range []string{"differentiable", "capturable", "fused"} {
		if g.Has(name) && g.Bool(name) {
			return fmt.Errorf("%s: option %s=True is %w", d.Name, name, nn.ErrUnsupported)
		}
	}
	if d.Reject == nil {
		return nil
	}
	return d.Reject(g)
}

// AddGroup adds a group of parameters. The error is a rejection.
func (o *Optimizer) AddGroup(spec GroupSpec) (err error) {
	defer func() { named(&err, o.Def.Name) }()
	g := o.defaults.clone()
	g.Params = slices.Clone(spec.Params)
	for _, kw := range spec.Options {
		if err := o.Def.option(g, kw); err != nil {
			return err
		}
	}
	if g.Has("lr") && g.Get("lr") == nil {
		return op.ValueError("parameter group didn't specify a value of required optimization parameter lr")
	}
	for i, p := range g.Params {
		if slices.Contains(g.Params[:i], p) || o.has(p) {
			return op.ValueError("some parameters appear in more than one parameter group")
		}
	}
	o.Groups = append(o.Groups, g)
	if o.Def.Early {
		for _, p := range g.Params {
			o.state[p] = o.Def.Begin(g, p)
		}
	}
	return nil
}

// option sets one option of a group, brought to its type in the signature;
// PyTorch keeps options that it does not know.
func (d *Def) option(g *Group, kw op.Kwarg) error {
	i := d.sig.Index(op.AnyArg(kw.Name))
	if i < 0 {
		g.Set(kw.Name, kw.Value)
		return nil
	}
	one := *d.sig
	one.Params = d.sig.Params[i : i+1]
	bound, err := one.Bind(nil, []op.Kwarg{kw}, false)
	if err != nil {
		return err
	}
	g.Set(kw.Name, bound.Vals[0])
	return nil
}

func (o *Optimizer) has(p *Param) bool {
	return slices.ContainsFunc(o.Groups, func(g *Group) bool { return slices.Contains(g.Params, p) })
}

func (o *Optimizer) printf(format string, args ...any) {
	if o.Output == nil {
		fmt.Printf(format, args...)
		return
	}
	fmt.Fprintf(o.Output, format, args...)
}

// Step updates every parameter that has a gradient. When one update fails, no
// parameter changes.
func (o *Optimizer) Step(b op.Builder) (err error) {
	defer func() { named(&err, o.Def.Name) }()
	type change struct {
		p     *Param
		value op.Value
		state State
	}
	var changes []change
	for _, g := range o.Groups {
		for _, p := range g.Params {
			if p.Grad == nil {
				continue
			}
			c := change{p: p, state: o.stateOf(g, p)}
			if err := op.Catch(func() { c.value = o.Def.Update(b, g, p, c.state) }); err != nil {
				return fmt.Errorf("parameter %s: %w", p.Name, err)
			}
			changes = append(changes, c)
		}
	}
	for _, c := range changes {
		c.p.set(c.value)
		o.state[c.p] = c.state
	}
	o.steps++
	return nil
}

// stateOf returns a copy of the parameter's state, which begins if there is none.
func (o *Optimizer) stateOf(g *Group, p *Param) State {
	if st := o.state[p]; st != nil {
		return maps.Clone(st)
	}
	if o.Def.Begin == nil {
		return State{}
	}
	return o.Def.Begin(g, p)
}

// ZeroGrad forgets the gradients, or sets them to zero. PyTorch's default is
// false up to 1.13 and true from 2.0 on.
func (o *Optimizer) ZeroGrad(setToNone bool) {
	for _, g := range o.Groups {
		for _, p := range g.Params {
			switch {
			case p.Grad == nil:
			case setToNone:
				p.Grad = nil
			default:
				p.Grad = constantLike(p.Grad, 0)
			}
		}
	}
}

// constantLike returns a tensor of v's dtype, shape and strides.
func constantLike(v op.Value, k complex128) *tensor.Tensor {
	t := tensor.NewStrided(v.DType(), v.Shape(), v.Strides())
	if k != 0 {
		for i := range t.Len() {
			t.Set(i, k)
		}
	}
	return t
}
