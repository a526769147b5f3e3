package graph_test

import (
	"testing"

	"plumb/graph"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// chain is a gelu by hand: nine elementwise calls.
func chain(b op.Builder, x op.Value) op.Value {
	cube := b.Mul(b.Mul(x, x), x)
	inner := b.Mul(b.Add(x, b.Mul(cube, 0.044715)), 0.79788456)
	return b.Mul(b.Mul(x, 0.5), b.Add(b.Op("tanh", inner), 1.0))
}

// perceptron is a training loss of two layers.
func perceptron(b op.Builder, x []op.Value) op.Value {
	h := chain(b, b.Op("linear", x[0], x[1], x[2]))
	return b.Op("mean", b.Op("square", b.Op("linear", h, x[3], x[4])))
}

func perceptronInputs() []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, shape := range [][]int{{128, 256}, {512, 256}, {512}, {64, 512}, {64}} {
		t := tensor.New(tensor.F32, shape...)
		for i := range t.Len() {
			t.Set(i, complex(float64(i%17)/17-0.5, 0))
		}
		out = append(out, t)
	}
	return out
}

func BenchmarkChainEager(b *testing.B) {
	x := tensor.New(tensor.F32, 1<<20)
	s := eager.New(ops.Table())
	for b.Loop() {
		chain(s.Builder(), s.Leaf(x, false))
	}
}

func BenchmarkChainGraph(b *testing.B) {
	x := tensor.New(tensor.F32, 1<<20)
	g := graph.New(ops.Table(), "chain", func(b *graph.Builder, x ...op.Value) []op.Value {
		return []op.Value{chain(b.Builder, x[0])}
	}, graph.Options{})
	for b.Loop() {
		if _, err := g.Run(x); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrainEager(b *testing.B) {
	inputs := perceptronInputs()
	one := tensor.Scalar(tensor.F32, 1)
	for b.Loop() {
		s := eager.New(ops.Table())
		var x []op.Value
		for i, t := range inputs {
			x = append(x, s.Leaf(t, i > 0))
		}
		if _, err := s.Backward([]op.Value{perceptron(s.Builder(), x)}, []op.Value{one}, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrainGraph(b *testing.B) {
	inputs := perceptronInputs()
	g := graph.New(ops.Table(), "train", func(b *graph.Builder, x ...op.Value) []op.Value {
		grads, err := b.Grads([]op.Value{perceptron(b.Builder, x)}, []op.Value{nil}, x[1:])
		if err != nil {
			op.Fail(err)
		}
		return grads
	}, graph.Options{})
	c, err := g.Compile(inputs...)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("memory: %s", c.Memory())
	for b.Loop() {
		if _, err := g.Run(inputs...); err != nil {
			b.Fatal(err)
		}
	}
}
