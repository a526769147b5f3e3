package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plumb/nn"
	"plumb/op"
	"plumb/optim"
	"plumb/tensor"
)

// attached is a module of a graph, with the name before those of its state.
type attached struct {
	name   string
	module *nn.Module
}

// entryName is an entry's name in the state of the graph.
func (a attached) entryName(name string) string {
	if a.name == "" {
		return name
	}
	return a.name + "." + name
}

type attachedOptimizer struct {
	*optim.Optimizer
	schedule optim.Schedule
}

// AddModule makes the parameters and buffers of a module, which must be
// loaded, state of the graph: the function finds them in the module as values,
// and a call leaves there what they became. Those that are *eager.Var are
// overwritten, others replaced. Name comes before the names of the state; it
// may be empty where no name is there twice.
func (g *Graph) AddModule(name string, m *nn.Module) error {
	taken := map[string]bool{}
	for _, a := range g.modules {
		for _, s := range a.module.State() {
			taken[a.entryName(s.Name)] = true
		}
	}
	a := attached{name, m}
	for _, e := range m.StateDict() {
		switch full := a.entryName(e.Name); {
		case taken[full]:
			return fmt.Errorf("graph %s: two modules have a state %q", g.Name, full)
		case plainTensor(e.Value) == nil:
			return fmt.Errorf("graph %s: state %q of %s is not loaded", g.Name, full, m.Def.Name())
		}
	}
	g.modules = append(g.modules, a)
	return nil
}

// AddOptimizer makes every call of the graph a training step: the gradients
// that its function asks for with Builder.Backward update the parameters of the
// optimizer, and the schedule, if there is one, goes on by one step. The
// parameters and what the optimizer keeps about them are inputs and outputs of
// the compiled code, and the learning rates inputs: those of the call, so that
// a change of them compiles nothing. Other options are part of the code. The
// parameters are computed ones: *eager.Var or *tensor.Tensor, those of the
// graph's modules among them. Several optimizers update one after the other.
func (g *Graph) AddOptimizer(o *optim.Optimizer, schedule optim.Schedule) error {
	for _, group := range o.Groups {
		for _, p := range group.Params {
			if plainTensor(p.Value) == nil {
				return fmt.Errorf("graph %s: parameter %s of %s is %T, not a computed tensor", g.Name, p.Name, o.Def.Name, p.Value)
			}
			for _, other := range g.optimizers {
				if other.StateOf(p) != nil {
					return fmt.Errorf("graph %s: parameter %s belongs to two optimizers", g.Name, p.Name)
				}
			}
		}
	}
	g.optimizers = append(g.optimizers, &attachedOptimizer{o, schedule})
	return nil
}

// BeforeUpdate has f change the gradients of each optimizer's parameters
// before it updates: optim.ClipGradNorm, for instance. It is recorded with the
// rest of the step, and sees no elements.
func (g *Graph) BeforeUpdate(f func(b op.Builder, params []*optim.Param) error) { g.before = f }

// Accumulate has a call split its tensors, those of at least one dimension,
// along the first into n parts of equal size, the micro-batches. The function
// runs on one after the other, the gradients add up, each weighted by 1/n, and
// one update follows: n·size samples are trained on in the memory of size.
// Results of no dimension are stacked, others joined along the first one, as
// with OneFlow's set_gradient_accumulation_steps.
func (g *Graph) Accumulate(n int) error {
	if n < 1 {
		return fmt.Errorf("graph %s: %d micro-batches", g.Name, n)
	}
	g.parts = n
	return nil
}

func (g *Graph) stateful() bool { return len(g.modules) > 0 || len(g.optimizers) > 0 }

// Backward adds the gradients of a loss, which has one element, to those with
// which the optimizers of the graph update.
func (b *Builder) Backward(loss op.Value) {
	t := b.training
	switch {
	case t == nil:
		op.Fail(fmt.Errorf("Backward needs an optimizer: see Graph.AddOptimizer"))
	case tensor.NumElements(loss.Shape()) != 1:
		op.Fail(op.RuntimeError("grad can be implicitly created only for scalar outputs, not for %s%s", loss.DType(), tensor.ShapeString(loss.Shape())))
	}
	cot := b.FullLike(loss, t.weight)
	grads, err := b.Grads([]op.Value{loss}, []op.Value{cot}, t.wanted)
	if err != nil {
		op.Fail(err)
	}
	t.called = true
	for i, grad := range grads {
		v := t.wanted[i]
		switch {
		case grad == nil:
		case t.grads[v] == nil:
			t.grads[v] = grad
		default:
			t.grads[v] = b.Add(t.grads[v], grad)
		}
	}
}

