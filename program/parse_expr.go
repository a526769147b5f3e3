package program

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"plumb/tensor"
)

func (r *reader) expr() node {
	if r.depth++; r.depth > maxDepth {
		r.fail(r.peek().col, "expression is nested too deeply")
	}
	defer func() { r.depth-- }()
	left := r.operand()
	if target, ok := infixTarget[r.peek().text]; ok && r.peek().kind == tPunct {
		r.at++
		return node{col: left.col, op: target, args: []node{left, r.operand()}}
	}
	return left
}

func (r *reader) operand() node {
	t := r.peek()
	if r.accept("-") {
		n := r.postfix()
		switch v := n.value.(type) {
		case int64:
			return node{col: t.col, value: -v}
		case uint64:
			if v == 1<<63 {
				return node{col: t.col, value: int64(math.MinInt64)}
			}
		case float64:
			return node{col: t.col, value: -v}
		case Ref:
			return node{col: t.col, op: "operator.neg", args: []node{n}}
		}
		r.fail(t.col, "cannot negate this")
	}
	if r.accept("~") {
		return node{col: t.col, op: "operator.invert", args: []node{r.postfix()}}
	}
	return r.postfix()
}

func (r *reader) postfix() node {
	n := r.atom()
	for {
		switch {
		case r.is(".") && n.op == "":
			r.at++
			name := r.next()
			if name.kind != tName {
				r.fail(name.col, "expected a name after the dot")
			}
			recv := n
			if r.is("(") {
				n = r.arguments(node{col: name.col, op: "call", name: name.text, recv: &recv})
			} else {
				n = node{col: name.col, op: "attr", name: name.text, recv: &recv}
			}
		case r.is("(") && n.op == "":
			recv := n
			n = r.arguments(node{col: n.col, op: "call", recv: &recv})
		case r.is("[") && n.op == "":
			recv := n
			n = node{col: n.col, op: "index", recv: &recv, args: []node{r.index()}}
		default:
			return n
		}
	}
}

func (r *reader) atom() node {
	t := r.next()
	switch t.kind {
	case tName:
		return r.name(t)
	case tInt:
		if v, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			return node{col: t.col, value: v}
		}
		v, err := strconv.ParseUint(t.text, 10, 64)
		if err != nil {
			r.fail(t.col, "integer %s is out of range", t.text)
		}
		return node{col: t.col, value: v}
	case tFloat:
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			r.fail(t.col, "number %s is out of range", t.text)
		}
		return node{col: t.col, value: v}
	case tString:
		return node{col: t.col, value: t.text}
	}
	switch {
	case t.kind == tPunct && t.text == "(":
		return node{col: t.col, value: r.tuple()}
	case t.kind == tPunct && t.text == "[":
		vs, _ := r.sequence("]")
		return node{col: t.col, value: List(vs)}
	case t.kind == tPunct && t.text == "...":
		return node{col: t.col, value: Ellipsis{}}
	}
	r.fail(t.col, "unexpected %q", t.text)
	return node{}
}

func (r *reader) tuple() any {
	vs, comma := r.sequence(")")
	if len(vs) == 1 && !comma {
		return vs[0]
	}
	return Tuple(vs)
}

// sequence reads values up to the closing bracket; comma reports a trailing one.
func (r *reader) sequence(end string) (vs []any, comma bool) {
	for !r.accept(end) {
		vs = append(vs, r.value(r.expr()))
		comma = r.accept(",")
		if !comma && !r.is(end) {
			r.fail(r.peek().col, "expected %q or \",\", found %q", end, r.peek().text)
		}
	}
	return vs, comma
}

