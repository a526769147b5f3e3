package refusal_test

import (
	"testing"

	"plumb/backend"
	"plumb/internal/refusal"
)

// TestClassify: what PyTorch 1.13 says of a dtype without a kernel, or of a
// missing gradient, is told from what it says of an illegal call.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		class, message string
		want           bool
	}{
		{"RuntimeError", `"exp_vml_cpu" not implemented for 'Half'`, true},
		{"NotImplementedError", `"exp_vml_cpu" not implemented for 'Half'`, true},
		{"NotImplementedError", "the derivative for 'target' is not implemented", true},
		{"RuntimeError", "lerp is not differentiable with respect to argument 'x'", true},
		{"TypeError", `"exp_vml_cpu" not implemented for 'Half'`, false},
		{"RuntimeError", "logsumexp(): Expected floating point type for result tensor, but got: ComplexFloat", true},
		{"RuntimeError", "This function was deprecated since version 1.9 and is now removed. `torch.cholesky` is deprecated", true},
		{"RuntimeError", "The size of tensor a (2) must match the size of tensor b (3)", false},
	} {
		o := &backend.Outcome{Status: backend.Raised, Class: c.class, Message: c.message}
		if refusal.Classify(o); o.NoKernel != c.want {
			t.Errorf("%s: %s: NoKernel is %v", c.class, c.message, o.NoKernel)
		}
	}
}

// TestGap: Plumb's own gaps are told by its own words alone.
func TestGap(t *testing.T) {
	for _, c := range []struct {
		class, message string
		want           bool
	}{
		{"RuntimeError", "im2col: no kernel for (bool[0, 1]): float32 needs dtype of input in {float32}", true},
		{"RuntimeError", "exp2: not implemented for argument 'input' of dtype complex64", true},
		{"RuntimeError", "backward: gradient of nextafter: the derivative of nextafter with respect to 'input' is not implemented", true},
		{"TypeError", "torch.tensor_split: no signature accepts the arguments (Tensor, Tensor); it has", true},
		{"TypeError", "squeeze takes 2 positional arguments but 3 were given", true},
		{"TypeError", "f() takes 2 positional arguments but 3 were given", false},
		{"RuntimeError", `"exp_vml_cpu" not implemented for 'Half'`, false},
		{"RuntimeError", "gather: expected argument 'index' to have dtype int32 or int64, not int16", false},
	} {
		o := &backend.Outcome{Status: backend.Raised, Class: c.class, Message: c.message}
		if got := refusal.Gap(o); got != c.want {
			t.Errorf("%s: %s: %v", c.class, c.message, got)
		}
	}
}
