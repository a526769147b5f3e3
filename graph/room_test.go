package graph

import (
	"runtime"
	"testing"

	"plumb/op"
	"plumb/tensor"
)

// TestLayouts builds one graph of small and large values: no two of them share a
// storage, and none is part of the heap.
func TestLayouts(t *testing.T) {
	b := NewBuilder(nil, "layouts")
	var all []*tensor.Tensor
	for _, n := range []int{4, 3 << 20, 5, 40 << 20, 3 << 20, 1 << 30, 7, 3 << 29, 4<<30 - 8} {
		all = append(all, b.Input("x", op.Meta{DType: tensor.U8, Shape: []int{n}}).Layout())
	}
	for i, x := range all {
		for k, y := range all[:i] {
			if x.SharesStorage(y) {
				t.Errorf("values %d and %d lie in one storage", k, i)
			}
		}
	}
	before := len(shared.room)
	for range 3 {
		NewBuilder(nil, "again").Input("x", op.Meta{DType: tensor.U8, Shape: []int{1 << 30}})
	}
	if before == 0 && runtime.GOOS == "linux" || len(shared.room) != before {
		t.Errorf("builders do not share their addresses: %d bytes, then %d", before, len(shared.room))
	}
}
