package graph

import (
	"fmt"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// groupLimit bounds the calls of one fused loop.
const groupLimit = 32

// fuse puts elementwise calls that read each other's results, all of one shape
// and order in memory, into one node. It runs them block by block, so that
// what passes between them stays in cache and, unless something else reads it,
// is never stored as a whole. The arithmetic is the operators' own.
func fuse(c *Code) (int, error) { return fuseFrom(c, 2) }

// fuseFrom is fuse for groups of at least so many calls.
func fuseFrom(c *Code, least int) (int, error) {
	return (&fuser{least: least, order: flatOrder, apart: (*fuser).detour}).run(c)
}

func (f *fuser) run(c *Code) (int, error) {
	f.unit = map[*Node]*unit{}
	for _, n := range c.Nodes {
		f.place(n)
	}
	return f.emit(c), nil
}

// unit is what is emitted as one node.
type unit struct {
	nodes   []*Node
	order   string // of the elements of all of its results; empty: not to be fused
	emitted bool
}

type fuser struct {
	least int // calls of a group
	order func(n *Node) string
	apart func(f *fuser, u *unit, n *Node) bool
	unit  map[*Node]*unit // of each node
}

// place adds a node to the unit of one that it reads, or to one of its own.
func (f *fuser) place(n *Node) {
	order := f.order(n)
	if order != "" {
		for _, v := range n.Args() {
			u := f.unit[v.node]
			if u.order == order && len(u.nodes) < groupLimit && u.takes(n) && !f.apart(f, u, n) {
				u.nodes = append(u.nodes, n)
				f.unit[n] = u
				return
			}
		}
	}
	f.unit[n] = &unit{nodes: []*Node{n}, order: order}
}

// takes reports whether n may be computed where the unit's first node is: what
// is computed again is not computed early.
func (u *unit) takes(n *Node) bool { return n.Repeats == 0 || n.Repeats == u.nodes[0].Repeats }

// detour reports whether n depends on u through another unit, so that it
// cannot be computed together with u.
func (f *fuser) detour(u *unit, n *Node) bool {
	seen := map[*unit]bool{u: true}
	var leads func(w *unit) bool
	leads = func(w *unit) bool {
		for _, m := range w.nodes {
			for _, v := range m.Args() {
				x := f.unit[v.node]
				if x == u {
					return true
				}
				if !seen[x] {
					seen[x] = true
					if leads(x) {
						return true
					}
				}
			}
		}
		return false
	}
	for _, v := range n.Args() {
		x := f.unit[v.node]
		if !seen[x] {
			seen[x] = true
			if leads(x) {
				return true
			}
		}
	}
	return false
}

// emit orders the units and makes a node of each that has several.
func (f *fuser) emit(c *Code) int {
	users, count := c.users(), 0
	var nodes []*Node
	var visit func(u *unit)
	visit = func(u *unit) {
		if u.emitted {
			return
		}
		u.emitted = true
		for _, n := range u.nodes {
			for _, v := range n.Args() {
				visit(f.unit[v.node])
			}
		}
		if len(u.nodes) < f.least || u.order == "" {
			nodes = append(nodes, u.nodes...)
			return
		}
		count++
		nodes = append(nodes, f.fused(c, u, users))
	}
	for _, n := range c.Nodes {
		visit(f.unit[n])
	}
	c.Nodes = nodes
	return count
}

func (f *fuser) fused(c *Code, u *unit, users map[*Value][]*Node) *Node {
	last := u.nodes[len(u.nodes)-1]
	g := &Node{Kind: Fused, body: u.nodes, Place: last.Place, Step: last.Step}
	f.unit[g] = u
	for _, n := range u.nodes {
		n.spreadArgs()
		for _, v := range n.Out {
			outside := slices.ContainsFunc(users[v], func(m *Node) bool { return f.unit[m] != u })
			if outside || slices.Contains(c.Outputs, v) {
				g.Out = append(g.Out, v)
				v.node = g
			}
		}
	}
	return g
}

// spreadArgs finds how the arguments of an elementwise call lie.
func (n *Node) spreadArgs() {
	n.spreads = nil
	for _, v := range n.Args() {
		s := spreadUnder(v, n.Out[0])
		if s.flat() || tensor.NumElements(v.Shape()) == 1 {
			s = nil
		}
		n.spreads = append(n.spreads, s)
	}
}

// flatOrder returns how the elements of the results of an elementwise call lie
// in memory, if it may run on any range of that memory alone; otherwise it is
// empty. Tensor arguments lie the same way, have one element, or are spread.
func flatOrder(n *Node) string {
	if n.Kind != Apply || !n.pure() || n.Call.Def.SBP == nil || n.Call.Def.View != nil && !n.converts() || slices.ContainsFunc(n.Call.Args.Vals, counts) {
		return ""
	}
	order, size := "", 0
	for _, v := range n.Out {
		o := denseOrder(v)
		if o == "" || order != "" && o != order {
			return ""
		}
		order, size = o, tensor.NumElements(v.Shape())
	}
	if order == "" || !n.broadcasts() || !splits(n.Call, n.Out[0].Shape()) {
		return ""
	}
	flat := *n.Call
	flat.Args = mapped(flat.Args, func(v *Value) op.Value { return flatLayout(v, size) })
	if !sameResults(&flat, n, size) || !splits(&flat, []int{size}) {
		return ""
	}
	return order
}

// broadcasts reports whether the arguments, one of several elements among
// them, broadcast to the shape of the results.
func (n *Node) broadcasts() bool {
	several := false
	for _, v := range n.Args() {
		if spreadUnder(v, n.Out[0]) == nil || tensor.NumElements(v.Shape()) == 0 {
			return false
		}
		several = several || tensor.NumElements(v.Shape()) > 1
	}
	return several
}

// flatLayout is an argument as a block that has all elements of the result.
func flatLayout(v *Value, size int) *Value {
	switch n := tensor.NumElements(v.Shape()); {
	case n == size && denseOrder(v) != "" || n == 1:
		return &Value{layout: flatten(v.layout, size, 0, size)}
	}
	return &Value{layout: tensor.Unset(v.DType(), []int{size}, nil)}
}

// counts reports whether an attribute is an integer or several: it may number
// or measure dimensions, which blocks do not have.
func counts(attribute any) bool {
	switch attribute.(type) {
	case int, []int:
		return true
	}
	return false
}

// denseOrder describes a value of at least two elements that lie without gaps
// or repetition: its strides and sizes, those of size 1 left out. Otherwise it is empty.
func denseOrder(v *Value) string {
	size := tensor.NumElements(v.Shape())
	if size < 2 || tensor.Extent(v.Shape(), v.Strides()) != size || slices.Min(v.Strides()) < 0 {
		return ""
	}
	order := ""
	for i, n := range v.Shape() {
		if n == 1 {
			continue
		}
		if v.Strides()[i] == 0 {
			return ""
		}
		order += fmt.Sprintf("%d:%d ", n, v.Strides()[i])
	}
	return order
}

// flatten returns n elements from position at on of a dense tensor of size
// elements, as one dimension in the order of memory; one of a single element stays whole.
func flatten(t *tensor.Tensor, size, at, n int) *tensor.Tensor {
	shape, strides := []int{n}, []int{1}
	if t.Len() == 1 && size > 1 {
		at = 0
		shape, strides = shape[:min(1, t.Dim())], strides[:min(1, t.Dim())]
		if t.Dim() > 0 {
			shape[0] = 1
		}
	}
	flat, err := tensor.FromBytes(t.DType(), shape, strides, t.Offset()+at, t.Storage())
	if err != nil {
		panic(fmt.Sprintf("graph: a block of %s: %v", t, err))
	}
	return flat
}

// splits reports whether a call's sharding signatures let ranks share every
// axis of its result, which is of the given shape, with all arguments that
// have the axis: that is what being elementwise means.
func splits(c *op.Call, shape []int) bool {
	if c.Def.Reject != nil && c.Def.Reject(c.Args) != nil {
		return false
	}
	all := c.Def.SBP(c.Args)
	for axis, n := range shape {
		if n > 1 && !slices.ContainsFunc(all, func(s op.Sharding) bool { return along(s, c.Args, axis, shape) }) {
			return false
		}
	}
	return true
}

// along reports whether a signature splits an axis of the result and, as
// broadcasting aligns them, of the arguments.
func along(s op.Sharding, a op.Args, axis int, shape []int) bool {
	if s.Even || len(s.Sizes) > 0 || s.Own != nil || len(s.Results) == 0 || slices.ContainsFunc(s.Results, func(r op.SBP) bool { return r != op.S(axis) }) {
		return false
	}
	names := a.ArgNames()
	for i, v := range a.AllValues() {
		if v == nil {
			return false
		}
		want, own := op.B, axis-len(shape)+len(v.Shape())
		if own >= 0 && v.Shape()[own] == shape[axis] {
			want = op.S(own)
		}
		if s.Args[names[i]] != want {
			return false
		}
	}
	return true
}

// sameResults reports whether the flat call has results of the dtypes of n.
func sameResults(flat *op.Call, n *Node, size int) bool {
	metas, err := flat.Infer()
	if err != nil || len(metas) != len(n.Out) {
		return false
	}
	for i, m := range metas {
		if m.DType != n.Out[i].DType() || !slices.Equal(m.Shape, []int{size}) {
			return false
		}
	}
	return true
}
