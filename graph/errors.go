package graph

import (
	"errors"
	"fmt"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// CaptureError says that something cannot be part of a static graph.
type CaptureError struct {
	Op     string
	Reason string
}

// Error names the operator and the reason.
func (e *CaptureError) Error() string {
	return fmt.Sprintf("%s cannot be captured in a graph: %s", e.Op, e.Reason)
}

// Error is a failure of a node, or of a pass.
type Error struct {
	Graph string
	Pass  string // that failed, or that made the node; empty for neither
	Node  string // the operator, with the dtypes and shapes of its arguments
	Place string // where it was traced: its call in the program, or the line in a Go file
	// Of is the call of whose gradient the node is part, with its place.
	Of   string
	Step int
	Err  error
}

// Error names the graph, the pass, the place, the call that is differentiated,
// the node and the cause.
func (e *Error) Error() string {
	var parts []string
	if e.Graph != "" {
		parts = append(parts, "graph "+e.Graph)
	}
	if e.Pass != "" {
		parts = append(parts, "pass "+e.Pass)
	}
	if e.Place != "" {
		parts = append(parts, e.Place)
	}
	if e.Of != "" {
		parts = append(parts, "gradient of "+e.Of)
	}
	if e.Node != "" {
		parts = append(parts, e.Node)
	}
	return strings.Join(parts, ": ") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failure wraps what a node failed with; of a fused one, the call in it.
func (c *Code) Failure(n *Node, err error) error {
	var inner *bodyError
	switch {
	case errors.As(err, &inner):
		e := inner.node.failed(inner.err)
		e.Graph, e.Pass = c.Name, "fuse"
		if n.headed {
			e.Pass = "epilogue"
		}
		return e
	case n.Repeats != 0:
		e := n.failed(err)
		e.Graph, e.Pass = c.Name, "recompute"
		return e
	}
	e := n.failed(err)
	e.Graph = c.Name
	return e
}

// failed says which node failed.
func (n *Node) failed(err error) *Error {
	e := &Error{Node: n.op() + shapes(n.Args()), Place: n.Place, Step: n.Step, Err: err}
	if n.Of != nil {
		e.Of = n.Of.Origin()
	}
	return e
}

// Origin names a node and where it was traced, on one line.
func (n *Node) Origin() string {
	text := n.op() + shapes(n.Args())
	if n.Place != "" {
		text += " at " + n.Place
	}
	return text
}

// bodyError is what a call of a fused loop failed with.
type bodyError struct {
	node *Node
	err  error
}

func (e *bodyError) Error() string { return e.err.Error() }

func (e *bodyError) Unwrap() error { return e.err }

// refused says of a call that cannot be recorded where that was. Of a call
// that is made of others the whole is named.
func (b *Builder) refused(c *op.Call, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Place: b.here(), Step: b.step, Err: err}
	} else {
		same := *e
		e = &same
	}
	e.Node = c.Def.ID() + described(c)
	if b.of != nil {
		e.Of = b.of.Origin()
	}
	return e
}

// described lists the dtypes and shapes of a call's tensors.
func described(c *op.Call) string {
	var parts []string
	for _, v := range c.Args.AllValues() {
		if v != nil {
			parts = append(parts, v.DType().String()+tensor.ShapeString(v.Shape()))
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func shapes(vs []*Value) string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, v.DType().String()+tensor.ShapeString(v.Shape()))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
