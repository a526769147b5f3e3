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

// TestDropoutRoundsP: a library may hold p as a float32, whose rounding is what
// 1 - p is off by: 13 parts of a million at 0.999. In float64 it may not.
func TestDropoutRoundsP(t *testing.T) {
	for _, c := range []struct {
		dtype tensor.DType
		p     float64
		off   float64 // of the scale, in units of what p's rounding makes of it
		legal bool
	}{{tensor.F32, 0.999, 1, true}, {tensor.F32, 0.97, 1, true}, {tensor.F32, 0.999, 3, false}, {tensor.F32, 0.5, 20, false}, {tensor.F64, 0.999, 1, false}} {
		x := tensor.New(c.dtype, 4)
		for i := range x.Len() {
			x.Set(i, complex(float64(i)+1, 0))
		}
		call, err := ops.Table().ResolveID("dropout", []any{x, c.p, true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		scale := 1 / (1 - c.p) * (1 + c.off*0x1p-24*c.p/(1-c.p))
		out := tensor.New(c.dtype, 4)
		for i := range out.Len() {
			out.Set(i, complex(x.Float(i)*scale, 0))
		}
		law := call.Def.Law(call.Args)
		if _, err := law.Draws(out); (err == nil) != c.legal {
			t.Errorf("%s, p = %v, off by %v: %v", c.dtype, c.p, c.off, err)
		}
		if c.legal {
			if slope := law.Slopes(out)[2]; math.Abs(slope/scale-1) > 0x1p-22 {
				t.Errorf("%s, p = %v: the slope is %v, want %v", c.dtype, c.p, slope, scale)
			}
		}
	}
}
