package graph

import (
	"fmt"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// String returns the graph as text: a line for each node, values as %id.
func (c *Code) String() string { return c.text(false) }

func (c *Code) text(places bool) string {
	var b strings.Builder
	for _, n := range c.Nodes {
		line := n.text()
		if places {
			line = fmt.Sprintf("%-60s%s", line, n.comment())
		}
		b.WriteString(line + "\n")
		for _, m := range n.body {
			b.WriteString("    " + m.text() + "\n")
		}
	}
	b.WriteString("return " + names(c.Outputs) + "\n")
	return b.String()
}

// comment says where the node was traced, what it differentiates and that it
// is there a second time.
func (n *Node) comment() string {
	var parts []string
	if n.Repeats != 0 {
		parts = append(parts, fmt.Sprintf("part %d again", n.Repeats))
	}
	if n.Place != "" {
		parts = append(parts, n.Place)
	}
	if n.Of != nil {
		parts = append(parts, "gradient of "+n.Of.Origin())
	}
	if len(parts) == 0 {
		return ""
	}
	return " # " + strings.Join(parts, ": ")
}

func (n *Node) text() string {
	var left []string
	for _, v := range n.Out {
		left = append(left, fmt.Sprintf("%%%d %s", v.id, describe(v)))
	}
	right := ""
	switch n.Kind {
	case Input:
		right = "input " + n.Name
	case Constant:
		right = "constant"
	case Apply:
		right = callText(n.Call)
	case Arrange:
		right = fmt.Sprintf("arrange(%%%d)", n.source.id)
	case Fused:
		right = fmt.Sprintf("fused(%s)", names(n.Args()))
	}
	return strings.Join(left, ", ") + " = " + right
}

func callText(c *op.Call) string { return c.Def.ID() + "(" + argsText(c.Args, false) + ")" }

// argsText writes arguments, those at their defaults only where asked for.
func argsText(a op.Args, defaults bool) string {
	var parts []string
	for i, v := range a.Vals {
		p := a.Sig.Params[i]
		if _, tensor := v.(*Value); !tensor && !defaults && fmt.Sprint(v) == fmt.Sprint(p.Default) {
			continue
		}
		text := argText(v)
		if i > 0 {
			text = p.Name + "=" + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func argText(v any) string {
	switch v := v.(type) {
	case *Value:
		return fmt.Sprintf("%%%d", v.id)
	case op.Scalar:
		return fmt.Sprint(v.Any())
	case []op.Value:
		var parts []string
		for _, e := range v {
			parts = append(parts, argText(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []op.Scalar:
		var parts []string
		for _, e := range v {
			parts = append(parts, argText(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case [][]int:
		var parts []string
		for _, e := range v {
			parts = append(parts, argText(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case op.Index:
		return argText([]any(v))
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, argText(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case op.Slice:
		return partText(v.Start) + ":" + partText(v.Stop) + ":" + partText(v.Step)
	case nil:
		return "None"
	}
	return fmt.Sprint(v)
}

func partText(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func names(vs []*Value) string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, fmt.Sprintf("%%%d", v.id))
	}
	return strings.Join(parts, ", ")
}

// describe returns dtype and shape, and the strides where they are not contiguous.
func describe(v *Value) string {
	text := v.DType().String() + tensor.ShapeString(v.Shape())
	if !tensor.Contiguous.Matches(v.Shape(), v.Strides()) {
		text += fmt.Sprintf("/%v", v.Strides())
	}
	return text
}

// Dot returns the graph in the language of Graphviz.
func (c *Code) Dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n\tnode [shape=box, fontname=monospace];\n", c.Name)
	for i, n := range c.Nodes {
		label := n.op()
		switch n.Kind {
		case Input:
			label = n.Name
		case Fused:
			label = "fused"
			for _, m := range n.body {
				label += "\n" + m.op()
			}
		}
		fmt.Fprintf(&b, "\tn%d [label=%q];\n", i, label)
	}
	at := map[*Value]int{}
	for i, n := range c.Nodes {
		for _, v := range n.Args() {
			fmt.Fprintf(&b, "\tn%d -> n%d [label=%q];\n", at[v], i, describe(v))
		}
		for _, v := range n.Out {
			at[v] = i
		}
	}
	for i, v := range c.Outputs {
		fmt.Fprintf(&b, "\tout%d [label=\"output %d\", shape=oval];\n\tn%d -> out%d [label=%q];\n", i, i, at[v], i, describe(v))
	}
	b.WriteString("}\n")
	return b.String()
}
