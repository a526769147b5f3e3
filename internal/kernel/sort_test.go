package kernel

import (
	"testing"

	"plumb/tensor"
)

// TestSortOfNothing: lines without elements, and places for none, leave nothing to read.
func TestSortOfNothing(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32} {
		for _, shape := range [][2][]int{{{3, 0}, {3, 0}}, {{3, 2}, {3, 0}}} {
			in, values, indices := tensor.New(d, shape[0]...), tensor.New(d, shape[1]...), tensor.New(tensor.I64, shape[1]...)
			Sort[float32](values, indices, in, 1, false)
		}
	}
}