// training is what Backward has to do.
type training struct {
	weight float64 // of a loss
	wanted []op.Value
	grads  map[op.Value]op.Value
	called bool
}

// cell is a parameter or buffer, with the places that hold it.
type cell struct {
	names  []string
	value  op.Value // *eager.Var or *tensor.Tensor
	home   []func() op.Value
	put    []func(op.Value)
	params []*optim.Param
}

func (c *cell) set(v op.Value) {
	for _, put := range c.put {
		put(v)
	}
}

// cells lists the parameters and buffers of the modules, and the optimizers'
// parameters that are none of them.
func (g *Graph) cells() ([]*cell, error) {
	var cells []*cell
	of := map[op.Value]*cell{}
	add := func(name string, v op.Value, home func() op.Value, put func(op.Value)) error {
		if plainTensor(v) == nil {
			return fmt.Errorf("graph %s: state %q is %T, not a computed tensor", g.Name, name, v)
		}
		if of[v] == nil {
			of[v] = &cell{value: v}
			cells = append(cells, of[v])
		}
		if name != "" {
			of[v].names = append(of[v].names, name)
		}
		of[v].home, of[v].put = append(of[v].home, home), append(of[v].put, put)
		return nil
	}
	for _, a := range g.modules {
		for _, e := range a.module.StateDict() {
			home := func() op.Value { return a.module.Value(e.Name) }
			put := func(v op.Value) { mustLoad(a.module, e.Name, v) }
			if err := add(a.entryName(e.Name), e.Value, home, put); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range g.params() {
		name := p.Name
		switch {
		case of[p.Value] != nil: // a module's
			name = ""
		case name == "":
			name = "unnamed"
		}
		if err := add(name, p.Value, func() op.Value { return p.Value }, func(v op.Value) { p.Value = v }); err != nil {
			return nil, err
		}
		of[p.Value].params = append(of[p.Value].params, p)
	}
	return cells, nil
}

func mustLoad(m *nn.Module, name string, v op.Value) {
	if err := m.Load(name, v); err != nil {
		panic(fmt.Sprintf("graph: %v", err))
	}
}

// params are those of all optimizers.
func (g *Graph) params() []*optim.Param {
	var all []*optim.Param
	for _, o := range g.optimizers {
		for _, group := range o.Groups {
			all = append(all, group.Params...)
		}
	}
	return all
}

// stateNames are the names under which an optimizer keeps tensors.
func stateNames(st optim.State) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(st)), func(name string) bool { return plainTensor(st[name]) == nil })
}

// stateKey is the state's part of a signature: what the code depends on.
func (g *Graph) stateKey(cells []*cell) string {
	var b strings.Builder
	fmt.Fprintf(&b, "parts %d;", g.parts)
	for _, c := range cells {
		fmt.Fprint(&b, metaText(plainTensor(c.value)), trainable(c.value))
	}
	for _, a := range g.modules {
		modes(&b, a.module)
	}
	for _, o := range g.optimizers {
		fmt.Fprintf(&b, ";%s", o.Def.Name)
		for _, group := range o.Groups {
			for _, name := range group.Names() {
				if name != "lr" && name != "initial_lr" {
					fmt.Fprintf(&b, " %s=%v", name, group.Get(name))
				}
			}
			for _, p := range group.Params {
				st := o.StateOf(p)
				fmt.Fprintf(&b, ":%d", cellOf(cells, p))
				for _, name := range stateNames(st) {
					fmt.Fprintf(&b, " %s=%s", name, metaText(plainTensor(st[name])))
				}
			}
		}
	}
	return b.String()
}

func modes(b *strings.Builder, m *nn.Module) {
	fmt.Fprintf(b, "%t(", m.Training)
	for _, c := range m.Children {
		modes(b, c)
	}
	b.WriteString(")")
}

