package verdict

import (
	"math"

	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// nudge moves each element by up to 2^k units in the last place (2^(k/4) in a
// half dtype): the small steps keep what cancels nearly, the large ones sample
// the roundings on the way. Equal values move alike, so that ties stay ties, and
// zeros stay. The reference is compared with the truth on the same nudged
// input, so a kink that is crossed is crossed by both.
func nudge(t *tensor.Tensor, k uint64) *tensor.Tensor {
	d := t.DType()
	u := tensor.NewStrided(d, t.Shape(), t.Strides())
	u.CopyFrom(t)
	if !d.IsDifferentiable() {
		return u
	}
	n := nudger{k: k, d: d.Real(), reach: float64(uint64(1) << k)}
	if isHalf(d) {
		n.reach = float64(uint64(1) << (k / 4))
	}
	switch n.d { // what lies in the gaps of strides is 0, and stays
	case tensor.F16:
		nudgeHalves(&n, tensor.Data[tensor.Float16](u), tensor.Float16.Float32, tensor.Float64ToFloat16)
	case tensor.BF16:
		nudgeHalves(&n, tensor.Data[tensor.BFloat16](u), tensor.BFloat16.Float32, tensor.Float64ToBFloat16)
	case tensor.F32:
		reals := realsOf[float32](u)
		for i, v := range reals {
			reals[i] = float32(n.move(float64(v)))
		}
	default:
		reals := realsOf[float64](u)
		for i, v := range reals {
			reals[i] = n.move(v)
		}
	}
	return u
}

// nudger moves numbers of a dtype that is real.
type nudger struct {
	k     uint64
	d     tensor.DType
	reach float64 // in units in the last place
}

func (n *nudger) move(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	part := float64(choice.Derive(math.Float64bits(v), n.k)>>11)*0x1p-52 - 1
	return v + compare.Spacing(math.Abs(v), n.d)*math.Round(part*n.reach)
}

// nudgeHalves moves each value once, as there are few.
func nudgeHalves[H ~uint16](n *nudger, all []H, wide func(H) float32, narrow func(float64) H) {
	var moved [1 << 16]H
	var known [1 << 16]bool
	for i, h := range all {
		if !known[h] {
			moved[h], known[h] = narrow(n.move(float64(wide(h)))), true
		}
		all[i] = moved[h]
	}
}

// realsOf is the storage of a tensor as real numbers, two of a complex one.
func realsOf[T float32 | float64](t *tensor.Tensor) []T {
	real := t.DType().Real()
	n := len(t.Storage()) / real.Size()
	parts, err := t.As(real, []int{n}, []int{1}, 0)
	if err != nil {
		panic(err)
	}
	return tensor.Data[T](parts)
}
