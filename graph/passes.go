package graph

import (
	"fmt"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// dead leaves out nodes that no output depends on. Inputs stay.
func dead(c *Code) (int, error) {
	wanted := map[*Value]bool{}
	for _, v := range c.Outputs {
		wanted[v] = true
	}
	var kept []*Node
	for i := len(c.Nodes) - 1; i >= 0; i-- {
		n := c.Nodes[i]
		if n.Kind != Input && !slices.ContainsFunc(n.Out, func(v *Value) bool { return wanted[v] }) {
			continue
		}
		for _, v := range n.Args() {
			wanted[v] = true
		}
		kept = append(kept, n)
	}
	slices.Reverse(kept)
	gone := len(c.Nodes) - len(kept)
	c.Nodes = kept
	return gone, nil
}

// foldLimit bounds the bytes of a result that is computed at compile time.
const foldLimit = 1 << 16

// fold computes nodes of which every argument is a constant. What fails stays,
// to fail when the graph runs.
func fold(c *Code) (int, error) {
	count := 0
	var nodes []*Node
	for _, n := range c.Nodes {
		ts := folded(n)
		if ts == nil {
			nodes = append(nodes, n)
			continue
		}
		count++
		for i, v := range n.Out {
			v.node = &Node{Kind: Constant, Const: ts[i], Out: []*Value{v}, Place: n.Place, Step: n.Step}
			nodes = append(nodes, v.node)
		}
	}
	c.Nodes = nodes
	return count, nil
}

func folded(n *Node) []*tensor.Tensor {
	if n.Kind != Apply || !n.pure() {
		return nil
	}
	size := 0
	for _, v := range n.Out {
		size += v.bytes()
	}
	if size > foldLimit || slices.ContainsFunc(n.Args(), func(v *Value) bool { return v.node.Kind != Constant }) {
		return nil
	}
	call := *n.Call
	call.Args = mapped(call.Args, func(v *Value) op.Value { return v.node.Const })
	ts, err := call.Execute()
	if err != nil {
		return nil
	}
	for i, v := range n.Out {
		if !sameMeta(ts[i], v) {
			return nil
		}
	}
	return ts
}

// casts leaves out a conversion of a conversion: x itself where the second one
// returns to the dtype of x, the first where it loses nothing.
func casts(c *Code) (int, error) {
	count := 0
	for _, n := range c.Nodes {
		if !n.converts() {
			continue
		}
		inner := n.Args()[0].node
		if !inner.converts() {
			continue
		}
		x := inner.Args()[0]
		if !holds(inner.Out[0].DType(), x.DType()) {
			continue
		}
		if alike(x, n.Out[0]) {
			c.substitute(map[*Value]*Value{n.Out[0]: x})
			count++
			continue
		}
		if short := n.with(x); x.DType() != n.Out[0].DType() && short != nil {
			n.Call = short
			count++
		}
	}
	return count, nil
}

// converts reports whether the node is a conversion to another dtype.
func (n *Node) converts() bool {
	if n.Kind != Apply || n.Call.Def.View == nil || n.viewed > 0 || len(n.Args()) != 1 {
		return false
	}
	x, y := n.Args()[0], n.Out[0]
	return x.DType() != y.DType() && slices.Equal(x.Shape(), y.Shape())
}

// with returns a conversion of x instead of its argument; nil where its result
// would not be like that of n.
func (n *Node) with(x *Value) *op.Call {
	call := *n.Call
	call.Args = mapped(call.Args, func(*Value) op.Value { return x })
	t, err := call.Def.View(laid(call.Args))
	if err != nil || !sameMeta(t, n.Out[0]) {
		return nil
	}
	return &call
}

// holders are the dtypes that have every value of one.
var holders = map[tensor.DType][]tensor.DType{
	tensor.Bool: {tensor.U8, tensor.I8, tensor.I16, tensor.I32, tensor.I64, tensor.F16, tensor.BF16, tensor.F32, tensor.F64},
	tensor.U8:   {tensor.I16, tensor.I32, tensor.I64, tensor.F16, tensor.BF16, tensor.F32, tensor.F64},
	tensor.I8:   {tensor.I16, tensor.I32, tensor.I64, tensor.F16, tensor.BF16, tensor.F32, tensor.F64},
	tensor.I16:  {tensor.I32, tensor.I64, tensor.F32, tensor.F64},
	tensor.I32:  {tensor.I64, tensor.F64},
	tensor.F16:  {tensor.F32, tensor.F64},
	tensor.BF16: {tensor.F32, tensor.F64},
	tensor.F32:  {tensor.F64},
	tensor.C64:  {tensor.C128},
}

// holds reports whether wide has every value of a dtype.
func holds(wide, d tensor.DType) bool { return slices.Contains(holders[d], wide) }

// common computes equal pure calls once, and keeps one of equal constants.
func common(c *Code) (int, error) {
	first := map[string]*Node{}
	count := 0
	for _, n := range c.Nodes {
		key := n.key()
		if key == "" {
			continue
		}
		m := first[key]
		if m == nil {
			first[key] = n
			continue
		}
		by := map[*Value]*Value{}
		for i, v := range n.Out {
			if alike(v, m.Out[i]) {
				by[v] = m.Out[i]
			}
		}
		if len(by) == len(n.Out) {
			c.substitute(by)
			count++
		}
	}
	return count, nil
}

// constantLimit bounds the bytes of constants that are compared.
const constantLimit = 1 << 12

// key returns a text that nodes share that compute the same; empty for none.
func (n *Node) key() string {
	switch {
	case n.Kind == Constant && n.Out[0].bytes() <= constantLimit:
		return fmt.Sprintf("constant %s%v%v %x", n.Const.DType(), n.Const.Shape(), n.Const.Strides(), n.Const.Bytes())
	case n.Kind == Arrange:
		return fmt.Sprintf("arrange %%%d %v", n.source.id, n.Out[0].Strides())
	case n.Kind == Apply && n.pure():
		key := n.Call.Def.ID()
		for _, v := range n.Call.Args.Vals {
			key += " " + argKey(v)
		}
		return key
	}
	return ""
}

func argKey(v any) string {
	switch v := v.(type) {
	case *Value:
		return fmt.Sprintf("%%%d", v.id)
	case op.Scalar:
		return fmt.Sprintf("%T(%v)", v.Any(), v.Any())
	case []op.Value:
		key := "["
		for _, e := range v {
			key += argKey(e) + " "
		}
		return key + "]"
	case []op.Scalar:
		key := "["
		for _, e := range v {
			key += argKey(e) + " "
		}
		return key + "]"
	case []string:
		return fmt.Sprintf("%q", v)
	case op.Index:
		return argKey([]any(v))
	case []any:
		key := "["
		for _, e := range v {
			key += argKey(e) + " "
		}
		return key + "]"
	case op.Slice:
		return "slice" + partKey(v.Start) + partKey(v.Stop) + partKey(v.Step)
	}
	return fmt.Sprintf("%T(%v)", v, v)
}

func partKey(n *int) string {
	if n == nil {
		return ":"
	}
	return fmt.Sprintf(":%d", *n)
}

func sameMeta(t *tensor.Tensor, v *Value) bool {
	return t.DType() == v.DType() && slices.Equal(t.Shape(), v.Shape()) && slices.Equal(t.Strides(), v.Strides())
}
