package command

import (
	"slices"
	"testing"
)

// TestCallables: of subjects with an adapter both signatures are told.
func TestCallables(t *testing.T) {
	for _, none := range []string{"native", "native:graph", "torch", "torch:/usr/bin/python3", "recorded:x", "diopi:x.so"} {
		if c := callables(none, "abs"); c != nil {
			t.Errorf("%s: %+v", none, c)
		}
	}
	for _, c := range []struct{ subject, operator, torch, adapter string }{
		{"onnx:ort:/a/python", "abs", "abs(Tensor input) -> Tensor", `"abs": "Abs(input)"`},
		{"oneflow:/a/python", "where", "where(Tensor condition, Tensor input, Tensor other) -> Tensor", `"torch.where": {"rename":{"input":"x","other":"y"}}`},
		{"numpy", "leakyrelu", "leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor", "no entry: called by PyTorch's name and arguments"},
		{"oneflow", "tan", "tan(Tensor input) -> Tensor", "no entry: called by PyTorch's name and arguments"},
		{"./mine", "abs", "abs(Tensor input) -> Tensor", "the table of ./mine, or its own code"},
	} {
		got := callables(c.subject, c.operator)
		if got == nil || !slices.Contains(got.Torch, c.torch) || !slices.Contains(got.Subject, c.adapter) {
			t.Errorf("%s %s: %+v", c.subject, c.operator, got)
		}
	}
}
