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
		{"RuntimeError", "The size of tensor a (2) must match the size of tensor b (3)", false},
	} {
		o := &backend.Outcome{Status: backend.Raised, Class: c.class, Message: c.message}
		if refusal.Classify(o); o.NoKernel != c.want {
			t.Errorf("%s: %s: NoKernel is %v", c.class, c.message, o.NoKernel)
		}
	}
}
