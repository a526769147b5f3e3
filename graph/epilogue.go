package graph

import "slices"

// epilogue joins a linear, a matmul or a convolution to the elementwise calls
// that follow: they run on each part of the result as soon as its kernel is
// done with it, while it is in cache. The kernels are the operators' own.
func epilogue(c *Code) (int, error) {
	return (&joiner{code: c, order: flatOrder, after: (*joiner).later}).run()
}

// joiner joins heads to loops.
type joiner struct {
	code  *Code
	order func(n *Node) string
	// after reports whether a head may run as late as the loop.
	after func(j *joiner, head, loop *Node) bool
	users map[*Value][]*Node
	at    map[*Node]int
}

func (j *joiner) run() (int, error) {
	j.users, j.at = j.code.users(), map[*Node]int{}
	for i, n := range j.code.Nodes {
		j.at[n] = i
	}
	gone := map[*Node]bool{}
	for i, n := range j.code.Nodes {
		head := j.head(n, gone)
		if head == nil {
			continue
		}
		gone[head] = true
		j.code.Nodes[i] = j.joined(head, n)
		j.at[j.code.Nodes[i]] = i
	}
	j.code.Nodes = slices.DeleteFunc(j.code.Nodes, func(n *Node) bool { return gone[n] })
	return len(gone), nil
}

// head returns what may be joined to a node; nil for none.
func (j *joiner) head(n *Node, gone map[*Node]bool) *Node {
	if n.Kind != Fused && (n.Kind != Apply || j.order(n) == "") {
		return nil
	}
	for _, v := range n.Args() {
		h := v.node
		if h.reports() && !gone[h] && h != n && denseOrder(v) == denseOrder(n.Out[0]) && j.after(j, h, n) {
			return h
		}
	}
	return nil
}

// reports reports whether a node is a call whose kernel tells of the parts of
// its only result that are final.
func (n *Node) reports() bool {
	if n.Kind != Apply || !n.pure() || len(n.Out) != 1 || n.Call.Def.View != nil || denseOrder(n.Out[0]) == "" {
		return false
	}
	k, err := n.Call.Def.Kernel(laid(n.Call.Args))
	return err == nil && k.Reports
}

// later reports whether nothing reads the head's result before the loop.
func (j *joiner) later(head, loop *Node) bool {
	return !slices.ContainsFunc(j.users[head.Out[0]], func(n *Node) bool { return j.at[n] < j.at[loop] })
}

// joined is the node that runs both. Its first result is the head's, which has
// memory of its own or that of a result of the loop.
func (j *joiner) joined(head, loop *Node) *Node {
	g := &Node{Kind: Fused, headed: true, body: []*Node{head}, Out: []*Value{head.Out[0]}, Place: loop.Place, Step: loop.Step}
	if loop.Kind == Fused {
		g.body = append(g.body, loop.body...)
	} else {
		loop.spreadArgs()
		g.body = append(g.body, loop)
	}
	g.Out = append(g.Out, loop.Out...)
	for _, v := range g.Out {
		v.node = g
	}
	return g
}
