package api_test

import (
	"errors"
	"slices"
	"testing"

	"plumb/api"
	"plumb/graph"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestTraced: a function of typed functions gives in a graph what it gives at once,
// its gradients of second order too.
func TestTraced(t *testing.T) {
	f := func(s *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) {
		shift := s.Wrap(tensor.Float64s(tensor.F64, []int{3}, 1, 2, 3))
		y, err := api.Add(x[0], shift, api.AddOptions{Alpha: api.Number(2)})
		if err != nil {
			return nil, err
		}
		if y, err = api.Pow(y, api.Number(3)); err != nil {
			return nil, err
		}
		first, err := s.Gradients(y, x[:1], true)
		if err != nil {
			return nil, err
		}
		second, err := s.Gradients(first[0], x[:1], false)
		if err != nil {
			return nil, err
		}
		largest, err := s.Call("torch.max", y)
		return slices.Concat([]*api.Tensor{y}, first, second, largest), err
	}
	in := tensor.Float64s(tensor.F64, []int{3}, 1, -1, 0.5)
	s := api.NewSession()
	x := s.Wrap(in)
	if err := x.RequireGrad(); err != nil {
		t.Fatal(err)
	}
	want, err := f(s, x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := graph.New(ops.Table(), "f", api.Traced(f), graph.Options{}).Run(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || len(want) != 4 {
		t.Fatalf("%d results at once, %d in a graph", len(want), len(got))
	}
	for i := range want {
		for e, w := range want[i].Float64s() {
			if got[i].Float(e) != w {
				t.Errorf("result %d: element %d is %v at once, and %v in a graph", i, e, w, got[i].Float(e))
			}
		}
	}
}

// TestTracedRefuses: what a graph cannot hold ends the trace with an error.
func TestTracedRefuses(t *testing.T) {
	other := api.NewSession().Wrap(tensor.New(tensor.F32, 2))
	for name, c := range map[string]struct {
		f    func(s *api.Session, x ...*api.Tensor) ([]*api.Tensor, error)
		want error
	}{
		"elements":      {func(_ *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) { x[0].Float64s(); return x, nil }, op.ErrNoElements},
		"backward":      {func(_ *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) { return x, x[0].Backward() }, nil},
		"none":          {func(*api.Session, ...*api.Tensor) ([]*api.Tensor, error) { return []*api.Tensor{nil}, nil }, nil},
		"other session": {func(*api.Session, ...*api.Tensor) ([]*api.Tensor, error) { return []*api.Tensor{other}, nil }, nil},
		"its own error": {func(*api.Session, ...*api.Tensor) ([]*api.Tensor, error) { return nil, op.ErrUnknown }, op.ErrUnknown},
		"mixed sessions": {func(_ *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) {
			y, err := api.Add(x[0], other)
			return []*api.Tensor{y}, err
		}, nil},
	} {
		_, err := graph.New(ops.Table(), name, api.Traced(c.f), graph.Options{}).Run(tensor.New(tensor.F32, 2))
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
