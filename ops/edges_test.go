package ops_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var inf, nan, most = math.Inf(1), math.NaN(), float64(math.MaxFloat32)

func f32(shape []int, v ...float64) *tensor.Tensor {
	return tensor.Float64s(tensor.F32, shape, v...)
}

// TestGradientsAtEdgeValues compares the gradient of the first tensor, or of
// the second, with what PyTorch 1.13.1 printed in float64.
func TestGradientsAtEdgeValues(t *testing.T) {
	for _, c := range []struct {
		id    string
		args  []any
		which int
		want  []float64
	}{
		{"atan2", []any{f32([]int{2}, 1e-30, 0.25), f32([]int{2}, 0, 1e25)}, 1, []float64{-1e30, -2.5e-51}},
		{"atan2", []any{f32([]int{1}, 1), f32([]int{1}, 2e25)}, 0, []float64{5e-26}},
		{"atan2", []any{f32([]int{2}, 0, 2), f32([]int{2}, 0, 0)}, 1, []float64{0, -0.5}}, // as in 2.15
		{"prelu", []any{f32([]int{2}, inf, -3), f32([]int{1}, 0.5)}, 1, []float64{-3}},
		{"prelu", []any{f32([]int{2}, inf, -3), f32([]int{1}, inf)}, 0, []float64{1, inf}},
		{"smooth_l1_loss", []any{f32([]int{2}, inf, 0.5), f32([]int{2}, 0, 0), op.Kw("reduction", "sum")}, 0, []float64{1, 0.5}},
		{"smooth_l1_loss", []any{f32([]int{1}, nan), f32([]int{1}, 0)}, 0, []float64{nan}},
		{"smooth_l1_loss.zero", []any{f32([]int{3}, nan, 2, 0), f32([]int{3}, 0, 0, 0)}, 0, []float64{nan, 1, -1}},
		{"huber_loss", []any{f32([]int{1}, nan), f32([]int{1}, 0)}, 0, []float64{nan}},
		{"huber_loss", []any{f32([]int{2}, -inf, 0.5), f32([]int{2}, 0, 0), "sum"}, 0, []float64{-1, 0.5}},
		{"mse_loss", []any{f32([]int{2}, 0, 0), f32([]int{2}, 0, -most)}, 1, []float64{0, -most}},
		{"multi_margin_loss", []any{f32([]int{3}, 0, nan, -0.5), tensor.Of(tensor.I64, nil, []int64{0})}, 0, []float64{-1. / 3, 0, 1. / 3}},
		{"multilabel_margin_loss", []any{f32([]int{2}, -most, most), tensor.Of(tensor.I64, []int{2}, []int64{1, 0})}, 0, []float64{0, 0}},
		{"as_strided", []any{tensor.NewStrided(tensor.F32, []int{1, 2}, []int{1, 0}), []int{1, 1}, []int{0, 0}}, 0, []float64{0.5, 0.5}},
		{"as_strided", []any{tensor.NewStrided(tensor.F32, []int{2, 2}, []int{1, 1}), []int{3}, []int{1}}, 0, []float64{1, 0.5, 0.5, 1}},
	} {
		got := gradientOf(t, c.id, c.args, c.which)
		for i, want := range c.want {
			v := float64(float32(got.Float(i)))
			if math.IsNaN(want) && math.IsNaN(v) || v == want {
				continue
			}
			if !(math.Abs(v-want) <= 1e-6*math.Abs(want)+1e-40) {
				t.Errorf("%s: element %d of the gradient is %v, want %v", c.id, i, v, want)
			}
		}
	}
}

// gradientOf returns the gradient of the sum of the result with respect to one argument.
func gradientOf(t *testing.T, id string, args []any, which int) *tensor.Tensor {
	t.Helper()
	s := eager.New(ops.Table())
	leaf := s.Leaf(args[which].(*tensor.Tensor), true)
	args[which] = leaf
	var out op.Value
	if err := op.Catch(func() { out = s.Builder().Op(id, args...) }); err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	ones := tensor.New(out.DType(), out.Shape()...)
	for i := range ones.Len() {
		ones.Set(i, 1)
	}
	grads, err := s.Backward([]op.Value{out}, []op.Value{ones}, false)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return grads[leaf].(*eager.Var).Tensor
}

// TestValuesAtEdgeValues compares results with those of PyTorch 1.13.1 in float64.
func TestValuesAtEdgeValues(t *testing.T) {
	for _, c := range []struct {
		id   string
		args []any
		want []float64
	}{
		{"cross", []any{f32([]int{3}, 1, 0, -most), f32([]int{3}, 2, 0, -most)}, []float64{0, -most, 0}},
		{"slogdet", []any{f32([]int{2, 2}, 0, 0, 1, inf)}, []float64{0}},
		{"chain_matmul", []any{f32([]int{1, 1}, 1), f32([]int{1, 2}, -inf, 1), f32([]int{2, 2}, 1, 0, 0, 0)}, []float64{-inf, nan}},
		{"group_norm", []any{f32([]int{1, 2}, 0, most), 1}, []float64{-1, 1}},
		{"layer_norm", []any{f32([]int{1, 2}, 0, most), []int{2}}, []float64{-1, 1}},
		{"multi_margin_loss", []any{f32([]int{2}, 0, nan), tensor.Of(tensor.I64, nil, []int64{0})}, []float64{0}},
		{"multi_margin_loss", []any{f32([]int{1, 2}, 0, -2), tensor.Of(tensor.I64, []int{1}, []int64{0}), 1, 1.0, f32([]int{2}, nan, 1)}, []float64{0}},
		{"multilabel_margin_loss", []any{f32([]int{2}, -most, most), tensor.Of(tensor.I64, []int{2}, []int64{1, 0})}, []float64{0}},
		{"cdist", []any{f32([]int{1, 3}, 0, 1, 2), f32([]int{2, 3}, 0, nan, 2, 0, 1.5, 3), 0.0}, []float64{nan, 2}},
		{"pdist", []any{f32([]int{2, 2}, 0, 1, nan, 1), 0.0}, []float64{nan}},
	} {
		call, err := ops.Table().ResolveID(c.id, c.args, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got := execute(t, call)[0].Float(i); got != want && !(math.Abs(got-want) < 1e-6) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: element %d is %v, want %v", c.id, i, got, want)
			}
		}
	}
}

