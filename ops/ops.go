// Package ops is the table of Plumb's own operators: one literal per operator,
// by family. Everything else about an operator follows from its literal.
package ops

import (
	"slices"
	"sync"
	"sync/atomic"

	"plumb/op"
)

// All returns the operators of every family.
func All() []*op.Def { return slices.Clone(all()) }

var all = sync.OnceValue(func() []*op.Def {
	return withInPlace(slices.Concat(
		unaryOps, mathOps, activationOps, predicateOps,
		binaryOps, arithOps, logicOps, ternaryOps,
		reduceOps, statOps, scanOps,
		shapeOps, layoutOps, createOps, randomOps,
		indexOps, sortOps,
		contractOps, linalgOps, einsumOps, attentionOps, recurrentOps,
		convOps, poolOps, windowOps, visionOps,
		normOps, groupNormOps, lossOps, storeOps, foreachOps,
		optimOps, derivedOps,
	))
})

// Table returns the table that this process goes by: that of Use, else that of All.
func Table() *op.Table {
	if t := used.Load(); t != nil {
		return t
	}
	return own()
}

var own = sync.OnceValue(func() *op.Table {
	t, err := op.NewTable(All()...)
	if err != nil {
		panic(err)
	}
	return t
})

var used atomic.Pointer[op.Table]

// Use makes Table return a table of the caller's, which has the operators of All
// behind its own. A program calls it once, before anything else: package command
// does.
func Use(t *op.Table) { used.Store(t) }

// Added returns the operator of an id that Use has added to those of All; nil for
// none.
func Added(id string) *op.Def {
	t := used.Load()
	if t == nil || own().Def(id) != nil {
		return nil
	}
	return t.Def(id)
}