func (r *reader) index() node {
	r.expect("[")
	col := r.peek().col
	var parts []any
	comma := false
	for !r.accept("]") {
		parts = append(parts, r.indexPart())
		comma = r.accept(",")
		if !comma && !r.is("]") {
			r.fail(r.peek().col, "expected \"]\" or \",\", found %q", r.peek().text)
		}
	}
	if len(parts) == 1 && !comma {
		return node{col: col, value: parts[0]}
	}
	if len(parts) == 0 {
		r.fail(col, "empty index")
	}
	return node{col: col, value: Tuple(parts)}
}

func (r *reader) indexPart() any {
	var part [3]any
	colons := 0
	for {
		switch {
		case r.accept(":"):
			if colons++; colons > 2 {
				r.fail(r.peek().col, "too many colons in a slice")
			}
		case r.is(",") || r.is("]"):
			if colons == 0 {
				return part[0]
			}
			return Slice{part[0], part[1], part[2]}
		default:
			part[colons] = r.value(r.expr())
			if !r.is(":") && !r.is(",") && !r.is("]") {
				r.fail(r.peek().col, "unexpected %q in an index", r.peek().text)
			}
		}
	}
}

func (r *reader) arguments(n node) node {
	r.expect("(")
	for !r.accept(")") {
		t := r.peek()
		if t.kind == tName && r.toks[r.at+1].kind == tPunct && r.toks[r.at+1].text == "=" {
			r.at += 2
			n.kwargs = append(n.kwargs, namedNode{t.text, r.expr()})
		} else {
			n.args = append(n.args, r.expr())
		}
		if !r.accept(",") && !r.is(")") {
			r.fail(r.peek().col, "expected \")\" or \",\", found %q", r.peek().text)
		}
	}
	return n
}

// name reads what begins with a name: a constant, a defined value, or a dotted
// public name with its arguments.
func (r *reader) name(t token) node {
	switch t.text {
	case "None":
		return node{col: t.col}
	case "True", "False":
		return node{col: t.col, value: t.text == "True"}
	}
	if _, ok := r.kinds[t.text]; ok {
		return node{col: t.col, value: Ref(t.text)}
	}
	dotted := t.text
	for r.is(".") {
		r.at++
		part := r.next()
		if part.kind != tName {
			r.fail(part.col, "expected a name after the dot")
		}
		dotted += "." + part.text
	}
	if r.is("(") {
		return r.function(r.arguments(node{col: t.col, op: "call", name: dotted}))
	}
	if strings.HasPrefix(dotted, "torch.") {
		if d, err := tensor.ParseDType(dotted); err == nil {
			return node{col: t.col, value: d}
		}
		if f, err := tensor.ParseMemoryFormat(dotted); err == nil {
			return node{col: t.col, value: f}
		}
	}
	r.fail(t.col, "%s is not defined", dotted)
	return node{}
}

// roots are what the names of functions begin with; CustomizedTest has those that DIOPI's
// interface has and PyTorch has not.
var roots = []string{"torch.", "torchvision.", "operator.", OwnPrefix, "CustomizedTest."}

// function evaluates the calls that are literals: float("inf"), complex(…), slice(…).
func (r *reader) function(n node) node {
	switch n.name {
	case "float":
		if len(n.args) == 1 {
			if v, err := strconv.ParseFloat(r.str(n.args[0]), 64); err == nil {
				return node{col: n.col, value: v}
			}
		}
		r.fail(n.col, `expected float("nan"), float("inf") or float("-inf")`)
	case "complex":
		if len(n.args) == 2 {
			return node{col: n.col, value: complex(r.float(n.args[0]), r.float(n.args[1]))}
		}
		r.fail(n.col, "complex takes two numbers")
	case "slice":
		if len(n.args) == 3 {
			v := r.values(n.args)
			return node{col: n.col, value: Slice{v[0], v[1], v[2]}}
		}
		r.fail(n.col, "slice takes start, stop and step")
	case "tensor", "case", "getattr", "setattr":
		return n
	}
	if dists[n.name] != 0 {
		return n
	}
	if !slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(n.name, root) }) {
		r.fail(n.col, "%s is not defined", n.name)
	}
	return n
}
