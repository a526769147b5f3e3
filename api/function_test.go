package api_test

import (
	"slices"
	"strings"
	"testing"

	"plumb/api"
	"plumb/graph"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// scaled is x·y and x + y, whose gradients are made ten times as large, so that they are
// not those of what it calls.
func scaled(needed *[]bool) api.Function {
	return api.Function{
		Forward: func(c *api.Context, x ...*api.Tensor) ([]*api.Tensor, error) {
			product, err := api.Mul(x[0], x[1])
			if err != nil {
				return nil, err
			}
			sum, err := api.Add(x[0], x[1])
			c.Save(x[0], x[1], product)
			return []*api.Tensor{product, sum}, err
		},
		Backward: func(c *api.Context, g ...*api.Tensor) ([]*api.Tensor, error) {
			*needed = []bool{c.Needs(0), c.Needs(1)}
			saved := c.Saved()
			var out []*api.Tensor
			for i := range 2 { // 10·(g0·other + g1)
				d, err := api.Mul(g[0], saved[1-i])
				if err == nil {
					d, err = api.Add(d, g[1])
				}
				if err == nil {
					d, err = api.Mul(d, api.Number(10.0))
				}
				if err != nil {
					return nil, err
				}
				out = append(out, d)
			}
			if !c.Needs(1) {
				out[1] = nil
			}
			return out, nil
		},
	}
}

func slice(t *testing.T, s *api.Session, grad bool, xs ...float64) *api.Tensor {
	t.Helper()
	x, err := api.FromSlice(s, xs, len(xs))
	if err == nil && grad {
		err = x.RequireGrad()
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestFunction(t *testing.T) {
	s := api.NewSession()
	var needed []bool
	f := scaled(&needed)
	x, y := slice(t, s, true, 2, 3), slice(t, s, false, 5, 7)
	out, err := f.Call(x, y)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out[0].Float64s(), []float64{10, 21}) || !slices.Equal(out[1].Float64s(), []float64{7, 10}) || !out[0].RequiresGrad() {
		t.Errorf("forward: %v, %v", out[0].Float64s(), out[1].Float64s())
	}
	loss, err := api.Sum(out[0]) // of the other result no gradient arrives
	if err != nil {
		t.Fatal(err)
	}
	if err := loss.Backward(); err != nil {
		t.Fatal(err)
	}
	if g := x.Grad(); g == nil || !slices.Equal(g.Float64s(), []float64{50, 70}) || !slices.Equal(needed, []bool{true, false}) {
		t.Errorf("10·y = %v, needed %v", g, needed)
	}

	// The second order: d/dy Σ 10·g·y over both inputs, through what was saved.
	y = slice(t, s, true, 5, 7)
	if out, err = f.Call(x, y); err != nil {
		t.Fatal(err)
	}
	square, err := api.Mul(out[0], out[0])
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Gradients(square, []*api.Tensor{x}, true) // 10·2xy·y
	if err != nil || !slices.Equal(g[0].Float64s(), []float64{1000, 2940}) {
		t.Fatalf("20·x·y² = %v, %v", g, err)
	}
	gg, err := s.Gradients(g[0], []*api.Tensor{y}, false) // 20·(x·y + y·10·x) as the product's gradient is ten times as large
	if err != nil || !slices.Equal(gg[0].Float64s(), []float64{20*10 + 10*20*10, 20*21 + 10*20*21}) {
		t.Fatalf("second order: %v, %v", gg, err)
	}

	err = s.NoGrad(func() error {
		out, err := f.Call(x, y)
		if err == nil && out[0].RequiresGrad() {
			t.Error("recorded where nothing is to be")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFunctionInGraph: a graph has the function's own gradient.
func TestFunctionInGraph(t *testing.T) {
	var needed []bool
	f := scaled(&needed)
	for _, o := range []graph.Options{{}, {Without: []string{graph.All}}} {
		g := graph.New(ops.Table(), "step", api.Traced(func(s *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) {
			out, err := f.Call(x...)
			if err != nil {
				return nil, err
			}
			loss, err := api.Sum(out[0])
			if err != nil {
				return nil, err
			}
			grads, err := s.Gradients(loss, x, false)
			return append(out, grads...), err
		}), o)
		x, y := tensor.Of(tensor.F64, []int{2}, []float64{2, 3}), tensor.Of(tensor.F64, []int{2}, []float64{5, 7})
		out, err := g.Run(x, y)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float64{{10, 21}, {7, 10}, {50, 70}, {20, 30}} {
			if got := tensor.Data[float64](out[i].Contiguous()); !slices.Equal(got, want) {
				t.Errorf("result %d: %v, want %v", i, got, want)
			}
		}
	}
}

func TestFunctionRefuses(t *testing.T) {
	s, other := api.NewSession(), api.NewSession()
	x := slice(t, s, true, 1, 2)
	forward := func(c *api.Context, x ...*api.Tensor) ([]*api.Tensor, error) {
		y, err := api.Neg(x[0])
		c.NonDifferentiable()
		return []*api.Tensor{y}, err
	}
	run := func(f api.Function, x ...*api.Tensor) error {
		out, err := f.Call(x...)
		if err != nil {
			return err
		}
		loss, err := api.Sum(out[0])
		if err != nil {
			return err
		}
		return loss.Backward()
	}
	gives := func(ts ...*api.Tensor) func(*api.Context, ...*api.Tensor) ([]*api.Tensor, error) {
		return func(*api.Context, ...*api.Tensor) ([]*api.Tensor, error) { return ts, nil }
	}
	for name, c := range map[string]struct {
		f    api.Function
		x    []*api.Tensor
		says string
	}{
		"no input":              {api.Function{Forward: forward}, nil, "at least one"},
		"two sessions":          {api.Function{Forward: forward}, []*api.Tensor{x, slice(t, other, false, 1)}, "two sessions"},
		"no result":             {api.Function{Forward: gives()}, []*api.Tensor{x}, "no result"},
		"another's result":      {api.Function{Forward: gives(slice(t, other, false, 1))}, []*api.Tensor{x}, "no tensor of the session"},
		"too many gradients":    {api.Function{Forward: forward, Backward: gives(x, x)}, []*api.Tensor{x}, "2 gradients for 1 inputs"},
		"another's gradient":    {api.Function{Forward: forward, Backward: gives(slice(t, other, false, 1, 2))}, []*api.Tensor{x}, "another session"},
		"a gradient's shape":    {api.Function{Forward: forward, Backward: gives(slice(t, s, false, 1, 2, 3))}, []*api.Tensor{x}, "the gradient has the shape [3]"},
		"what Backward refuses": {api.Function{Forward: forward, Backward: func(*api.Context, ...*api.Tensor) ([]*api.Tensor, error) { return nil, op.ValueError("never") }}, []*api.Tensor{x}, "never"},
		"nothing differentiable": {api.Function{Forward: func(c *api.Context, x ...*api.Tensor) ([]*api.Tensor, error) {
			out, err := forward(c, x...)
			c.NonDifferentiable(out...)
			return out, err
		}}, []*api.Tensor{x}, "does not require grad"},
	} {
		if err := run(c.f, c.x...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}
