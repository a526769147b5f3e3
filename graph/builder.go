package graph

import (
	"errors"
	"fmt"
	"slices"

	"plumb/internal/autograd"
	"plumb/internal/where"
	"plumb/op"
	"plumb/tensor"
)

// Builder records the operators that are applied on it as the nodes of a
// graph. It is an op.Applier over *Value; a *tensor.Tensor among the arguments
// becomes a constant. It is for one goroutine.
type Builder struct {
	op.Builder
	table     *op.Table
	code      *Code
	values    int
	tape      []autograd.Node
	constants map[*tensor.Tensor]*Value
	// latest is what mutating operators made of a value.
	latest   map[*Value]*Value
	keys     op.Keys
	room     []byte
	place    string
	step     int
	training *training // what Backward has to do
	of       *Node     // whose gradient is recorded
	part     int       // that Checkpoint marks, from 1
	marked   int       // parts
	scopes   *scopes   // nil where nobody asks for them
}

// NewBuilder returns a builder of an empty graph.
func NewBuilder(table *op.Table, name string) *Builder {
	b := &Builder{table: table, code: &Code{Name: name}, constants: map[*tensor.Tensor]*Value{}, latest: map[*Value]*Value{}}
	b.Builder = op.Builder{Applier: b}
	return b
}

// At sets the source position of the nodes that follow: the caller's words for
// it and the number of its step. Without it a node's place is the line of Go
// that made the call.
func (b *Builder) At(step int, place string) { b.step, b.place = step, place }

// Differentiate says that the nodes to come are part of the gradient of one;
// nil ends that.
func (b *Builder) Differentiate(of *Node) { b.of = of }

// own are the packages whose lines are nobody's call.
var own = []string{"graph", "op", "ops", "nn", "optim", "api", "internal/autograd", "internal/eager", "internal/inplace"}

// here is the place of a node.
func (b *Builder) here() string {
	if b.place != "" {
		return b.place
	}
	return where.Outside(own...)
}

// within has f record nodes of one place.
func (b *Builder) within(place string, f func() error) error {
	defer func(old string) { b.place = old }(b.place)
	b.place = place
	return f()
}

// Input adds an input; nil strides are contiguous.
func (b *Builder) Input(name string, m op.Meta) *Value {
	n := &Node{Kind: Input, Name: name}
	b.add(n, b.lay(m))
	b.code.Inputs = append(b.code.Inputs, n.Out[0])
	return n.Out[0]
}

// Constant adds a tensor, which must not change from now on.
func (b *Builder) Constant(t *tensor.Tensor) *Value {
	if v := b.constants[t]; v != nil {
		return v
	}
	n := &Node{Kind: Constant, Const: t}
	b.add(n, t)
	b.constants[t] = n.Out[0]
	return n.Out[0]
}

// add appends a node with values that lie as the layouts say.
func (b *Builder) add(n *Node, layouts ...*tensor.Tensor) {
	n.Place, n.Step, n.Of = b.here(), b.step, b.of
	if b.of == nil {
		n.Part = b.part
	}
	for _, l := range layouts {
		n.Out = append(n.Out, &Value{node: n, id: b.values, layout: l})
		b.values++
	}
	b.code.Nodes = append(b.code.Nodes, n)
}

// lay returns a layout with a storage that no other has.
func (b *Builder) lay(m op.Meta) *tensor.Tensor {
	strides := m.Strides
	if strides == nil {
		strides = tensor.ContiguousStrides(m.Shape)
	}
	size := tensor.Extent(m.Shape, strides) * m.DType.Size()
	if size > len(b.room) {
		b.room = roomFor(size)
	}
	t, err := tensor.FromBytes(m.DType, m.Shape, strides, 0, b.room[:size:size])
	if err != nil {
		op.Fail(fmt.Errorf("graph: the layout of a result: %w", err))
	}
	b.room = b.room[min(roomStep, len(b.room)):]
	return t
}

// Apply records an operator by id.
func (b *Builder) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := b.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return b.Execute(call)
}

