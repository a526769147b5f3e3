package autograd

import (
	"fmt"
	"reflect"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/inplace"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// changes reports whether a call may change a tensor.
func changes(c program.Call, table *op.Table) bool {
	if op.InPlace(c.Target) {
		return true
	}
	return slices.ContainsFunc(table.Lookup(c.Target), func(d *op.Def) bool { return d.Sigs()[0].Takes(arg.Inplace) })
}

// refresh brings what a name stands for up to date.
func (e *extender) refresh(r program.Ref) error {
	v := e.env[r]
	v.values = slices.Clone(v.values) // the tape has them too
	for i := range v.values {
		now, err := e.space.Current(v.values[i])
		if err != nil {
			return err
		}
		v.values[i] = now
	}
	e.env[r] = v
	return nil
}

// host lets a space of variables record its calls.
type host struct{ *parts }

var _ inplace.Host = host{}

// Execute records a bound call by id, its arguments by keyword.
func (h host) Execute(c *op.Call) ([]op.Value, error) {
	var kwargs []op.Kwarg
	for i, p := range c.Args.Sig.Params {
		if v := c.Args.Vals[i]; v != nil && !(p.HasDefault && reflect.DeepEqual(v, p.Default)) {
			kwargs = append(kwargs, op.Kw(p.Name, v))
		}
	}
	out, err := h.parts.Apply(c.Def.ID(), nil, kwargs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Def.ID(), err)
	}
	return out, nil
}

// RequiresGrad reports whether the value is on a path from a wanted leaf.
func (h host) RequiresGrad(v op.Value) bool { return h.needs[v] }

// Same is not known of symbols.
func (host) Same(a, b op.Value) bool { return a == b }

// Shares tries a view on a tensor that is laid out as the value is.
func (host) Shares(c *op.Call, _, of op.Value) bool {
	if c.Def.View == nil {
		return false
	}
	var viewed *tensor.Tensor
	dummy := *c
	dummy.Args = c.Args.MapValues(func(v op.Value) op.Value {
		t := tensor.NewStrided(v.DType(), v.Shape(), v.Strides())
		if v == of {
			viewed = t
		}
		return t
	})
	out, err := dummy.Execute()
	if err != nil || viewed == nil {
		return false
	}
	if viewed.Room() == 0 && out[0].Room() == 0 { // no storage tells
		return !c.Def.Traits.Has(op.ItselfOrCopy)
	}
	return out[0].SharesStorage(viewed)
}

// Overlaps was checked when the program ran.
func (host) Overlaps(_, _ op.Value) bool { return false }

// Arrange leaves the layout to the operators.
func (host) Arrange(op.Value, []int) {}

// Adopt cannot be written as a program.
func (host) Adopt(_, _ op.Value) bool { return false }

// Track does nothing: a recorded program has every value at once.
func (host) Track(op.Value, *int) {}
