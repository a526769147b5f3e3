package compare

import (
	"flag"
	"slices"
	"testing"

	"plumb/tensor"
)

var full = flag.Bool("full", false, "also compare tensors of 2^31 elements, which takes half a minute")

// TestHuge: positions and counts beyond 32 bits come out right. The tensors
// are expanded, so that they take no memory.
func TestHuge(t *testing.T) {
	if !*full {
		t.Skip("2^31 elements: go test ./compare -full -run Huge")
	}
	const half = 1 << 30
	expand := func(values ...float64) *tensor.Tensor {
		x, err := tensor.Float64s(tensor.F32, []int{2, 1}, values...).Expand(2, half)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	d := Tensors(expand(1, 2), expand(1, 2.5), Default(tensor.F32), Options{})
	if d.OK || d.Total != 2*half || d.Mismatches != half || !slices.Equal(d.First, []int{1, 0}) || d.MaxAbs != 0.5 || d.MeanAbs != 0.25 {
		t.Errorf("%+v", d)
	}
}