// TestNextAfterEqualNumbers: as in C, the result is the second of equal numbers.
func TestNextAfterEqualNumbers(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16} {
		x, y := tensor.Float64s(d, []int{2}, math.Copysign(0, -1), 0), tensor.Float64s(d, []int{2}, 0, math.Copysign(0, -1))
		call, err := ops.Table().ResolveID("nextafter", []any{x, y}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := execute(t, call)[0]
		if math.Signbit(out.Float(0)) || !math.Signbit(out.Float(1)) {
			t.Errorf("%s: nextafter(-0, 0) and nextafter(0, -0) are %v and %v", d, out.Float(0), out.Float(1))
		}
	}
}

// TestQuantileDifferentiatesInterpolations: PyTorch 1.13.1 wants gradients for
// the sake of q where it interpolates linearly, and not where q picks elements.
func TestQuantileDifferentiatesInterpolations(t *testing.T) {
	for how, want := range map[string]bool{"linear": true, "lower": false, "higher": false, "nearest": false, "midpoint": false} {
		for _, id := range []string{"quantile", "nanquantile"} {
			s := eager.New(ops.Table())
			out, err := s.Apply(id, []any{f32([]int{3}, 1, 2, 4), s.Leaf(f32(nil, 0.25), true)}, []op.Kwarg{op.Kw("interpolation", how)})
			if err != nil {
				t.Fatal(err)
			}
			if got := eager.RequiresGrad(out[0]); got != want {
				t.Errorf("%s(interpolation=%q) requires a gradient: %t, want %t", id, how, got, want)
			}
		}
	}
}

func TestExpandedRunningStatisticsAreRefused(t *testing.T) {
	x := f32([]int{1, 2, 2}, 1, 2, 3, 4)
	shared := tensor.NewStrided(tensor.F32, []int{2}, []int{0})
	own := f32([]int{2}, 1, 1)
	for _, inputStats := range []bool{false, true} {
		args := []any{x, own, shared, nil, nil, inputStats}
		call, err := ops.Table().ResolveID("instance_norm", args, nil)
		if err != nil {
			t.Fatal(err)
		}
		var refused *op.Error
		if _, err := call.Execute(); !errors.As(err, &refused) || refused.Class != "RuntimeError" {
			t.Errorf("instance_norm with an expanded running_var: %v, want a RuntimeError", err)
		}
	}
}

// TestMomentsTakeWhatTheirSignaturesDo compares what var accepts with PyTorch 1.13.1
// and the declarations of PyTorch 2.
func TestMomentsTakeWhatTheirSignaturesDo(t *testing.T) {
	x := f32([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, c := range []struct {
		kwargs   []op.Kwarg
		accepted bool
	}{
		{nil, true},
		{[]op.Kwarg{op.Kw("unbiased", false)}, true},
		{[]op.Kwarg{op.Kw("unbiased", nil)}, false},
		{[]op.Kwarg{op.Kw("dim", nil), op.Kw("unbiased", false), op.Kw("keepdim", true)}, true},
		{[]op.Kwarg{op.Kw("unbiased", false), op.Kw("keepdim", false)}, false},
		{[]op.Kwarg{op.Kw("dim", 0), op.Kw("unbiased", nil)}, false},
		{[]op.Kwarg{op.Kw("dim", 0), op.Kw("unbiased", true), op.Kw("correction", 1)}, false},
		{[]op.Kwarg{op.Kw("dim", 0), op.Kw("correction", 1), op.Kw("keepdim", true)}, true},
	} {
		_, err := ops.Table().Resolve("torch.var", []any{x}, c.kwargs)
		if (err == nil) != c.accepted {
			t.Errorf("var with %v: %v, want it accepted: %v", c.kwargs, err, c.accepted)
		}
	}
}

func TestNormalRefusesANaNDeviation(t *testing.T) {
	call, err := ops.Table().ResolveID("normal.std", []any{0.0, f32([]int{2}, 1, nan)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var refused *op.Error
	if _, err := call.Execute(); !errors.As(err, &refused) {
		t.Errorf("normal with a deviation of NaN: %v, want a rejection", err)
	}
}

// TestEntriesOfNothing: where the entries of a dimension have no elements, PyTorch writes to
// any of them.
func TestEntriesOfNothing(t *testing.T) {
	for _, shape := range [][]int{{2, 0}, {0, 0}} {
		index := tensor.New(tensor.I64, 1)
		index.SetInt(0, 5)
		for id, last := range map[string]any{"index_copy": tensor.New(tensor.F32, 1, 0), "index_fill": 1.0} {
			call, err := ops.Table().ResolveID(id, []any{tensor.New(tensor.F32, shape...), 0, index, last}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := call.Execute(); err != nil || !slices.Equal(out[0].Shape(), shape) {
				t.Errorf("%s of %v: %v", id, shape, err)
			}
		}
	}
}
