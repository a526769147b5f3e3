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
	seed  uint64
	made  int // modules, since the seed was set
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
		s.seed, s.made = seed, 0
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
// differentiated again, as in a graph they always can. Unlike Backward it leaves
// Grad alone.
func (s *Session) Gradients(y *Tensor, wrt []*Tensor, create bool) ([]*Tensor, error) {
	if s.rec != nil {
		return s.recordedGradients(y, wrt)
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
	case []Scalar:
		list := make([]any, len(v))
		for i, n := range v {
			list[i] = n.Any()
		}
		return list
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
	if len(out) == 1 { // in one piece of memory, as most operators have one result
		r := &struct {
			t  Tensor
			ts [1]*Tensor
		}{t: Tensor{v: out[0].(*eager.Var), s: c.s}}
		r.ts[0] = &r.t
		return r.ts[:], nil
	}
	ts := make([]*Tensor, len(out))
	for i, v := range out {
		ts[i] = &Tensor{v: v.(*eager.Var), s: c.s}
	}
	return ts, nil
}