// Call records an operator by id or by public name.
func (b *Builder) Call(name string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	if b.table.Def(name) != nil {
		return b.Apply(name, args, kwargs)
	}
	call, err := b.table.Resolve(name, args, kwargs)
	if err != nil {
		return nil, err
	}
	return b.Execute(call)
}

// Execute records a bound call; a composition as its parts. The error is the
// operator's rejection, or a *CaptureError.
func (b *Builder) Execute(call *op.Call) ([]op.Value, error) {
	if call.Def.Traits.Has(op.Random) {
		numbered := *call
		numbered.Draw, numbered.Key = b.keys.Key(call)
		call = &numbered
	}
	return b.Record(call)
}

// Record is Execute for a call whose Draw is known.
func (b *Builder) Record(call *op.Call) ([]op.Value, error) {
	if call.Def.Compose != nil {
		out, err := b.parts(call)
		if err != nil {
			return nil, b.refused(call, err)
		}
		return out, nil
	}
	if err := capturable(call); err != nil {
		return nil, b.refused(call, err)
	}
	c := *call
	c.Args = c.Args.MapValues(func(v op.Value) op.Value {
		switch v := v.(type) {
		case *tensor.Tensor:
			return b.Constant(v)
		case *Value:
			return b.Latest(v)
		}
		return v
	})
	var out []*Value
	var err error
	if failed := op.Catch(func() { out, err = b.record(&c) }); failed != nil {
		err = failed
	}
	if err != nil {
		return nil, b.refused(call, err)
	}
	vs := make([]op.Value, len(out))
	for i, v := range out {
		vs[i] = v
	}
	if !call.Def.Traits.Has(op.NoGrad) && !b.identity(&c, out) {
		b.tape = append(b.tape, autograd.Node{Call: call, Out: vs})
	}
	return vs, nil
}

// parts records a composition's parts; those of one without gradient have none.
func (b *Builder) parts(call *op.Call) ([]op.Value, error) {
	defer func(tape []autograd.Node) {
		if call.Def.Traits.Has(op.NoGrad) {
			b.tape = tape
		}
	}(b.tape)
	return call.Parts(b.Builder)
}

// identity reports whether a call returns its argument itself.
func (b *Builder) identity(c *op.Call, out []*Value) bool {
	return c.Def.View != nil && slices.Contains(callArgs(c), out[0])
}

// Latest returns what a value has become by operators that change their
// arguments, such as the running mean of batch_norm; mostly the value itself.
func (b *Builder) Latest(v *Value) *Value {
	for b.latest[v] != nil {
		v = b.latest[v]
	}
	return v
}

func (b *Builder) record(c *op.Call) ([]*Value, error) {
	if c.Def.View != nil {
		return b.recordView(c)
	}
	metas, err := c.Infer()
	if err != nil {
		return nil, err
	}
	if _, err := c.Def.Kernel(laid(c.Args)); err != nil {
		return nil, err
	}
	n := &Node{Kind: Apply, Call: c}
	var layouts []*tensor.Tensor
	for _, m := range metas {
		if err := tensor.CheckShape(m.DType, m.Shape); err != nil {
			return nil, op.RuntimeError("%v", err)
		}
		layouts = append(layouts, b.lay(m))
	}
	for _, name := range c.Def.Mutates {
		if v := c.Args.Value(name); v != nil {
			if err := b.refuseViewed(c, v.(*Value)); err != nil {
				return nil, err
			}
			n.Mutated = append(n.Mutated, name)
			layouts = append(layouts, b.lay(op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: v.Strides()}))
		}
	}
	b.add(n, layouts...)
	for i, name := range n.Mutated {
		b.latest[c.Args.Value(name).(*Value)] = n.Out[len(metas)+i]
	}
	return n.Out[:len(metas)], nil
}

