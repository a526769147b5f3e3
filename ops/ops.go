// Package ops is the table of Plumb's own operators: one literal per operator,
// by family. Everything else about an operator follows from its literal.
package ops

import (
	"slices"
	"sync"

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

// Table returns the table of All.
var Table = sync.OnceValue(func() *op.Table {
	t, err := op.NewTable(All()...)
	if err != nil {
		panic(err)
	}
	return t
})
