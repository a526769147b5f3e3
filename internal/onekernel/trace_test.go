package onekernel

import (
	"context"
	"testing"

	"plumb/tensor"
)

// TestMethodsAreTraced: a traced x.view(3, 2) is known, as one of a list of sizes is, and
// so is a property.
func TestMethodsAreTraced(t *testing.T) {
	for _, call := range []string{"x0.view(3, 2)", "x0.view((3, 2))", "x0.permute(1, 0)", "x0.expand(4, 2, 3)", "x0.T"} {
		tell := func(_ context.Context, _, answer any) error {
			told := answer.(*struct {
				Program string
				Results []string
			})
			told.Program = "# plumb program v1\nfrom plumb import case, tensor\n\ncase(\"trace\", seed=0)\nx0 = tensor((2, 3), torch.float32, constant(0.0))\ny = " + call + "\n"
			told.Results = []string{"y"}
			return nil
		}
		c := cases(t, makerOf(t, "x: float[2,3]", tensor.F32), 1)[0]
		if _, err := (&traced{id: "kernel", known: map[string]*recording{}}).learn(t.Context(), tell, c.program); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}
