package global

import (
	"slices"
	"testing"

	"plumb/op"
	"plumb/tensor"
)

// TestTraffic: what is counted by dimensions is what boxing moves between ranks,
// one by one, and each link is told from the others.
func TestTraffic(t *testing.T) {
	kinds := []op.SBP{op.B, op.P, op.S(0), op.S(1)}
	for _, hierarchy := range [][]int{{1}, {2}, {3}, {2, 2}, {2, 3}, {3, 1}} {
		p, err := NewPlacement("cpu", hierarchy)
		if err != nil {
			t.Fatal(err)
		}
		all := []SBP{{}}
		for range hierarchy {
			var next []SBP
			for _, s := range all {
				for _, e := range kinds {
					next = append(next, append(slices.Clone(s), e))
				}
			}
			all = next
		}
		for _, shape := range [][]int{{6, 4}, {5, 3}, {1, 7}, {0, 3}} {
			for _, from := range all {
				x, err := FromLocal(tensor.New(tensor.F32, shape...), p, from)
				if err != nil {
					t.Fatal(err)
				}
				for _, to := range all {
					got, want := traffic(shape, p, from, to), x.byDimension(p, to)
					if !slices.Equal(got, want) || 4*got.total() != x.Bytes(p, to) {
						t.Fatalf("%v on %s, %s to %s: %v elements move, counted one by one %v, %d bytes", shape, p, from, to, got, want, x.Bytes(p, to))
					}
				}
			}
		}
	}
}

// byDimension counts the elements of all transfers of a boxing.
func (t *Tensor) byDimension(p Placement, s SBP) Traffic {
	sum := make(Traffic, len(p.Hierarchy))
	count := func(x *Tensor, to SBP) {
		r := x.route(p, to)
		for j, all := range r.transfers {
			for _, m := range all {
				a, b := p.Coordinates(m.from), p.Coordinates(j)
				for k := range a {
					if a[k] != b[k] {
						sum[k] += tensor.NumElements(m.box.size)
						break
					}
				}
			}
		}
	}
	if pieces := scattered(p, t.meta.Shape, t.sbp, s); pieces != nil {
		count(t, pieces)
		count(&Tensor{meta: t.meta, placement: p, sbp: pieces, parts: t.parts}, s)
		return sum
	}
	if !slices.Equal(t.sbp, s) {
		count(t, s)
	}
	return sum
}
