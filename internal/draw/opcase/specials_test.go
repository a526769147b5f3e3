package opcase_test

import (
	"math"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/ops"
	"plumb/tensor"
)

// TestOrdersMeetTheirEnds: what goes by the order of elements meets NaN and both
// infinities, each once in a tensor, for which of two comes first is a convention.
func TestOrdersMeetTheirEnds(t *testing.T) {
	for _, id := range []string{"amax", "argmin", "sort", "median.dim", "gt", "clamp_min", "isnan", "max_pool2d"} {
		met := [3]bool{}
		for seed := range uint64(200) {
			p, err := opcase.Drawer{Table: ops.Table(), Def: ops.Table().Def(id)}.Legal(choice.New(seed), tensor.F32)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range p.Inputs {
				var counts [3]int
				x := in.Materialize()
				for i := range x.Len() {
					v := real(x.At(i))
					for k, is := range [3]bool{math.IsNaN(v), math.IsInf(v, 1), math.IsInf(v, -1)} {
						if is {
							met[k] = true
							counts[k]++
						}
					}
				}
				if max(counts[0], counts[1], counts[2]) > 1 || counts != [3]int{} && in.RequiresGrad {
					t.Errorf("%s of\n%s", id, p)
				}
			}
		}
		if met != [3]bool{true, true, true} {
			t.Errorf("%s meets NaN, infinity and its negative: %v", id, met)
		}
	}
}

// TestQuotientsAreOfOtherDivisors: a quotient by 1 or -1 tells little of rounding.
func TestQuotientsAreOfOtherDivisors(t *testing.T) {
	for _, id := range []string{"floor_divide", "remainder", "fmod"} {
		for _, dt := range []tensor.DType{tensor.I64, tensor.F32} {
			rounded := false
			for seed := range uint64(60) {
				p, err := opcase.Drawer{Table: ops.Table(), Def: ops.Table().Def(id)}.Legal(choice.New(seed), dt)
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Inputs) == 2 {
					x, y := real(p.Inputs[0].Materialize().At(0)), real(p.Inputs[1].Materialize().At(0))
					rounded = rounded || x*y < 0 && math.Abs(y) > 1 && math.Mod(x, y) != 0
				}
			}
			if !rounded {
				t.Errorf("%s of %s is rounded down and towards 0 alike", id, dt)
			}
		}
	}
}
