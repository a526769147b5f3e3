package program

import (
	"math"
	"testing"

	"plumb/tensor"
)

// TestCotangentsAreTheirStream: drawn by blocks, a cotangent has the bits of its
// elements drawn one by one, each rounded by itself.
func TestCotangentsAreTheirStream(t *testing.T) {
	for _, round := range []tensor.DType{tensor.Invalid, tensor.F16, tensor.BF16, tensor.F32, tensor.C64} {
		for _, n := range []int{0, 1, 7, 3 * block} {
			f := Fill{Dist: Uniform, Lo: -1, Hi: 1, Key: 11, Round: round}
			got := f.Cotangent(n)
			f.stream(n, nil, func(i int, want float64) {
				if round != tensor.Invalid {
					one := tensor.New(round.Real(), 1)
					one.Set(0, complex(want, 0))
					want = one.Float(0)
				}
				if math.Float64bits(got[i]) != math.Float64bits(want) {
					t.Fatalf("%v: element %d of %d is %v, want %v", round, i, n, got[i], want)
				}
			})
			if len(got) != n {
				t.Errorf("%d elements, want %d", len(got), n)
			}
		}
	}
}

// TestCotangentsOfDtypes: drawn in a dtype, a cotangent has the bits of its numbers
// rounded to it.
func TestCotangentsOfDtypes(t *testing.T) {
	for _, f := range []Fill{
		{}, {Dist: Uniform, Lo: -1, Hi: 1, Key: 11}, {Dist: Uniform, Lo: -1, Hi: 1, Key: 12, Round: tensor.F16},
		{Dist: Uniform, Lo: -1, Hi: 1, Key: 13, Kinks: true}, {Dist: Integer, Lo: -3, Hi: 4, Key: 14}, {Dist: Normal, Hi: 1, Key: 15, Round: tensor.BF16},
	} {
		for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64, tensor.I64} {
			for _, shape := range [][]int{{}, {0, 3}, {7}, {3, 1000}, {cotangentBlock}, {2, cotangentBlock + 5}} {
				got := tensor.Unset(d, shape, nil)
				f.CotangentOf(got)
				want := tensor.New(d, shape...)
				for i, v := range f.Cotangent(want.Len()) {
					want.Set(i, complex(v, 0))
				}
				if !got.SameBits(want) {
					t.Errorf("%v %s %v: it is not its stream rounded", f, d, shape)
				}
			}
		}
	}
}
