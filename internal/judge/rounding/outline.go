package rounding

import (
	"context"
	"slices"

	"plumb/backend"
	"plumb/graph"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/tensor"
)

// Outline tells of Bounds what is certain before anything is computed. Its
// bounds have no tensors: only Functions and Elementwise are set, of results
// that have such a bound or none at all. It traces the program as a graph; of
// what cannot be traced it tells nothing.
func (a *Analysis) Outline(job *backend.Job, gradients bool) *compare.Bounds {
	traced := *job
	traced.Program = reached(job.Program, gradients)
	t := a.interpreter.Trace(context.Background(), &traced)
	known := outlines{}
	for _, n := range t.Nodes() {
		o := known.node(n)
		for _, v := range n.Out {
			known[v] = o
		}
	}
	return boundsBy(func(x *tensor.Tensor) *compare.Bound {
		if x == nil {
			return nil
		}
		return known[t.Value(x)]
	}).of(job.Program, t.Outcome())
}

// outlines are what is certain of the bounds of a graph's values.
type outlines map[*graph.Value]*compare.Bound

// node follows errorSession.propagate: what is certain of all results of a node.
func (known outlines) node(n *graph.Node) *compare.Bound {
	args := n.Args()
	switch {
	case n.Kind == graph.Arrange:
		return known[args[0]]
	case n.Kind != graph.Apply || mayCancel(n.Call, args):
		return &compare.Bound{}
	}
	return &compare.Bound{
		Functions:   function(n.Call.Def) || slices.ContainsFunc(args, func(v *graph.Value) bool { return known[v].Functions }),
		Elementwise: scalarFunction(n.Call) || n.Call.Def.Tol.Class == op.Exact && n.Call.Def.Formula == nil && known.carry(args),
	}
}

// carry reports whether the arguments that have errors at all have those of
// functions of elements.
func (known outlines) carry(args []*graph.Value) bool {
	found := false
	for _, v := range args {
		if v.DType().IsDifferentiable() {
			found = true
			if !known[v].Elementwise {
				return false
			}
		}
	}
	return found
}

// scalarFunction reports whether elementwise bounds the call's one result.
func scalarFunction(call *op.Call) bool {
	d := call.Def
	return d.Tol.Class == op.Pointwise && d.Formula == nil && !sumsProducts(call) && len(d.Sigs()[0].Results) <= 1 && !d.Sigs()[0].Many
}

// mayCancel is what cancels can be without elements.
func mayCancel(call *op.Call, args []*graph.Value) bool {
	return call.Def.Traits.Has(op.Cancels) && len(args) == 2 && args[0].Layout().SharesStorage(args[1].Layout())
}