// recordView lays a view out by trying it. One that returns its argument is that.
func (b *Builder) recordView(c *op.Call) ([]*Value, error) {
	if c.Def.Reject != nil {
		if err := c.Def.Reject(c.Args); err != nil {
			return nil, err
		}
	}
	t, err := c.Def.View(laid(c.Args))
	if err != nil {
		return nil, err
	}
	for _, v := range callArgs(c) {
		if v.layout == t {
			return []*Value{v}, nil
		}
	}
	n := &Node{Kind: Apply, Call: c, viewed: 1 + slices.IndexFunc(callArgs(c), func(v *Value) bool { return v.layout.SharesStorage(t) })}
	b.add(n, t)
	return n.Out, nil
}

// refuseViewed refuses to change a value of which there are views.
func (b *Builder) refuseViewed(c *op.Call, v *Value) error {
	for _, n := range b.code.Nodes {
		for _, u := range n.Out {
			if u != v && u.layout.SharesStorage(v.layout) {
				return &CaptureError{Op: c.Def.ID(), Reason: "it changes a tensor of which there are views"}
			}
		}
	}
	return nil
}

// Arrange returns v laid out with other strides, which must be non-negative.
func (b *Builder) Arrange(v *Value, strides []int) *Value {
	n := &Node{Kind: Arrange, source: b.Latest(v)}
	b.add(n, b.lay(op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: strides}))
	return n.Out[0]
}

// Grads returns the gradients of the values, weighted by their cotangents,
// with respect to others; nil where none arrives. They are recorded like
// everything else, and can be differentiated again. A nil cotangent stands for ones.
func (b *Builder) Grads(values, cotangents, wrt []op.Value) ([]op.Value, error) {
	cot := autograd.Cotangents{}
	for i, v := range values {
		c := cotangents[i]
		if c == nil {
			err := op.Catch(func() { c = b.OnesLike(v) })
			if err != nil {
				return nil, err
			}
		}
		if err := cot.Seed(b.Builder, v, c); err != nil {
			return nil, err
		}
	}
	need := map[op.Value]bool{}
	for _, v := range wrt {
		need[v] = true
	}
	tape := slices.Clone(b.tape)
	var path []autograd.Node
	for _, n := range tape {
		if slices.ContainsFunc(n.Call.Args.AllValues(), func(v op.Value) bool { return need[v] }) {
			path = append(path, n)
			for _, v := range n.Out {
				need[v] = need[v] || v.DType().IsDifferentiable()
			}
		}
	}
	err := b.within(b.here(), func() error { return b.walk(path, cot, func(v op.Value) bool { return need[v] }) })
	if err != nil {
		return nil, err
	}
	out := make([]op.Value, len(wrt))
	for i, v := range wrt {
		out[i] = cot[v]
	}
	return out, nil
}

// walk is autograd.Walk; the nodes that it records know of which they are the gradient.
func (b *Builder) walk(tape []autograd.Node, cot autograd.Cotangents, need func(op.Value) bool) error {
	defer func(of *Node) { b.of = of }(b.of)
	for i := range slices.Backward(tape) {
		b.of = tape[i].Out[0].(*Value).node
		if err := autograd.Walk(b.Builder, tape[i:i+1], cot, need); err != nil {
			var e *Error
			if errors.As(err, &e) { // it names the call itself
				return e
			}
			return err
		}
	}
	return nil
}

// Code ends the graph: it computes the outputs.
func (b *Builder) Code(outputs ...*Value) *Code {
	c := *b.code
	c.Nodes, c.Outputs, c.values = slices.Clone(c.Nodes), outputs, b.values
	return &c
}

// capturable refuses calls that a static graph cannot hold.
func capturable(c *op.Call) error {
	reason := ""
	switch {
	case c.InPlace:
		reason = "it is in place"
	case c.Def.Sigs()[0].Plain:
		reason = "its result is a Python value that depends on elements"
	case c.Def.Traits.Has(op.Dynamic) && c.DataDependentShape():
		reason = "the shape of its result depends on elements"
	default:
		return nil
	}
	return &CaptureError{Op: c.Def.ID(), Reason: reason}
}
