package graph_test

import (
	"fmt"

	"plumb/graph"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
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

// One call is one training step: forward, backward, clipped gradients, the
// update and the schedule.
func ExampleGraph_AddOptimizer() {
	m, err := nn.Modules().Lookup("torch.nn.Linear").New([]any{2, 1}, nil)
	check(err)
	check(m.Load("weight", tensor.Float64s(tensor.F32, []int{1, 2}, 0.5, -0.5)))
	check(m.Load("bias", tensor.New(tensor.F32, 1)))
	opt, err := optim.Lookup("Adam").New(optim.Parameters(m), nil, op.Kw("lr", 0.5))
	check(err)
	schedule, err := optim.LookupSchedule("ExponentialLR").New(opt, nil, op.Kw("gamma", 0.5))
	check(err)

	g := graph.New(ops.Table(), "fit", func(b *graph.Builder, x ...op.Value) []op.Value {
		y, err := m.Call(b.Builder, []any{x[0]}, nil)
		if err != nil {
			op.Fail(err)
		}
		loss := b.Op("mse_loss", y[0], x[1])
		b.Backward(loss)
		return []op.Value{loss}
	}, graph.Options{})
	check(g.AddModule("", m))
	check(g.AddOptimizer(opt, schedule))
	g.BeforeUpdate(func(b op.Builder, params []*optim.Param) error {
		_, err := optim.ClipGradNorm(b, params, 1, 2, false)
		return err
	})

	x := tensor.Float64s(tensor.F32, []int{2, 2}, 1, 2, 3, 4)
	y := tensor.Float64s(tensor.F32, []int{2, 1}, 3, 7)
	for range 3 {
		out, err := g.Run(x, y)
		check(err)
		fmt.Printf("loss %.3f, the next rate %.4f\n", out[0].Float(0), opt.Groups[0].LR())
	}
	fmt.Println(g.Signatures(), "signature")
	// Output:
	// loss 34.250, the next rate 0.2500
	// loss 7.250, the next rate 0.1250
	// loss 1.250, the next rate 0.0625
	// 1 signature
}

// A marked part is computed again for its gradient instead of being kept, and
// a call is split into micro-batches that share one update.
func ExampleBuilder_Checkpoint() {
	w := &optim.Param{Name: "w", Value: tensor.Float64s(tensor.F32, []int{1}, 2)}
	opt, err := optim.Lookup("SGD").New([]*optim.Param{w}, nil, op.Kw("lr", 0.25))
	check(err)
	g := graph.New(ops.Table(), "part", func(b *graph.Builder, x ...op.Value) []op.Value {
		h := b.Checkpoint(func(x ...op.Value) []op.Value {
			return []op.Value{b.Op("square", b.Op("exp", b.Mul(x[0], w.Value)))}
		}, x[0])
		loss := b.Op("mean", h[0])
		b.Backward(loss)
		return []op.Value{loss}
	}, graph.Options{})
	check(g.AddOptimizer(opt, nil))
	check(g.Accumulate(2))
	x := tensor.Float64s(tensor.F32, []int{4}, 0, 0, 0.5, -0.5)
	c, err := g.Compile(x)
	check(err)
	for _, s := range c.Stages {
		if s.Pass == "accumulate" || s.Pass == "recompute" {
			fmt.Println(s.Pass, s.Changes)
		}
	}
	out, err := g.Run(x)
	check(err)
	fmt.Printf("losses %.2f and %.2f, w %.2f\n", out[0].Float(0), out[0].Float(1), w.Value.(*tensor.Tensor).Float(0))
	// Output:
	// accumulate 2
	// recompute 4
	// losses 1.00 and 3.76, w 1.55
}

// Arguments and results may be trees.
func ExampleGraph_Call() {
	g := graph.NewTree(ops.Table(), "tree", func(b *graph.Builder, args ...any) any {
		batch := args[0].(map[string]any)
		sum := b.Add(batch["x"].(op.Value), batch["y"].(op.Value))
		return map[string]any{"sum": sum, "both": []any{batch["x"], sum}}
	}, graph.Options{})
	out, err := g.Call(map[string]any{"x": tensor.Scalar(tensor.F32, 1), "y": tensor.Scalar(tensor.F32, 2)})
	check(err)
	fmt.Println(out.(map[string]any)["sum"].(*tensor.Tensor).Float(0))
	// Output: 3
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
