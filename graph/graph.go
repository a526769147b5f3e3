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
	"slices"
	"sync"
	"time"

	"plumb/nn"
	"plumb/op"
	"plumb/optim"
	"plumb/tensor"
)

// Func is a function of tensors, written on a Builder. What fails in it ends
// it through op.Fail.
type Func func(b *Builder, x ...op.Value) []op.Value

// Graph is a function that is traced and compiled once for every signature of
// inputs, dtypes, shapes and strides, that it meets. It may be used by several
// goroutines, unless it has state: modules or optimizers.
type Graph struct {
	Name string
	// Seed is what the draws of random operators follow from.
	Seed uint64

	table    *op.Table
	function TreeFunc
	options  Options
	debug    Debug
	mu       sync.Mutex
	compiled map[string]*entry
	used     []string // keys of compiled, the latest last

	modules    []attached
	optimizers []*attachedOptimizer
	parts      int // micro-batches of a call
	before     func(b op.Builder, params []*optim.Param) error
	steps      int // calls since the graph was made, if it has state
	draws      int // of random operators in those calls
}

// New returns a graph of a function.
func New(table *op.Table, name string, f Func, o Options) *Graph {
	return NewTree(table, name, func(b *Builder, args ...any) any {
		x := make([]op.Value, len(args))
		for i, a := range args {
			v, ok := a.(op.Value)
			if !ok {
				op.Fail(fmt.Errorf("argument %d is %T, not a tensor", i, a))
			}
			x[i] = v
		}
		var out []any
		for i, v := range f(b, x...) {
			if v == nil {
				op.Fail(fmt.Errorf("result %d is nil, which is no value of the graph", i))
			}
			out = append(out, v)
		}
		return out
	}, o)
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

// Run computes the function of tensors. Results may share memory with inputs
// where the function returns views of them. In a graph that trains it is one
// step: it updates the parameters and goes on with the schedules.
func (g *Graph) Run(inputs ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	out, _, err := g.call(treeOf(inputs))
	return out, err
}

// Call is Run for arguments and results that are trees: tensors, and []any and
// map[string]any of trees. Other leaves, nil, bool, int, int64, float64 and
// string, are constants: for each of them the function is traced anew.
func (g *Graph) Call(args ...any) (any, error) {
	in, err := flattened(args)
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", g.Name, err)
	}
	out, t, err := g.call(in)
	if err != nil {
		return nil, err
	}
	return t.filled(out), nil
}

// call runs the graph on leaves, and returns those of its result and what that is like.
func (g *Graph) call(in *tree) ([]*tensor.Tensor, *tree, error) {
	e, cells, err := g.entry(in)
	if err != nil {
		return nil, nil, err
	}
	inputs := append(slices.Clone(in.leaves), e.feeds(g, cells)...)
	out, err := e.code.runFrom(g.Seed, g.draws, inputs)
	if err != nil {
		return nil, nil, err
	}
	if g.stateful() {
		if err := g.advance(e, cells, out[e.results:]); err != nil {
			return nil, nil, err
		}
	}
	return out[:e.results], e.out, nil
}

// Compile returns what Run runs for inputs of this signature. Of a graph with
// state it reads the state too, after the inputs.
func (g *Graph) Compile(inputs ...*tensor.Tensor) (*Compiled, error) {
	e, _, err := g.entry(treeOf(inputs))
	if err != nil {
		return nil, err
	}
	return e.code, nil
}

// entry is what a signature was compiled to.
type entry struct {
	code    *Compiled
	results int // how many of the outputs are the function's
	out     *tree
	draws   int
	change  *change
}

// entry returns what was compiled for arguments and the present state, and that state.
func (g *Graph) entry(in *tree) (*entry, []*cell, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	cells, err := g.cells()
	if err != nil {
		return nil, nil, err
	}
	key := in.signature() + g.stateKey(cells)
	if e := g.compiled[key]; e != nil {
		g.touch(key)
		return e, cells, nil
	}
	began := time.Now()
	t, err := g.trace(in, cells)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range t.stages {
		g.options.logf(1, "%s: %s\n", g.Name, s)
	}
	c, err := g.debug.Compile(t.code, g.options, began)
	if err != nil {
		return nil, nil, err
	}
	c.Stages = append(slices.Clone(t.stages), c.Stages...)
	e := &entry{code: c, results: t.results, out: t.out, draws: t.draws, change: t.change}
	g.compiled[key] = e
	g.touch(key)
	return e, cells, nil
}

// defaultKept is how many signatures a graph is kept compiled for.
const defaultKept = 64

// touch makes a key the one used last, and forgets the one that is unused for longest.
func (g *Graph) touch(key string) {
	g.used = append(slices.DeleteFunc(g.used, func(k string) bool { return k == key }), key)
	limit := g.options.Keep
	if limit == 0 {
		limit = defaultKept
	}
	if len(g.used) > limit {
		delete(g.compiled, g.used[0])
		g.used = g.used[1:]
	}
}

// Signatures returns how many signatures the graph is compiled for.
func (g *Graph) Signatures() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.compiled)
}

// Trace returns the graph for inputs of this signature before any pass.
func (g *Graph) Trace(inputs ...*tensor.Tensor) (*Code, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	cells, err := g.cells()
	if err != nil {
		return nil, err
	}
	t, err := g.trace(treeOf(inputs), cells)
	if err != nil {
		return nil, err
	}
	return t.code, nil
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
