// Package api is the typed Go surface of Plumb's operators: one function per
// operator, with the parameters, defaults and results of PyTorch.
//
//	s := api.NewSession()
//	x, err := api.FromSlice(s, []float32{1, -2, 3, -4}, 1, 1, 2, 2)
//	w, err := api.FromSlice(s, []float32{0.5}, 1, 1, 1, 1)
//	err = w.RequireGrad()
//	y, err := api.Conv2D(x, w, api.Conv2DOptions{Stride: []int{2}})
//	loss, err := api.Sum(y)
//	err = loss.Backward() // w.Grad() has the gradient
//
// Required arguments are positional. The others are fields of an Options
// struct, which may be left out; its zero value means PyTorch's defaults, and
// so does each zero field. Operators without a tensor argument are methods of
// Session. Arguments that an operator does not accept give an error, an
// *op.Error of the class that PyTorch raises; they never panic.
//
// The functions are generated from the table of operators: docs/operators.md
// lists them with their formulas.
package api

//go:generate go run plumb/internal/opgen

import (
	"errors"
	"fmt"

	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// Session is where tensors live and operators run. It is for one goroutine;
// sessions know nothing of each other.
type Session struct {
	eager *eager.Session
	table *op.Table
	rec   Recorder // in place of both
	dtype DType    // of modules' parameters; Invalid for PyTorch's default
}

// NewSession returns a session over Plumb's own operators.
func NewSession() *Session { return NewSessionOn(ops.Table()) }

// NewSessionOn returns a session over a table that may have further operators.
func NewSessionOn(table *op.Table) *Session { return &Session{eager: eager.New(table), table: table} }

// Seed sets what the draws of random operators follow from. Two sessions of
// one seed draw the same.
func (s *Session) Seed(seed uint64) {
	if s.rec == nil {
		s.eager.Seed(seed)
	}
}

// LimitMemory bounds the bytes that the results of one operator, with its
// temporary memory, may take; beyond it the operator gives an error of class
// RuntimeError. 0 removes the bound.
func (s *Session) LimitMemory(bytes int) {
	if s.rec == nil {
		s.eager.Limit(bytes)
	}
}

// NoGrad runs f without recording what gradients need, and returns its error.
func (s *Session) NoGrad(f func() error) error {
	if s.rec != nil {
		return errRecording
	}
	return s.eager.Pause(f)
}

// Call applies an operator by id or by public name. Arguments are positional;
// op.Kw makes one by keyword. It is how operators are called that are not
// Plumb's own.
func (s *Session) Call(name string, args ...any) ([]*Tensor, error) {
	c := call{name: name, s: s}
	c.args, c.kws = c.split(args)
	return c.run()
}

// Gradients returns the gradients of the sum of the elements of y with respect
// to each of wrt; nil where y does not depend on one. With create they can be
// differentiated again. Unlike Backward it leaves Grad alone.
func (s *Session) Gradients(y *Tensor, wrt []*Tensor, create bool) ([]*Tensor, error) {
	if s.rec != nil {
		return nil, errRecording
	}
	ones := tensor.New(y.DType(), y.Shape()...)
	for i := range ones.Len() {
		ones.Set(i, 1)
	}
	var inputs []op.Value
	for _, x := range wrt {
		inputs = append(inputs, x.v)
	}
	cot, err := s.differentiate(y, s.eager.Leaf(ones, false), create, inputs...)
	if err != nil {
		return nil, err
	}
	out := make([]*Tensor, len(wrt))
	for i, x := range wrt {
		if g, ok := cot[x.v].(*eager.Var); ok {
			out[i] = &Tensor{v: g, s: s}
		}
	}
	return out, nil
}

func (s *Session) differentiate(y *Tensor, cotangent *eager.Var, create bool, inputs ...op.Value) (autograd.Cotangents, error) {
	return s.eager.Backward([]op.Value{y.v}, []op.Value{cotangent}, create, inputs...)
}

// call is a call of an operator that is being put together.
type call struct {
	s    *Session
	name string
	args []any
	kws  []op.Kwarg
	err  error
}

// argument returns v as operators take it, and holds the call to one session.
func (c *call) argument(v any) any {
	switch v := v.(type) {
	case *Tensor:
		if v == nil {
			return nil
		}
		if c.s == nil {
			c.s = v.s
		}
		if c.s != v.s && c.err == nil {
			c.err = op.TypeError("%s: tensors of two sessions cannot take part in one call", c.name)
		}
		return v.Value()
	case []*Tensor:
		list := make([]any, len(v))
		for i, t := range v {
			list[i] = c.argument(t)
		}
		return list
	case []any:
		return c.arguments(v)
	case Index:
		return op.Index(c.arguments(v))
	case *Module:
		if c.s != v.s && c.err == nil {
			c.err = op.TypeError("%s: modules of two sessions cannot take part in one call", c.name)
		}
		return v.m
	case Arg:
		return v.argument()
	}
	return v
}

func (c *call) arguments(vs []any) []any {
	list := make([]any, len(vs))
	for i, v := range vs {
		list[i] = c.argument(v)
	}
	return list
}

// run applies the operator. A call without a tensor has a session of its own.
func (c *call) run() ([]*Tensor, error) {
	if c.err != nil {
		return nil, c.err
	}
	if c.s == nil {
		c.s = NewSession()
	}
	if c.s.rec != nil {
		return c.record()
	}
	apply := c.s.eager.Call
	if c.s.table.Def(c.name) != nil {
		apply = c.s.eager.Apply
	}
	out, err := apply(c.name, c.args, c.kws)
	if err != nil {
		return nil, err
	}
	ts := make([]*Tensor, len(out))
	for i, v := range out {
		ts[i] = &Tensor{v: v.(*eager.Var), s: c.s}
	}
	return ts, nil
}

// argument is one argument of a generated function.
type argument struct {
	name    string
	value   any
	omitted bool
}

// given passes an argument, None included.
func given(name string, v any) argument {
	x, _ := plain(v)
	return argument{name: name, value: x}
}

// optional passes an argument unless it is its type's zero value.
func optional(name string, v any) argument {
	x, set := plain(v)
	return argument{name: name, value: x, omitted: !set}
}

// plain takes the pointer off a value. It is not set when it is zero, and None
// when its type has no zero of its own.
func plain(v any) (x any, set bool) {
	switch v := v.(type) {
	case *int:
		return pointed(v)
	case *float64:
		return pointed(v)
	case *bool:
		return pointed(v)
	case *MemoryFormat:
		return pointed(v)
	case *Tensor:
		return v, v != nil
	case []*Tensor:
		return v, v != nil
	case []int:
		return sliceOrNone(v)
	case []float64:
		return sliceOrNone(v)
	case Index:
		return v, v != nil
	case Scalar:
		return v.Any(), v != Scalar{}
	case DType:
		if v == tensor.Invalid {
			return nil, false
		}
		return v, true
	case int:
		return v, v != 0
	case float64:
		return v, v != 0
	case bool:
		return v, v
	case string:
		return v, v != ""
	case Device:
		return v, v != ""
	case MemoryFormat:
		return v, v != tensor.Contiguous
	}
	return v, v != nil
}

func pointed[T any](p *T) (any, bool) {
	if p == nil {
		return nil, false
	}
	return *p, true
}

func sliceOrNone[T any](v []T) (any, bool) {
	if v == nil {
		return nil, false
	}
	return v, true
}

// apply calls an operator with its arguments by name. A nil session is that of
// the tensors.
func apply(s *Session, id string, arguments ...argument) ([]*Tensor, error) {
	c := call{s: s, name: id}
	for _, a := range arguments {
		if !a.omitted {
			c.kws = append(c.kws, op.Kw(a.name, c.argument(a.value)))
		}
	}
	return c.run()
}

// last returns the options of a call, the zero value when there are none.
func last[T any](options []T) (o T) {
	if len(options) > 0 {
		o = options[len(options)-1]
	}
	return o
}

var errResults = errors.New("the operator returned another number of results than its signature says")

func want(n int, out []*Tensor, err error) error {
	if err == nil && len(out) != n {
		return fmt.Errorf("%w: %d, not %d", errResults, len(out), n)
	}
	return err
}

func one(out []*Tensor, err error) (*Tensor, error) {
	if err := want(1, out, err); err != nil {
		return nil, err
	}
	return out[0], nil
}

func two(out []*Tensor, err error) (a, b *Tensor, _ error) {
	if err := want(2, out, err); err != nil {
		return nil, nil, err
	}
	return out[0], out[1], nil
}

func three(out []*Tensor, err error) (a, b, c *Tensor, _ error) {
	if err := want(3, out, err); err != nil {
		return nil, nil, nil, err
	}
	return out[0], out[1], out[2], nil
}

// truth returns the result of an operator that answers yes or no.
func truth(out []*Tensor, err error) (bool, error) {
	v, err := number(out, err)
	b, _ := v.Any().(bool)
	return b, err
}

// number returns the result of an operator that computes a Python number.
func number(out []*Tensor, err error) (Scalar, error) {
	t, err := one(out, err)
	if err != nil {
		return Scalar{}, err
	}
	return t.Item()
}
