package api_test

import (
	"testing"

	"plumb/api"
)

// BenchmarkAdd is what a call costs beside its arithmetic.
func BenchmarkAdd(b *testing.B) {
	for _, taped := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "taped"}[taped]
		b.Run(name, func(b *testing.B) {
			s := api.NewSession()
			x, err := api.FromSlice(s, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 8)
			if err != nil {
				b.Fatal(err)
			}
			if taped {
				if err := x.RequireGrad(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := api.Add(x, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestCallsAllocate: a call that came before makes its result and little else.
func TestCallsAllocate(t *testing.T) {
	for _, taped := range []bool{false, true} {
		s := api.NewSession()
		x, err := api.FromSlice(s, make([]float32, 8), 8)
		if err == nil && taped {
			err = x.RequireGrad()
		}
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(100, func() {
			if _, err := api.Add(x, x); err != nil {
				t.Fatal(err)
			}
		})
		if n > 3 {
			t.Errorf("%v allocations with a tape, %v", n, taped)
		}
	}
}
