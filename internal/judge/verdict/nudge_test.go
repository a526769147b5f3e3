package verdict

import (
	"math"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// TestNudgedElementsMoveByThemselves: moved by dtypes, elements of all layouts
// come to what each comes to by itself.
func TestNudgedElementsMoveByThemselves(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64, tensor.C64, tensor.C128, tensor.I64, tensor.Bool} {
		for _, strides := range [][]int{nil, {1, 3}, {10, 2}, {0, 1}} {
			in := program.Input{DType: d, Shape: []int{3, 5}, Strides: strides, Fill: program.Fill{Dist: program.Uniform, Lo: -2, Hi: 2, Key: 5}}
			x := in.Materialize()
			if d.IsDifferentiable() {
				x.Set(1, 0)
				x.Set(7, complex(math.Inf(-1), 0))
				x.Set(11, complex(math.NaN(), 0))
			}
			for k := range uint64(NearInputs) {
				got := nudge(x, k)
				for i := range x.Len() {
					if want := movedAlone(d, x.At(i), k); !bitEqual(got.At(i), want) {
						t.Fatalf("%s, strides %v, step %d: element %d is %v, want %v", d, strides, k, i, got.At(i), want)
					}
				}
			}
		}
	}
}

// movedAlone is where an element comes to, by the rule.
func movedAlone(d tensor.DType, v complex128, k uint64) complex128 {
	if !d.IsDifferentiable() {
		return v
	}
	reach := k
	if isHalf(d) {
		reach = k / 4
	}
	move := func(v float64) float64 {
		if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return v
		}
		part := float64(choice.Derive(math.Float64bits(v), k)>>11)*0x1p-52 - 1
		return v + compare.Spacing(math.Abs(v), d)*math.Round(part*float64(uint64(1)<<reach))
	}
	one := tensor.New(d, 1)
	one.Set(0, complex(move(real(v)), move(imag(v))))
	return one.At(0)
}

func bitEqual(a, b complex128) bool {
	same := func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	return same(real(a), real(b)) && same(imag(a), imag(b))
}
