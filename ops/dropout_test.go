package ops_test

import (
	"math"
	"math/cmplx"
	"testing"

	"plumb/ops"
	"plumb/tensor"
)

// TestDropoutOfAllIsAProduct: PyTorch 1.13 too drops every complex number, by a
// product with 0, though it has no kernel that draws a mask for them.
func TestDropoutOfAllIsAProduct(t *testing.T) {
	x := tensor.New(tensor.C64, 2, 3)
	x.Set(0, complex(1, 2))
	x.Set(1, complex(math.Inf(1), 0))
	for _, id := range []string{"dropout", "dropout2d", "alpha_dropout"} {
		call, err := ops.Table().ResolveID(id, []any{x, 1.0, true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := call.Def.Kernel(call.Args)
		if err != nil || k.Since != "" {
			t.Fatalf("%s: %v, %v", id, k, err)
		}
		if out := execute(t, call)[0]; out.At(0) != 0 || !cmplx.IsNaN(out.At(1)) {
			t.Errorf("%s: %v, %v", id, out.At(0), out.At(1))
		}
	}
}
