package graph_test

import (
	"fmt"

	"plumb/graph"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// A layer with its gradients: traced and compiled once, and run.
func ExampleNew() {
	g := graph.New(ops.Table(), "layer", func(b *graph.Builder, x ...op.Value) []op.Value {
		y := b.Op("relu", b.Op("linear", x[0], x[1], x[2]))
		loss := b.Op("mean", y)
		grads, err := b.Grads([]op.Value{loss}, []op.Value{nil}, x[1:])
		if err != nil {
			op.Fail(err)
		}
		return append(grads, loss)
	}, graph.Options{})
	x := tensor.Float64s(tensor.F64, []int{2, 2}, 1, 2, 3, 4)
	w := tensor.Float64s(tensor.F64, []int{1, 2}, 1, -0.5)
	out, err := g.Run(x, w, tensor.Float64s(tensor.F64, []int{1}, 0.5))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out[0].Float(0), out[0].Float(1), out[1].Float(0), out[2].Float(0))
	// Output: 2 3 1 1
}
