// Package graph holds static graphs. A Builder records operators as nodes;
// Code is what it recorded, for one signature of inputs. Passes rewrite code,
// each by one idea; Compile applies them and plans the memory; Compiled runs.
// A Graph traces and compiles a function once per signature.
//
// Values never change: an operator that updates an argument makes a new value
// of it. No pass changes a bit of a result: it leaves operators out, computes
// them once, earlier, in one loop or in memory that was used before.
package graph

import (
	"fmt"
	"strings"
	"sync"

	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// Func is a function of tensors, written on a Builder. What fails in it ends
// it through op.Fail.
type Func func(b *Builder, x ...op.Value) []op.Value

// Graph is a function that is traced and compiled once for every signature of
// inputs, dtypes, shapes and strides, that it meets. It may be used by several
// goroutines.
type Graph struct {
	Name string
	// Seed is what the draws of random operators follow from.
	Seed uint64

	table    *op.Table
	function Func
	options  Options
	mu       sync.Mutex
	compiled map[string]*Compiled
}

// New returns a graph of a function.
func New(table *op.Table, name string, f Func, o Options) *Graph {
	return &Graph{Name: name, table: table, function: f, options: o, compiled: map[string]*Compiled{}}
}

// OfModule returns a graph of a module's call in its present mode. The state,
// in the order of StateDict, comes before the inputs; the state after the call
// comes after the results.
func OfModule(table *op.Table, m *nn.Module, o Options) *Graph {
	return New(table, m.Def.Name(), func(b *Builder, x ...op.Value) []op.Value {
		before := m.StateDict()
		defer restore(m, before)
		for i, e := range before {
			if err := m.Load(e.Name, x[i]); err != nil {
				op.Fail(err)
			}
		}
		var args []any
		for _, v := range x[len(before):] {
			args = append(args, v)
		}
		out, err := m.Call(b.Builder, args, nil)
		if err != nil {
			op.Fail(err)
		}
		for _, e := range m.StateDict() {
			out = append(out, e.Value)
		}
		return out
	}, o)
}

func restore(m *nn.Module, entries []nn.Entry) {
	for _, e := range entries {
		if err := m.Load(e.Name, e.Value); err != nil {
			panic(fmt.Sprintf("graph: %v", err))
		}
	}
}

// Run computes the function. Results may share memory with inputs where the
// function returns views of them.
func (g *Graph) Run(inputs ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	c, err := g.Compile(inputs...)
	if err != nil {
		return nil, err
	}
	return c.Run(g.Seed, inputs)
}

// Compile returns what Run runs for inputs of this signature.
func (g *Graph) Compile(inputs ...*tensor.Tensor) (*Compiled, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := signature(inputs)
	if c := g.compiled[key]; c != nil {
		return c, nil
	}
	code, err := g.Trace(inputs...)
	if err != nil {
		return nil, err
	}
	c, err := Compile(code, g.options)
	if err == nil {
		g.compiled[key] = c
	}
	return c, err
}

// Signatures returns how many signatures the graph was compiled for.
func (g *Graph) Signatures() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.compiled)
}

// Trace returns the graph for inputs of this signature before any pass.
func (g *Graph) Trace(inputs ...*tensor.Tensor) (*Code, error) {
	b := NewBuilder(g.table, g.Name)
	var in []op.Value
	for i, t := range inputs {
		in = append(in, b.Input(fmt.Sprintf("x%d", i), op.Meta{DType: t.DType(), Shape: t.Shape(), Strides: t.Strides()}))
	}
	var out []*Value
	err := op.Catch(func() {
		for _, v := range g.function(b, in...) {
			out = append(out, b.output(v))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", g.Name, err)
	}
	return b.Code(out...), nil
}

// output returns the value of a result of a traced function, which may be a constant.
func (b *Builder) output(v op.Value) *Value {
	switch v := v.(type) {
	case *Value:
		return b.Latest(v)
	case *tensor.Tensor:
		return b.Constant(v)
	}
	op.Fail(fmt.Errorf("the function returned %T, which is no value of the graph", v))
	return nil
}

func signature(ts []*tensor.Tensor) string {
	var b strings.Builder
	for _, t := range ts {
		fmt.Fprintf(&b, "%s%v%v;", t.DType(), t.Shape(), t.Strides())
	}
	return b.String()
}
