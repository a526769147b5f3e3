package graph

import (
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// Value is a tensor of a graph before it is computed: an op.Value without elements.
type Value struct {
	node *Node
	id   int
	// layout is a tensor of undefined elements that lies in memory as the
	// value will: values whose layouts share a storage are views of each other.
	layout *tensor.Tensor
}

// DType returns the element type.
func (v *Value) DType() tensor.DType { return v.layout.DType() }

// Shape returns the shape.
func (v *Value) Shape() []int { return v.layout.Shape() }

// Strides returns the strides in elements.
func (v *Value) Strides() []int { return v.layout.Strides() }

// Layout returns a tensor of undefined elements that lies as the value will.
// Views of each other share its storage.
func (v *Value) Layout() *tensor.Tensor { return v.layout }

// ID returns the number that the text of the graph gives the value.
func (v *Value) ID() int { return v.id }

// Node returns what makes the value.
func (v *Value) Node() *Node { return v.node }

// bytes returns the size of the memory that the value's elements span.
func (v *Value) bytes() int {
	return tensor.Extent(v.Shape(), v.Strides()) * v.DType().Size()
}

// alike reports whether two values have one dtype, shape and strides.
func alike(v, u *Value) bool {
	return v.DType() == u.DType() && slices.Equal(v.Shape(), u.Shape()) && slices.Equal(v.Strides(), u.Strides())
}

// Kind says what a node does.
type Kind string

// The kinds of nodes.
const (
	Input    Kind = "input"
	Constant Kind = "constant"
	Apply    Kind = "apply"   // a call of an operator
	Arrange  Kind = "arrange" // lays a value out with other strides
	Fused    Kind = "fused"   // several elementwise calls in one loop
)

// Node makes values.
type Node struct {
	Kind Kind
	// Call is the operator of Apply, its tensor arguments *Value. The node's
	// results are the operator's and, for each name in Mutated, what the kernel
	// leaves of that argument: the argument itself stays as it was.
	Call    *op.Call
	Mutated []op.TensorArg
	Out     []*Value
	Name    string         // of an Input
	Const   *tensor.Tensor // of a Constant
	// Place says where the node was traced, Step which step of the caller that was.
	Place string
	Step  int
	// Of is the node that this one belongs to the gradient of.
	Of *Node
	// Part numbers the part that Checkpoint marked, from 1; Repeats is the part
	// that the node computes again.
	Part, Repeats int

	// spreads are, of a call in Fused and by argument, how it lies under the
	// result; nil where it lies the same way or has one element.
	spreads []*spread

	viewed int     // the argument, counted from 1, of which the result is a view; 0 for none
	source *Value  // of Arrange
	body   []*Node // of Fused: calls, in order; Out are those results that are used outside
	headed bool    // the first of body runs as a whole, and is the first of Out
}

// op returns the operator's id, or the kind.
func (n *Node) op() string {
	if n.Kind == Apply {
		return n.Call.Def.ID()
	}
	return string(n.Kind)
}

// Args returns the values that the node reads, in order.
func (n *Node) Args() []*Value {
	switch n.Kind {
	case Apply:
		return callArgs(n.Call)
	case Arrange:
		return []*Value{n.source}
	case Fused:
		return n.fusedArgs()
	}
	return nil
}

func callArgs(c *op.Call) []*Value {
	all := c.Args.AllValues()
	var out []*Value
	for _, v := range all {
		if v != nil {
			out = append(out, v.(*Value))
		}
	}
	return out
}

// mapped puts f of each value in the place of a call's tensor arguments.
func mapped(a op.Args, f func(*Value) op.Value) op.Args {
	return a.MapValues(func(v op.Value) op.Value {
		if v == nil {
			return nil
		}
		return f(v.(*Value))
	})
}

// laid returns a call's arguments as tensors without elements.
func laid(a op.Args) op.Args { return mapped(a, func(v *Value) op.Value { return v.layout }) }

// fusedArgs are the values that the calls read and that none of them makes.
func (n *Node) fusedArgs() []*Value {
	own := map[*Value]bool{}
	var out []*Value
	for _, m := range n.body {
		for _, v := range m.Args() {
			if !own[v] {
				out = append(out, v)
			}
		}
		for _, v := range m.Out {
			own[v] = true
		}
	}
	return out
}

// replace puts f of each value in the place of the node's arguments.
func (n *Node) replace(f func(*Value) *Value) {
	switch n.Kind {
	case Apply:
		c := *n.Call
		c.Args = mapped(c.Args, func(v *Value) op.Value { return f(v) })
		n.Call = &c
	case Arrange:
		n.source = f(n.source)
	case Fused:
		for _, m := range n.body {
			m.replace(f)
		}
	}
}

// pure reports whether equal arguments give equal results, so that a node may
// be left out, computed earlier or once for two.
func (n *Node) pure() bool {
	switch n.Kind {
	case Apply:
		return !n.Call.Def.Traits.Has(op.Random) && len(n.Mutated) == 0
	case Arrange:
		return true
	}
	return false
}

// Code is a graph for one signature: nodes in an order in which they can run.
type Code struct {
	Name    string
	Inputs  []*Value
	Nodes   []*Node // inputs and constants included
	Outputs []*Value

	scopes  []*Scope
	values  int   // ids below it are taken
	donated []int // inputs whose memory results may take
}

// copy returns code of its own nodes, so that passes leave c as it is. Values
// are shared, and belong to the copy from then on.
func (c *Code) copy() *Code {
	d := *c
	d.Inputs, d.Outputs = slices.Clone(c.Inputs), slices.Clone(c.Outputs)
	d.Nodes = make([]*Node, len(c.Nodes))
	values := map[*Value]*Value{}
	mapped := func(v *Value) *Value {
		if u := values[v]; u != nil {
			return u
		}
		return v
	}
	for i, n := range c.Nodes {
		m := *n
		m.Out = make([]*Value, len(n.Out))
		for j, v := range n.Out {
			u := *v
			u.node = &m
			m.Out[j], values[v] = &u, &u
		}
		m.replace(mapped)
		d.Nodes[i] = &m
	}
	for i := range d.Inputs {
		d.Inputs[i] = mapped(d.Inputs[i])
	}
	for i := range d.Outputs {
		d.Outputs[i] = mapped(d.Outputs[i])
	}
	return &d
}

// substitute puts other values in the place of some, everywhere.
func (c *Code) substitute(by map[*Value]*Value) {
	if len(by) == 0 {
		return
	}
	final := func(v *Value) *Value {
		for by[v] != nil {
			v = by[v]
		}
		return v
	}
	for _, n := range c.Nodes {
		n.replace(final)
	}
	for i := range c.Outputs {
		c.Outputs[i] = final(c.Outputs[i])
	}
}

// users returns the nodes that read each value.
func (c *Code) users() map[*Value][]*Node {
	out := map[*Value][]*Node{}
	for _, n := range c.Nodes {
		for _, v := range n.Args() {
			if us := out[v]; len(us) == 0 || us[len(us)-1] != n {
				out[v] = append(us, n)
			}
		}
	}
	return out
}

// count returns how many nodes compute something.
func (c *Code) count() int {
	n := 0
	for _, m := range c.Nodes {
		if m.Kind != Input && m.Kind != Constant {
			n++
		}
	}
	return n
}
