package global_test

import (
	"errors"
	"testing"

	"plumb/global"
	"plumb/op"
	"plumb/tensor"
)

// bytesOf reads small numbers from what a fuzzer makes.
type bytesOf []byte

func (b *bytesOf) below(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0]) % n
	*b = (*b)[1:]
	return v
}

func (b *bytesOf) placement() (global.Placement, error) {
	hierarchy := make([]int, b.below(4))
	size := 1
	for i := range hierarchy {
		hierarchy[i] = b.below(5)
		size *= hierarchy[i]
	}
	if b.below(2) == 0 {
		return global.NewPlacement("cpu", hierarchy)
	}
	ranks := make([]int, min(size+b.below(8)/7, 64))
	for i := range ranks {
		ranks[i] = b.below(256) - 4
	}
	return global.NewPlacement("cpu", hierarchy, ranks...)
}

func (b *bytesOf) sbp(entries int) global.SBP {
	s := make(global.SBP, max(0, entries+b.below(9)/8))
	for i := range s {
		switch e := b.below(6); e {
		case 0:
			s[i] = op.B
		case 1:
			s[i] = op.P
		default:
			s[i] = op.S(e - 2)
		}
	}
	return s
}

var fuzzDTypes = []tensor.DType{tensor.F32, tensor.F64, tensor.I64, tensor.C64, tensor.Bool, tensor.U8}

// FuzzBoxing: whatever placements and sbps are, a tensor that they take stays what it
// is, to the bit, and what they do not take is a rejection.
func FuzzBoxing(f *testing.F) {
	f.Add([]byte{1, 2, 0, 1, 3, 2, 0, 0, 2, 1, 2, 0, 0, 3})
	f.Add([]byte{2, 2, 2, 0, 2, 5, 3, 0, 2, 2, 0, 2, 2, 3, 0, 3, 1, 0})
	f.Add([]byte{2, 3, 2, 1, 9, 8, 7, 6, 5, 4, 1, 4, 0, 1, 0, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bytesOf(data)
		p, err := b.placement()
		if err != nil {
			return
		}
		shape := make([]int, b.below(4))
		for i := range shape {
			shape[i] = b.below(6)
		}
		x := tensor.New(fuzzDTypes[b.below(len(fuzzDTypes))], shape...)
		for i := range x.Len() {
			x.SetInt(i, int64(b.below(256))-100)
		}
		at := func(g *global.Tensor, err error) *global.Tensor {
			if rejection := (*op.Error)(nil); err != nil && !errors.As(err, &rejection) {
				t.Fatalf("%v", err)
			}
			if err != nil {
				return nil
			}
			whole, err := g.Logical()
			if err != nil || !whole.SameBits(x) {
				t.Fatalf("%s holds %v, not %v: %v", g, whole, x, err)
			}
			return g
		}
		g := at(global.FromLocal(x, p, b.sbp(len(p.Hierarchy))))
		for range 3 {
			if g == nil {
				return
			}
			var gradients []*tensor.Tensor
			for _, rank := range g.Placement().Ranks {
				gradients = append(gradients, g.ToLocal(rank))
			}
			g.ToLocal(b.below(256) - 4)
			if _, err := g.LocalGradient(gradients); err != nil {
				if broken := (*global.PromiseError)(nil); !errors.As(err, &broken) {
					t.Fatalf("gradients of %s: %v", g, err)
				}
			}
			if b.below(2) == 1 {
				if q, err := b.placement(); err == nil {
					p = q
				}
			}
			g = at(g.ToGlobal(t.Context(), p, b.sbp(len(p.Hierarchy))))
		}
	})
}
