// Package gen holds generators: lazy descriptions of random values that a test
// combines and passes to operators. A generator draws only from package
// choice, at most once per case: the same generator used twice gives the same
// value, which is how two shapes are tied. What is drawn is typed by the
// parameter that the generator is passed to.
//
// The vocabulary and its semantics are those of OneFlow's AutoTest.
package gen

import (
	"fmt"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// Node is a generator. It is not changed by drawing, so that one generator may
// serve many cases at the same time; what it drew is kept in the Case.
type Node struct {
	rule  rule
	kids  []*Node
	typ   Type // given while the test file was loaded; the zero Type when not
	depth int
}

// rule is what one kind of generator does.
type rule interface {
	draw(c *Case, n *Node) (any, error)
	name() string
}

// Case holds what the generators of one case have drawn. It is used by one
// goroutine.
type Case struct {
	*choice.Source
	// Devices are the devices of the run; the first is the default. Empty
	// means "cpu".
	Devices []string
	// Complex makes random tensors of dtype float complex.
	Complex bool
	// Float is the dtype of random tensors that would be float32; Invalid
	// leaves them.
	Float tensor.DType
	// Integers makes the elements of random float tensors small integers: sums
	// of their products are exact in any order.
	Integers bool
	// Layouts are those of random tensors that name none; nil is contiguous.
	Layouts []Layout
	// Special are kinds of edge values for every random tensor.
	Special program.Special
	// Generic leaves ties and kinks out of random tensors: what a test asserts of its
	// values holds of generic ones.
	Generic bool
	// MaxBytes bounds the size of a random tensor; 0 is the package's MaxBytes.
	MaxBytes int
	// Caller is for the functions of Custom generators.
	Caller any

	values map[*Node]any
	types  map[*Node]Type
}

// NewCase returns a case without values.
func NewCase(src *choice.Source, devices ...string) *Case {
	return &Case{Source: src, Devices: devices, values: map[*Node]any{}, types: map[*Node]Type{}}
}

// Missing is the value of nothing(): an argument that is left out.
type Missing struct{}

// maxDepth bounds the nesting of generators, which a loop can build.
const maxDepth = 1000

func newNode(r rule, kids ...*Node) *Node {
	n := &Node{rule: r, kids: kids}
	for _, k := range kids {
		n.depth = max(n.depth, k.depth+1)
	}
	return n
}

// Value returns what the generator gives in this case: nil, bool, int64,
// float64, complex128, program.Tuple, program.List, Missing, *Tensor,
// tensor.DType, or the value that a constant holds.
func (n *Node) Value(c *Case) (any, error) {
	if v, ok := c.values[n]; ok {
		return v, nil
	}
	if n.depth > maxDepth {
		return nil, fmt.Errorf("a generator is nested more than %d deep", maxDepth)
	}
	v, err := n.rule.draw(c, n)
	if err != nil {
		return nil, err
	}
	c.values[n] = v
	return v, nil
}

// Eval forgets what the generator and its parts drew and draws again.
func (n *Node) Eval(c *Case) (any, error) {
	n.forget(c)
	return n.Value(c)
}

func (n *Node) forget(c *Case) {
	if n.depth > maxDepth {
		return
	}
	delete(c.values, n)
	for _, k := range n.kids {
		k.forget(c)
	}
}

// To types every random in the generator that has no type yet. With a nil
// case the type holds for all cases.
func (n *Node) To(c *Case, t Type) {
	if n.depth > maxDepth {
		return
	}
	switch n.rule.(type) {
	case random:
		n.setType(c, t)
	case randomTensor:
	default:
		for _, k := range n.kids {
			k.To(c, t)
		}
	}
}

func (n *Node) setType(c *Case, t Type) {
	switch {
	case n.typ.kind != untyped:
	case c == nil:
		n.typ = t
	case c.types[n].kind == untyped:
		c.types[n] = t
	}
}

// Untyped returns the first random in the generator that cannot be drawn yet
// because it has no type; nil when there is none.
func (n *Node) Untyped(c *Case) *Node {
	if _, drawn := c.values[n]; drawn || n.depth > maxDepth {
		return nil
	}
	switch n.rule.(type) {
	case random:
		if n.typeIn(c).kind == untyped {
			return n
		}
		return nil
	case randomTensor:
		return nil
	}
	for _, k := range n.kids {
		if u := k.Untyped(c); u != nil {
			return u
		}
	}
	return nil
}

func (n *Node) typeIn(c *Case) Type {
	if n.typ.kind != untyped {
		return n.typ
	}
	return c.types[n]
}

// Size counts the leaves among which "|" chooses uniformly.
func (n *Node) Size() int {
	switch r := n.rule.(type) {
	case oneOf:
		return r.leaves
	case custom:
		return r.leaves
	}
	return 1
}

// String prints the generator as a test writes it.
func (n *Node) String() string {
	if c, ok := n.rule.(constant); ok {
		return fmt.Sprint(c.v)
	}
	if n.depth > 8 {
		return n.rule.name() + "(…)"
	}
	var parts []string
	for _, k := range n.kids {
		parts = append(parts, k.String())
	}
	return n.rule.name() + "(" + strings.Join(parts, ", ") + ")"
}

// UntypedError says that a random has no type: it was not passed to a
// parameter whose type is known, and has no .to(type).
type UntypedError struct{ Node *Node }

// Error suggests what to write.
func (e *UntypedError) Error() string {
	return fmt.Sprintf("%s has no type here; write %s.to(int), .to(float) or .to(bool)", e.Node, e.Node)
}

// pack makes a generator of a plain value.
func pack(v any) *Node {
	if n, ok := v.(*Node); ok {
		return n
	}
	return Constant(v)
}

func packAll(vs []any) []*Node {
	nodes := make([]*Node, len(vs))
	for i, v := range vs {
		nodes[i] = pack(v)
	}
	return nodes
}
