package ops_test

import (
	"testing"

	"plumb/ops"
	"plumb/tensor"
)

// TestRows walks along each dimension, of a strided tensor too: every element is
// met once, in rows that share its storage.
func TestRows(t *testing.T) {
	x := tensor.New(tensor.F32, 2, 3, 4)
	zeros := spaced(x)
	for dim, n := range x.Shape() {
		rows := 0
		for r := range ops.Rows(dim, x, zeros) {
			rows++
			for i := range n {
				r[0].Set(i, r[0].At(i)+1)
			}
			if r[0].Len() != n || r[1].Len() != n || r[1].At(0) != 0 {
				t.Fatalf("along %d: %v", dim, r)
			}
		}
		for i := range x.Len() {
			if x.At(i) != complex(float64(dim+1), 0) {
				t.Fatalf("along %d in %d rows: element %d is met %v times", dim, rows, i, x.At(i))
			}
		}
	}
	for range ops.Rows(0, tensor.New(tensor.F32, 3, 0)) {
		t.Error("there is no row")
	}
}
