package graph

import (
	"fmt"
	"slices"
	"strings"

	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// Scope is a part of traced code that has a name: the call of a module or of a
// graph.
type Scope struct {
	Kind    string // MODULE or GRAPH
	Name    string // "encoder.0"
	Class   string // "torch.nn.Linear(3, 2)"
	Inputs  []*Value
	Outputs []*Value
	State   []ScopeState

	module      *nn.Module
	first, last int // its nodes are those from first to before last
}

// ScopeState is a parameter or buffer of a Scope.
type ScopeState struct {
	Kind  nn.Kind
	Name  string
	Value *Value
}

// The kinds of Scopes.
const (
	ModuleScope = "MODULE"
	GraphScope  = "GRAPH"
)

// Describing has the builder keep what Level Modules tells; without it a Scope
// costs nothing.
func (b *Builder) Describing() { b.scopes = &scopes{names: map[*nn.Module]string{}} }

// scopes are the parts of what a builder records.
type scopes struct {
	names map[*nn.Module]string
	open  []*Scope
}

// EnterModule begins a module's call, which leave ends.
func (b *Builder) EnterModule(m *nn.Module, args op.Args) (leave func(out []op.Value)) {
	return b.EnterNamed("", m, args, func(v op.Value) *Value {
		value, _ := v.(*Value)
		return value
	})
}

// EnterNamed is EnterModule for a module of a name, where the values of the
// builder are what of tells; "" is the name by which the module is known.
func (b *Builder) EnterNamed(name string, m *nn.Module, args op.Args, of func(op.Value) *Value) (leave func(out []op.Value)) {
	if b.scopes == nil {
		return func([]op.Value) {}
	}
	if name == "" {
		name = b.scopes.nameOf(m)
	}
	s := &Scope{Kind: ModuleScope, Name: name, Class: m.Def.Name() + "(" + argsText(m.Args, false) + ")", Inputs: values(args.AllValues(), of), module: m, first: len(b.code.Nodes)}
	for _, slot := range m.OwnState() {
		s.State = append(s.State, ScopeState{slot.Kind, slot.Name, of(m.Value(slot.Name))})
	}
	b.code.scopes = append(b.code.scopes, s)
	b.scopes.open = append(b.scopes.open, s)
	return func(out []op.Value) {
		s.Outputs, s.last = values(out, of), len(b.code.Nodes)
		b.scopes.open = b.scopes.open[:len(b.scopes.open)-1]
	}
}

// nameOf is the name that a module was given, or that it has in the module that
// calls it.
func (s *scopes) nameOf(m *nn.Module) string {
	if name, ok := s.names[m]; ok {
		return name
	}
	if len(s.open) == 0 {
		return ""
	}
	parent := s.open[len(s.open)-1]
	name := parent.module.ChildName(m)
	if parent.Name != "" && name != "" {
		name = parent.Name + "." + name
	}
	return name
}

func values(vs []op.Value, of func(op.Value) *Value) []*Value {
	var out []*Value
	for _, v := range vs {
		if v == nil {
			continue
		}
		if value := of(v); value != nil {
			out = append(out, value)
		}
	}
	return out
}

// Within adds a scope around the nodes of the steps from first to before last,
// and around the scopes that were added before.
func (b *Builder) Within(s Scope, first, last int) {
	if b.scopes == nil {
		return
	}
	at := func(step int) int {
		i := slices.IndexFunc(b.code.Nodes, func(n *Node) bool { return n.Step >= step })
		if i < 0 {
			return len(b.code.Nodes)
		}
		return i
	}
	s.first, s.last = at(first), at(last)
	b.code.scopes = slices.Insert(b.code.scopes, 0, &s)
}

// described tells the code's modules and operators: those of its scope of a
// graph, where it has one.
func (c *Code) described(l Level) string {
	whole := &Scope{Kind: GraphScope, Name: c.Name, Inputs: c.Inputs, Outputs: c.Outputs, last: len(c.Nodes)}
	if at := slices.IndexFunc(c.scopes, func(s *Scope) bool { return s.Kind == GraphScope }); at >= 0 {
		whole = c.scopes[at]
	}
	d := description{code: c, level: l}
	// The outer ones come first among those that begin at one node.
	for _, s := range c.scopes {
		if s != whole && s.first >= whole.first && s.last <= whole.last {
			d.scopes = append(d.scopes, s)
		}
	}
	slices.SortStableFunc(d.scopes, func(a, b *Scope) int {
		if a.first != b.first {
			return a.first - b.first
		}
		return b.last - a.last
	})
	d.scope(whole)
	return d.text.String()
}

// description is the text of code on a level.
type description struct {
	code   *Code
	level  Level
	scopes []*Scope // that are not told yet
	depth  int
	text   strings.Builder
}

func (d *description) line(format string, args ...any) {
	d.text.WriteString(strings.Repeat("  ", d.depth) + fmt.Sprintf(format, args...) + "\n")
}

func (d *description) scope(s *Scope) {
	head := "(" + s.Kind + ":" + s.Name
	if s.Class != "" {
		head += ":" + s.Class
	}
	d.line("%s): (", head)
	d.depth++
	d.values("INPUT", s.Inputs)
	for _, e := range s.State {
		if e.Value != nil {
			d.line("(%s:%s:%%%d:%s)", strings.ToUpper(string(e.Kind)), e.Name, e.Value.id, d.typed(e.Value))
		}
	}
	d.nodes(s.first, s.last)
	d.values("OUTPUT", s.Outputs)
	d.depth--
	d.line(")")
}

func (d *description) values(kind string, vs []*Value) {
	told := map[*Value]bool{}
	for _, v := range vs {
		if !told[v] {
			d.line("(%s:%%%d:%s)", kind, v.id, d.typed(v))
		}
		told[v] = true
	}
}

// typed is a value's type, of Details with its strides.
func (d *description) typed(v *Value) string {
	if d.level < Details {
		return v.DType().String() + tensor.ShapeString(v.Shape())
	}
	return fmt.Sprintf("%s%s strides %s, %d bytes", v.DType(), tensor.ShapeString(v.Shape()), tensor.ShapeString(v.Strides()), v.bytes())
}

// nodes tells the nodes from first to before last, and the scopes among them.
func (d *description) nodes(first, last int) {
	for i := first; i <= last; {
		for len(d.scopes) > 0 && d.scopes[0].first < i {
			d.scopes = d.scopes[1:]
		}
		if len(d.scopes) > 0 && d.scopes[0].first == i && d.scopes[0].last <= last {
			s := d.scopes[0]
			d.scopes = d.scopes[1:]
			d.scope(s)
			i = s.last
			continue
		}
		if i == last {
			return
		}
		if d.code.Nodes[i].Of != nil {
			i = d.backward(i, last)
			continue
		}
		d.operator(d.code.Nodes[i])
		i++
	}
}

// backward tells the nodes of a gradient that begin at first, and returns where
// they end.
func (d *description) backward(first, last int) int {
	end := first
	for end < last && d.code.Nodes[end].Of != nil {
		end++
	}
	if d.level < Operators {
		d.line("(BACKWARD: %d nodes)", end-first)
		return end
	}
	d.line("(BACKWARD): (")
	d.depth++
	for _, n := range d.code.Nodes[first:end] {
		d.operator(n)
	}
	d.depth--
	d.line(")")
	return end
}

// operator tells a node that computes.
func (d *description) operator(n *Node) {
	if d.level < Operators || n.Kind != Apply {
		return
	}
	var out []string
	for _, v := range n.Out {
		out = append(out, fmt.Sprintf("%%%d:%s", v.id, d.typed(v)))
	}
	text := fmt.Sprintf("%s = %s(%s), device cpu, sbp %s", strings.Join(out, ", "), n.Call.Def.ID(), argsText(n.Call.Args, d.level >= Details), shardings(n.Call))
	if d.level >= Details {
		text += n.comment()
	}
	d.line("(OPERATOR: %s)", text)
}

// shardings are the ways in which ranks could share a call; on one rank every
// tensor is whole.
func shardings(c *op.Call) string {
	all, err := c.Shardings()
	texts := []string{"B"}
	for _, s := range all {
		texts = append(texts, s.String())
	}
	if err != nil {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, " | ")
}