// feeds returns the state as inputs of the code, in the order in which trace
// makes them: parameters and buffers, the optimizers' states, learning rates.
func (e *entry) feeds(g *Graph, cells []*cell) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, c := range cells {
		out = append(out, plainTensor(c.value))
	}
	for _, o := range g.optimizers {
		for _, group := range o.Groups {
			for _, p := range group.Params {
				st := o.StateOf(p)
				for _, name := range stateNames(st) {
					out = append(out, plainTensor(st[name]))
				}
			}
			out = append(out, tensor.Scalar(tensor.F64, complex(group.LR(), 0)))
		}
	}
	return out
}

// traced is a graph before its passes, with what becomes of its outputs.
type traced struct {
	code    *Code
	results int
	out     *tree
	draws   int
	change  *change
	stages  []Stage
}

// tracer traces one signature.
type tracer struct {
	*Graph
	b       *Builder
	cells   []*cell
	inputs  []*Value // of the cells
	outputs []*Value
	change  change
	stages  []Stage
}

// trace records the function, its gradients and the updates. The state's
// values are in their places while it runs.
func (g *Graph) trace(in *tree, cells []*cell) (*traced, error) {
	t := &tracer{Graph: g, b: NewBuilder(g.table, g.Name), cells: cells}
	if g.debug.tells(Modules) {
		t.b.Describing()
		for _, a := range g.modules {
			t.b.scopes.names[a.module] = a.name
		}
	}
	var out *tree
	var results []*Value
	defer func() {
		for _, c := range cells {
			c.set(c.value)
		}
	}()
	err := op.Catch(func() {
		var leaves []*Value
		for i, x := range in.leaves {
			leaves = append(leaves, t.input(fmt.Sprintf("x%d", i), x))
		}
		for _, c := range cells {
			v := t.input(c.names[0], plainTensor(c.value))
			t.inputs = append(t.inputs, v)
			c.set(v)
		}
		updates := t.recordings()
		out, results = t.run(in, leaves)
		t.outputs = slices.Clone(results)
		t.update(updates)
		t.cellsOut()
	})
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", g.Name, err)
	}
	return &traced{code: t.b.Code(t.outputs...), results: len(results), out: out, draws: t.b.keys.Count(), change: &t.change, stages: t.stages}, nil
}

func (t *tracer) input(name string, x *tensor.Tensor) *Value {
	return t.b.Input(name, op.Meta{DType: x.DType(), Shape: x.Shape(), Strides: x.Strides()})
}

func (t *tracer) emit(v op.Value) int {
	t.outputs = append(t.outputs, t.b.output(v))
	return len(t.outputs) - 1
}

// run records the function, once for each micro-batch.
func (t *tracer) run(in *tree, leaves []*Value) (*tree, []*Value) {
	if len(t.optimizers) > 0 {
		t.b.training = &training{weight: 1 / float64(t.parts), grads: map[op.Value]op.Value{}}
		for i, c := range t.cells {
			if trainable(c.value) && t.inputs[i].DType().IsDifferentiable() {
				t.b.training.wanted = append(t.b.training.wanted, t.inputs[i])
			}
		}
	}
	if t.parts == 1 {
		return t.b.results(t.function(t.b, in.with(func(i int) any { return leaves[i] }).([]any)...))
	}
	return t.accumulate(in, leaves)
}

// accumulate records the function for each micro-batch, and puts its results together.
func (t *tracer) accumulate(in *tree, leaves []*Value) (*tree, []*Value) {
	start, before := time.Now(), t.b.code.count()
	var out *tree
	var parts [][]*Value
	for k := range t.parts {
		args := in.with(func(i int) any { return t.part(k, fmt.Sprintf("x%d", i), leaves[i]) }).([]any)
		one, values := t.b.results(t.function(t.b, args...))
		if out != nil && one.signature() != out.signature() {
			op.Fail(fmt.Errorf("the results of micro-batches are not alike"))
		}
		out, parts = one, append(parts, values)
		t.b.tape = nil
	}
	joined := make([]*Value, len(parts[0]))
	for i := range joined {
		all := make([]any, t.parts)
		for k := range all {
			all[k] = parts[k][i]
		}
		if len(parts[0][i].Shape()) == 0 {
			joined[i] = t.b.output(t.b.Stack(all))
		} else {
			joined[i] = t.b.output(t.b.Cat(all))
		}
	}
	t.stages = append(t.stages, Stage{Pass: "accumulate", Changes: t.parts, Before: before, After: t.b.code.count(), Time: time.Since(start)})
	return out, joined
}

