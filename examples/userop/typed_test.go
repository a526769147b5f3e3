package userop

import (
	"slices"
	"testing"

	"plumb/api"
	"plumb/graph"
	"plumb/tensor"
)

// TestTyped calls this package's functions among Plumb's own: at once, for a gradient,
// and in a graph.
func TestTyped(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	f := func(s *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) {
		y, err := LeakyReLU{Alpha: 0.5}.Call(x[0])
		if err != nil {
			return nil, err
		}
		values, indices, err := Peaks(y, x[1], 2)
		if err != nil {
			return nil, err
		}
		gradient, err := s.Gradients(values, x[:1], false)
		return append(gradient, values, indices), err
	}
	x, seen := tensor.Float64s(tensor.F32, []int{4}, -8, -4, 6, 2), tensor.New(tensor.I64, 4)
	s := api.NewSessionOn(table)
	leaf := s.Wrap(x)
	if err := leaf.RequireGrad(); err != nil {
		t.Fatal(err)
	}
	out, err := f(s, leaf, s.Wrap(seen))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := graph.New(table, "peaks", api.Traced(f), graph.Options{}).Run(x, tensor.New(tensor.I64, 4))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{0, 0.5, 2, 0}, {-2, 6, 6}, {1, 2, 2}} {
		if got := out[i].Float64s(); !slices.Equal(got, want) || !slices.Equal(s.Wrap(recorded[i]).Float64s(), want) {
			t.Errorf("result %d: %v at once and %s in a graph, want %v", i, got, recorded[i], want)
		}
	}
	if got := s.Wrap(seen).Float64s(); !slices.Equal(got, []float64{0, 1, 2, 0}) {
		t.Errorf("seen %v", got)
	}
}
