package worker

import (
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// TestRefused: of a call that a framework does not take it is told whether the
// framework refused it, or only its adapter.
func TestRefused(t *testing.T) {
	w := adapted(t, "torchown")
	x := new(builder).in("x", f32([]int{2, 3}, -1, 2, -3, 4, -5, 6), false)
	for name, c := range map[string]struct {
		b       *builder
		refused bool
	}{
		"the framework": {x.call("y", "torch.cumsum", ref("x"), int64(7)), true},
		"the adapter":   {new(builder).in("x", f32([]int{1}, 1), false).call("y", "torch.neg", ref("x")), false},
		"the table":     {new(builder).in("x", f32([]int{1}, 1), false).call("y", "torch.sin", ref("x")), false},
	} {
		if out := run(t, w, c.b); out.Status != backend.Unsupported || out.Refused != c.refused {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestTensorsAsNumbers: where PyTorch takes a number an adapter with an interface
// of its own takes a tensor for it, but no float for an integer.
func TestTensorsAsNumbers(t *testing.T) {
	own, w := torch(t), adapted(t, "torchown")
	x := func() *builder {
		return new(builder).in("x", f32([]int{2, 3}, -1, 2, -3, 4, -5, 6), false).in("n", tensor.Float64s(tensor.I64, nil, 1), false).
			in("m", tensor.Float64s(tensor.I64, []int{1}, 3), false).in("h", f32(nil, 0.5), false)
	}
	for name, b := range map[string]*builder{
		"a dimension": x().call("y", "torch.cumsum", ref("x"), ref("n")),
		"in a list":   x().call("y", "torch.permute", ref("x"), program.List{ref("n"), int64(0)}).call("z", "torch.reshape", ref("x"), program.List{ref("m"), int64(2)}),
		"a bound":     x().call("y", "operator.getitem", ref("x"), program.Slice{Start: ref("n")}).call("z", "operator.getitem", ref("x"), program.Tuple{int64(0), program.Slice{Stop: ref("m")}}),
		"a scalar":    x().call("y", "torch.add", ref("x"), ref("x")).kw("alpha", ref("h")),
	} {
		asTorch(t, name, own, w, b)
	}
	if out := run(t, w, x().call("y", "torch.cumsum", ref("x"), ref("h"))); out.Status != backend.Unsupported {
		t.Errorf("a float for a dimension: %+v", out)
	}
}
