package rounding

import (
	"math"
	"runtime"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// steps of a recurrence that reads its argument by parts.
type parts struct {
	name string
	of   func(b op.Builder, x op.Value, t, n int) op.Value
}

var recurrences = []parts{
	{"an entry", func(b op.Builder, x op.Value, t, _ int) op.Value {
		return b.Op("getitem", x, op.Index{op.Slice{}, int64(t)})
	}},
	{"one from the end", func(b op.Builder, x op.Value, t, n int) op.Value { return b.Op("select", x, 1, t-n) }},
	{"a part that the next one overlaps", func(b op.Builder, x op.Value, t, n int) op.Value {
		return b.Op("sum", b.Narrow(x, 1, min(t, n-2), 2), op.Kw("dim", []int{1}))
	}},
}

// TestGradientsOfPartsAreOfTheWhole: the gradients of parts of a tensor, added up in place,
// are those of whole tensors of zeros with each part in it, in linear memory, and so are
// their errors, but for those of adding zeros.
func TestGradientsOfPartsAreOfTheWhole(t *testing.T) {
	const rows, wide = 3, 16
	for _, r := range recurrences {
		gradient := func(n int, create bool) (g, err *tensor.Tensor) {
			x := tensor.New(tensor.F64, rows, n, wide)
			for i := range x.Len() {
				x.Set(i, complex(math.Sin(float64(i)), 0))
			}
			s := newSession(ops.Table(), 0x1p-24)
			leaf, b := s.Leaf(x, true), s.Builder()
			var h op.Value = s.Leaf(tensor.New(tensor.F64, rows, wide), false)
			for step := range n {
				h = b.Op("tanh", b.Add(b.Mul(h, 0.9), r.of(b, leaf, step, n)))
			}
			cot, failed := s.Backward([]op.Value{h}, []op.Value{b.OnesLike(h)}, create)
			if failed != nil {
				t.Fatalf("%s: %v", r.name, failed)
			}
			g = tensorOf(cot[op.Value(leaf)])
			return g, s.states[g].err
		}
		got, gotErr := gradient(12, false)
		want, wantErr := gradient(12, true)
		for i := range want.Len() {
			e, most := gotErr.Float(i), wantErr.Float(i)
			if got.Float(i) != want.Float(i) || e > most*(1+1e-9) || e < most-13*math.Abs(want.Float(i))-1e-9*most {
				t.Fatalf("%s: element %d is %v ± %v, want %v ± %v", r.name, i, got.Float(i), e, want.Float(i), most)
			}
		}
		const n = 400
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		gradient(n, false)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > n*rows*wide*n*8 {
			t.Errorf("%s: %d bytes for %d steps, more than a tensor for each", r.name, used, n)
		}
	}
}
