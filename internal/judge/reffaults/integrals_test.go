package reffaults

import (
	"testing"

	"plumb/program"
)

// TestInfiniteEnds: what is known is a place whose row ends in an infinity, of
// evenly spaced places.
func TestInfiniteEnds(t *testing.T) {
	f := infiniteEnds[0]
	for _, c := range []struct {
		x, call string
		shape   []int
		want    []bool
	}{
		{"(1,), torch.float32, [float(\"inf\")]", "torch.trapezoid(x)", []int{}, []bool{true}},
		{"(3,), torch.float32, [1.0, float(\"inf\"), 2.0]", "torch.trapezoid(x)", []int{}, []bool{false}},
		{"(2, 2), torch.float32, [0.0, 1.0, 2.0, float(\"-inf\")]", "torch.trapezoid(x, dim=0)", []int{2}, []bool{false, true}},
		{"(2, 2), torch.float32, [0.0, float(\"nan\"), 2.0, float(\"inf\")]", "torch.trapezoid(x, dx=2)", []int{2}, []bool{false, true}},
		{"(2,), torch.float32, [0.0, float(\"inf\")]", "torch.trapezoid(x, x)", []int{}, nil},
	} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nx = tensor("+c.x+")\nv = "+c.call+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if f.When(p) != (c.want != nil) {
			t.Errorf("%s of %s", c.call, c.x)
		}
		for i, want := range c.want {
			if f.Places(p, c.shape)(i) != want {
				t.Errorf("%s of %s at %d: %t", c.call, c.x, i, !want)
			}
		}
	}
}