// part returns the k-th micro-batch of an input.
func (t *tracer) part(k int, name string, v *Value) op.Value {
	if len(v.Shape()) == 0 {
		return v
	}
	n := v.Shape()[0]
	if n%t.parts != 0 {
		op.Fail(fmt.Errorf("input %s, %s, cannot be split along its first dimension into %d micro-batches of equal size", name, describe(v), t.parts))
	}
	size := n / t.parts
	return t.b.Narrow(v, 0, k*size, size)
}

// recording is an optimizer that records, with the numbers of its parameters.
type recording struct {
	*optim.Optimizer
	from  *attachedOptimizer
	param map[*optim.Param]*optim.Param // by the original one
	state map[*optim.Param]optim.State
}

// recordings makes the optimizers' states and rates inputs.
func (t *tracer) recordings() []*recording {
	var all []*recording
	for k, o := range t.optimizers {
		r := &recording{from: o, param: map[*optim.Param]*optim.Param{}, state: map[*optim.Param]optim.State{}}
		var rates []*Value
		for i, group := range o.Groups {
			for _, p := range group.Params {
				st := o.StateOf(p)
				for _, name := range stateNames(st) {
					st[name] = t.input(fmt.Sprintf("%s of %s", name, p.Name), plainTensor(st[name]))
				}
				r.param[p], r.state[p] = &optim.Param{Name: p.Name}, st
			}
			rates = append(rates, t.b.Input(fmt.Sprintf("rate %d.%d", k, i), op.Meta{DType: tensor.F64, Shape: []int{}}))
		}
		r.Optimizer = o.Recorded(optim.Recording{
			Param: func(p *optim.Param) *optim.Param { return r.param[p] },
			State: func(p *optim.Param) optim.State { return r.state[p] },
			Rate:  func(i int) op.Value { return rates[i] },
		})
		all = append(all, r)
	}
	return all
}

// update records what the optimizers do with the gradients.
func (t *tracer) update(all []*recording) {
	if len(all) == 0 {
		return
	}
	start, before := time.Now(), t.b.code.count()
	if !t.b.training.called {
		op.Fail(fmt.Errorf("there is an optimizer, but the function does not call Builder.Backward"))
	}
	for k, r := range all {
		t.b.At(0, "update by "+r.Def.Name)
		t.change.states = append(t.change.states, t.step(r))
		if len(t.change.states[k]) == 0 {
			op.Fail(fmt.Errorf("no parameter of %s has a gradient: the loss does not depend on them", r.Def.Name))
		}
	}
	t.stages = append(t.stages, Stage{Pass: "update", Changes: len(all), Before: before, After: t.b.code.count(), Time: time.Since(start)})
}

// step records one optimizer's step, and returns what it makes of its states.
func (t *tracer) step(r *recording) []stateChange {
	at := map[*optim.Param]int{}
	for i, group := range r.from.Groups {
		for j, p := range group.Params {
			q := r.Groups[i].Params[j]
			k := cellOf(t.cells, p)
			at[q] = k
			q.Value, q.Grad = t.b.output(t.cells[k].home[0]()), t.b.training.grads[t.inputs[k]]
		}
	}
	if t.before != nil {
		var params []*optim.Param
		for _, group := range r.Groups {
			params = append(params, group.Params...)
		}
		if err := t.Graph.before(t.b.Builder, params); err != nil {
			op.Fail(err)
		}
	}
	if err := r.Step(t.b.Builder); err != nil {
		op.Fail(err)
	}
	var changes []stateChange
	for i, group := range r.from.Groups {
		for j, p := range group.Params {
			q := r.Groups[i].Params[j]
			if q.Grad == nil {
				continue
			}
			t.cells[at[q]].set(q.Value)
			changes = append(changes, t.stateOut(p, r.from.StateOf(p), r.StateOf(q)))
		}
	}
	return changes
}

// cellOf returns the number of a parameter's cell.
func cellOf(cells []*cell, p *optim.Param) int {
	return slices.IndexFunc(cells, func(c *cell) bool { return slices.Contains(c.params, p) })
}
