package program

import (
	"math"
	"testing"

	"plumb/tensor"
)

// TestScalesCoverTheRange: elements lie in the range, in each octave of both
// signs, and close to 1 and -1.
func TestScalesCoverTheRange(t *testing.T) {
	for _, r := range []struct{ lo, hi float64 }{{-100, 100}, {-1, 100}, {0, 100}, {1, 100}, {-1, 1}, {0, 1}, {-30, -2}, {0, 1e-3}, {5, 5.5}} {
		in := Input{Name: "x", DType: tensor.F64, Shape: []int{4000}, Fill: Fill{Dist: Uniform, Lo: r.lo, Hi: r.hi, Key: 7, Scales: true}}
		x := in.Materialize()
		met := map[int]int{}
		near := 0
		for i := range x.Len() {
			v := x.Float(i)
			if !(v >= r.lo && v < r.hi || v == r.hi && r.hi < 0) {
				t.Fatalf("[%v, %v): element %d is %v", r.lo, r.hi, i, v)
			}
			_, octave := math.Frexp(v)
			met[int(math.Copysign(1, v))*(octave+100)]++
			if d := math.Abs(math.Abs(v) - 1); d > 0 && d < 1.0/64 {
				near++
			}
		}
		for v := max(math.Abs(r.lo), math.Abs(r.hi)) * 0.99; v > max(1.0/1024*min(1, r.hi), 1e-9); v /= 2 {
			_, octave := math.Frexp(v)
			if v < r.hi && v >= r.lo && met[octave+100] == 0 || -v >= r.lo && -v < r.hi && met[-octave-100] == 0 {
				t.Errorf("[%v, %v): no element of the size %v", r.lo, r.hi, v)
			}
		}
		if holdsOne := r.lo < 1 && r.hi > 1 || r.lo == -1 || r.hi == 1 || r.lo == 1; holdsOne && near < 200 {
			t.Errorf("[%v, %v): %d elements are close to 1 or -1", r.lo, r.hi, near)
		}
	}
}

// TestScalesAreTheSameEverywhere: the bits of a recorded suite's inputs are
// those of the machine that recorded it.
func TestScalesAreTheSameEverywhere(t *testing.T) {
	in := Input{Name: "x", DType: tensor.F64, Shape: []int{6}, Fill: Fill{Dist: Uniform, Lo: -100, Hi: 100, Key: 3, Scales: true}}
	x := in.Materialize()
	for i, want := range scaledBits {
		if got := math.Float64bits(x.Float(i)); got != want {
			t.Errorf("element %d is %v, %#x, want %#x", i, x.Float(i), got, want)
		}
	}
}

var scaledBits = []uint64{0xbf5383d545984356, 0xbfeb44d881308274, 0xc02dc58f2ace0a84, 0x3ff0a575babb58a7, 0x3ff2d9303dfa7087, 0xc0186bbd675c11f4}
