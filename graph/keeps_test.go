package graph_test

import (
	"slices"
	"testing"

	"plumb/graph"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// keeping is a table with an operator that adds i·y to element i of x, whose kernel keeps
// a table of i and may lie over x; made counts how often it made one.
func keeping(t *testing.T, made *int) *op.Table {
	t.Helper()
	table, err := op.NewTable(append([]*op.Def{{
		Sig: "ramp(Tensor x, Tensor y) -> Tensor", Doc: "x + i·y.", Traits: op.NoGrad, NotSplittable: "the test says so",
		Tol: op.Tol{Class: op.Pointwise, ULP: 1, Reason: "test"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
		},
		Kernels: []op.Kernel{{
			Name: "ramp", Over: []op.TensorArg{"x"}, Keyed: []op.Handle{op.TensorArg("x")},
			State: func(a op.Args) (any, error) {
				*made++
				factors := make([]float64, tensor.NumElements(a.Value("x").Shape()))
				for i := range factors {
					factors[i] = float64(i)
				}
				return factors, nil
			},
			Run: func(c *op.Run) error {
				for i, f := range c.State.([]float64) {
					c.Out[0].Set(i, c.Tensor("x").At(i)+complex(f, 0)*c.Tensor("y").At(i))
				}
				return nil
			},
		}},
	}}, ops.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestKernelsKeep: a state is made once for the calls of a key, and a result lies over
// the argument that its kernel names, where nothing else needs that.
func TestKernelsKeep(t *testing.T) {
	x := tensor.Of(tensor.F32, []int{3}, []float32{1, 2, 3})
	y := tensor.Of(tensor.F32, []int{3}, []float32{10, 20, 30})
	for _, c := range []struct {
		name    string
		f       func(b *graph.Builder, x, y op.Value) op.Value
		inPlace int
		want    []float32
	}{
		{"over an argument that ends there", func(b *graph.Builder, x, y op.Value) op.Value {
			return b.Op("ramp", b.Op("flip", x, []int{0}), y)
		}, 1, []float32{3, 22, 61}},
		{"not over an input", func(b *graph.Builder, x, y op.Value) op.Value { return b.Op("ramp", x, y) }, 0, []float32{1, 22, 63}},
		{"not over what is read later", func(b *graph.Builder, x, y op.Value) op.Value {
			z := b.Op("flip", x, []int{0})
			return b.Op("matmul", b.Op("ramp", z, y), z)
		}, 0, []float32{3*3 + 22*2 + 61}},
		{"not over both of its arguments", func(b *graph.Builder, x, y op.Value) op.Value {
			z := b.Op("flip", x, []int{0})
			return b.Op("ramp", z, z)
		}, 0, []float32{3, 4, 3}},
		{"not over the argument that it does not name", func(b *graph.Builder, x, y op.Value) op.Value {
			return b.Op("ramp", x, b.Op("flip", y, []int{0}))
		}, 0, []float32{1, 22, 23}},
		{"not over what a view reads", func(b *graph.Builder, x, y op.Value) op.Value {
			z := b.Op("flip", x, []int{0})
			return b.Op("ramp", z, b.Op("expand", b.Op("narrow", z, 0, 0, 1), []int{3}))
		}, 0, []float32{3, 5, 7}},
	} {
		made := 0
		g := graph.New(keeping(t, &made), "keeps", func(b *graph.Builder, in ...op.Value) []op.Value {
			return []op.Value{c.f(b, in[0], in[1])}
		}, graph.Options{})
		for range 3 {
			out, err := g.Run(x, y)
			if err != nil {
				t.Fatal(err)
			}
			if got := tensor.Data[float32](out[0].Contiguous())[:out[0].Len()]; !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
		code, err := g.Compile(x, y)
		if err != nil {
			t.Fatal(err)
		}
		if n := code.Memory().InPlace; n != c.inPlace || made != 1 {
			t.Errorf("%s: %d results in place, want %d; %d states made in three runs", c.name, n, c.inPlace, made)
		}
	}
	made := 0
	s := eager.New(keeping(t, &made))
	for range 3 {
		if _, err := s.Apply("ramp", []any{x, y}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("%d states of three calls of one signature", made)
	}
}
