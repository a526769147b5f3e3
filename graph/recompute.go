package graph

import (
	"slices"

	"plumb/op"
)

// Checkpoint applies a function of values and marks what it records: the
// results of the marked calls are not kept for the gradient, but computed again
// when the gradient begins to read them, with the same draws and so the same
// bits. What others than the gradient read is kept. It costs the time of the
// function once more, and saves its memory (arxiv.org/abs/1604.06174). A marked
// part within another belongs to that.
func (b *Builder) Checkpoint(f func(x ...op.Value) []op.Value, x ...op.Value) []op.Value {
	if b.part != 0 {
		return f(x...)
	}
	b.marked++
	b.part = b.marked
	defer func() { b.part = 0 }()
	return f(x...)
}

// recompute computes the marked parts again before the gradient that reads them.
func recompute(c *Code) (int, error) { return repeating((*Node).again).run(c) }

// again returns a node that repeats n, with results of its own.
func (n *Node) again() *Node {
	m := *n
	m.Repeats = n.Part
	m.Out = slices.Clone(n.Out)
	return &m
}

// repeating makes the node that repeats another.
type repeating func(n *Node) *Node

func (again repeating) run(c *Code) (int, error) {
	before := map[*Node][]*Node{} // the nodes that go before a node
	count := 0
	for _, part := range c.parts() {
		reader, copies := again.part(c, part)
		before[reader] = append(before[reader], copies...)
		count += len(copies)
	}
	if count == 0 {
		return 0, nil
	}
	var nodes []*Node
	for _, n := range c.Nodes {
		nodes = append(append(nodes, before[n]...), n)
	}
	c.Nodes = nodes
	return count, nil
}

// parts returns the nodes of each marked part, in order.
func (c *Code) parts() [][]*Node {
	var out [][]*Node
	at := map[int]int{}
	for _, n := range c.Nodes {
		if n.Part == 0 || n.Repeats != 0 || n.Kind == Constant {
			continue
		}
		if _, seen := at[n.Part]; !seen {
			at[n.Part] = len(out)
			out = append(out, nil)
		}
		out[at[n.Part]] = append(out[at[n.Part]], n)
	}
	return out
}

// part repeats those nodes of a part that the gradient needs, and returns the
// first node that reads what they make.
func (again repeating) part(c *Code, part []*Node) (first *Node, copies []*Node) {
	inner := c.inner(part)
	need := map[*Value]bool{}
	var readers []*Node
	for _, n := range c.Nodes {
		reads := false
		for _, v := range n.Args() {
			if n.Of != nil && inner[v] {
				need[v], reads = true, true
			}
		}
		if reads {
			readers = append(readers, n)
		}
	}
	if len(readers) == 0 {
		return nil, nil
	}
	for _, n := range slices.Backward(part) {
		if slices.ContainsFunc(n.Out, func(v *Value) bool { return need[v] }) {
			for _, v := range n.Args() {
				need[v] = need[v] || inner[v]
			}
		}
	}
	by := map[*Value]*Value{}
	instead := func(v *Value) *Value {
		if u := by[v]; u != nil {
			return u
		}
		return v
	}
	for _, n := range part {
		if !slices.ContainsFunc(n.Out, func(v *Value) bool { return need[v] }) {
			continue
		}
		m := again(n)
		m.replace(instead)
		for i, v := range n.Out {
			u := *v
			u.node, u.id = m, c.values
			c.values++
			m.Out[i] = &u
			if inner[v] {
				by[v] = &u
			}
		}
		copies = append(copies, m)
	}
	for _, n := range readers {
		n.replace(instead)
	}
	return readers[0], copies
}

// inner returns those results of a part that only the part and gradients read.
func (c *Code) inner(part []*Node) map[*Value]bool {
	inner, own := map[*Value]bool{}, map[*Node]bool{}
	for _, n := range part {
		own[n] = true
		for _, v := range n.Out {
			inner[v] = true
		}
	}
	for _, n := range c.Nodes {
		if !own[n] && n.Of == nil {
			for _, v := range n.Args() {
				delete(inner, v)
			}
		}
	}
	for _, v := range c.Outputs {
		delete(inner, v)
	}
	return inner
}
