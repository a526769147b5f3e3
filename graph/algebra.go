package graph

import (
	"reflect"

	"plumb/op"
)

// rule returns a value that the node's first result equals in every bit; nil
// where it knows none.
type rule func(n *Node) *Value

// algebra puts equal values in the place of results, where dtype, shape and
// strides are the same too.
func algebra(c *Code) (int, error) {
	count := 0
	for _, n := range c.Nodes {
		if n.Kind != Apply || !n.pure() || len(n.Out) != 1 {
			continue
		}
		for _, r := range []rule{idempotent, involution, neutral} {
			if v := r(n); v != nil && v != n.Out[0] && alike(v, n.Out[0]) {
				c.substitute(map[*Value]*Value{n.Out[0]: v})
				count++
				break
			}
		}
	}
	return count, nil
}

// again returns the node that makes the first argument, if it is a call that
// differs from n in that argument alone.
func again(n *Node) *Node {
	x, ok := n.Call.Args.Vals[0].(*Value)
	if !ok || x.node.Kind != Apply || x.node.Call.Def != n.Call.Def || len(x.node.Out) != 1 {
		return nil
	}
	for i, v := range n.Call.Args.Vals[1:] {
		if !reflect.DeepEqual(v, x.node.Call.Args.Vals[i+1]) {
			return nil
		}
	}
	return x.node
}

// bitwise reports whether a trait of the operator holds in every bit.
func bitwise(n *Node, t op.Trait) bool {
	return n.Call.Def.Traits.Has(t) && n.Call.Def.Tol.Class == op.Exact
}

// idempotent: f(f(x)) = f(x).
func idempotent(n *Node) *Value {
	if !bitwise(n, op.Idempotent) {
		return nil
	}
	if m := again(n); m != nil {
		return m.Out[0]
	}
	return nil
}

// involution: f(f(x)) = x.
func involution(n *Node) *Value {
	if !bitwise(n, op.Involution) {
		return nil
	}
	if m := again(n); m != nil {
		return m.Call.Args.Vals[0].(*Value)
	}
	return nil
}

// neutral: f(x, c) = x for a number c such as 1 in a product. Complex products
// with 1 turn infinities into NaN.
func neutral(n *Node) *Value {
	a, isNeutral := n.Call.Args, n.Call.Def.Neutral
	if isNeutral == nil {
		return nil
	}
	x, isValue := a.Vals[0].(*Value)
	s, isScalar := a.Vals[1].(op.Scalar)
	if !isValue || !isScalar || x.DType().IsComplex() || s.DType().IsComplex() || !isNeutral(a) {
		return nil
	}
	return x
}
