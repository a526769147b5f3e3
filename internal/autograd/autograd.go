// Package autograd differentiates recorded applications of operators: one
// reverse walk that writes gradients through a Builder. On an eager Builder
// the gradients are computed as they are written; on a recording one they
// extend the program. Either way they can be differentiated again.
package autograd

import (
	"fmt"

	"plumb/op"
)

// Node is one recorded application: a call and its results.
type Node struct {
	Call *op.Call
	Out  []op.Value
}

// Cotangents maps values to the gradient of the differentiated quantity with
// respect to them.
type Cotangents map[op.Value]op.Value

// add accumulates g into the gradient of v.
func (c Cotangents) add(b op.Builder, v, g op.Value) {
	if prev := c[v]; prev != nil {
		g = b.Add(prev, g)
	}
	c[v] = g
}

// Seed adds a starting gradient: g = dL/dv.
func (c Cotangents) Seed(b op.Builder, v, g op.Value) error {
	return op.Catch(func() { c.add(b, v, g) })
}

// Walk applies the gradient rules of the tape's nodes from the last to the
// first, and adds to cot the gradient of every input that need accepts. Need
// must hold for exactly the values on a path from a wanted leaf.
func Walk(b op.Builder, tape []Node, cot Cotangents, need func(op.Value) bool) error {
	for i := len(tape) - 1; i >= 0; i-- {
		n := &tape[i]
		gs := make([]op.Value, len(n.Out))
		any := false
		for j, out := range n.Out {
			gs[j] = cot[out]
			any = any || gs[j] != nil
		}
		if !any || n.Call.Def.Grad == nil {
			continue
		}
		err := op.Catch(func() {
			g := op.NewGrad(b, n.Call.Args, n.Out, gs, need)
			g.Draw = n.Call.Draw
			n.Call.Def.Grad(g)
			seen := map[op.Value]bool{}
			for _, in := range n.Call.Args.AllValues() {
				if r := g.Result(in); r != nil && !seen[in] {
					seen[in] = true
					cot.add(b, in, r)
				}
			}
		})
		if err != nil {
			return fmt.Errorf("gradient of %s: %w", n.Call.Def.ID(), err)
		}
	}
	return nil
}
