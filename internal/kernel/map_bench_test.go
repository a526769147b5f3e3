package kernel

import (
	"math/rand/v2"
	"testing"

	"plumb/tensor"
)

func BenchmarkMap(b *testing.B) {
	x, y := tensor.New(tensor.F32, 1000, 1000), tensor.New(tensor.F32, 1000, 1000)
	row, half := tensor.New(tensor.F32, 1000), tensor.New(tensor.BF16, 1000, 1000)
	out := tensor.New(tensor.F32, 1000, 1000)
	for i, d := 0, tensor.Data[float32](x); i < len(d); i++ {
		d[i] = float32(i%2000)/250 - 4
	}
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(4e6)
			for b.Loop() {
				f()
			}
		})
	}
	run("add", func() { Map2(out, x, y, Add[float32]) })
	run("add row", func() { Map2(out, x, row, Add[float32]) })
	run("add transposed", func() { Map2(out, x, y.Transpose(0, 1), Add[float32]) })
	run("relu", func() { Map1(out, x, Relu[float32]) })
	run("relu bfloat16", func() { Map1(half, half, Relu[float32]) })
	run("exp", func() { Map1(out, x, Exp32) })
	run("tanh", func() { Map1(out, x, Tanh32) })
	run("gelu", func() { Map1(out, x, Gelu32) })
	total, rows := tensor.New(tensor.F32), tensor.New(tensor.F32, 1000)
	run("sum", func() { Sum[float32](total, x, []int{0, 1}, 1.0) })
	run("sum rows", func() { Sum[float32](rows, x, []int{1}, 1.0) })
	run("sum columns", func() { Sum[float32](rows, x, []int{0}, 1.0) })
	run("max columns", func() { Max[float32](rows, nil, x, []int{0}) })
}

// BenchmarkFunctions takes a million elements of a normal distribution.
func BenchmarkFunctions(b *testing.B) {
	x, out := tensor.New(tensor.F32, 1000, 1000), tensor.New(tensor.F32, 1000, 1000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i, d := 0, tensor.Data[float32](x); i < len(d); i++ {
		d[i] = float32(rng.NormFloat64())
	}
	for _, f := range functionCases {
		b.Run(f.name, func(b *testing.B) {
			b.SetBytes(4e6)
			for b.Loop() {
				Map1(out, x, f.block)
			}
		})
	}
}
