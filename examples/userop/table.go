// Package userop adds three operators to Plumb's from outside of its repository.
package userop

//go:generate go run ./plumb ops gen

import (
	"plumb/op"
	"plumb/ops"
)

// Table has this package's operators before Plumb's own.
func Table() (*op.Table, error) {
	return op.NewTable(append([]*op.Def{leakyRelu.With(onSim), bent, peaks}, ops.All()...)...)
}
