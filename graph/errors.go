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
	Pass  string // that failed; empty when the graph ran
	Node  string // the operator, with the shapes of its arguments
	Place string // where it was traced
	Step  int
	Err   error
}

// Error names the graph, the pass, the node, its place and the cause.
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
	if e.Node != "" {
		parts = append(parts, e.Node)
	}
	return strings.Join(parts, ": ") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// failure wraps what a node failed with.
func (c *Code) failure(n *Node, err error) error {
	return &Error{Graph: c.Name, Node: n.op() + shapes(n.Args()), Place: n.Place, Step: n.Step, Err: err}
}

func shapes(vs []*Value) string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, v.DType().String()+tensor.ShapeString(v.Shape()))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func asRejection(err error, to **op.Error) bool { return errors.As(err, to) }
