package margins

import "math"

// hist counts ratios exactly, in bins a thirty-second of a power of two wide.
type hist struct {
	bins  map[uint32]int // by the upper bits of the ratio
	count int
	over  int     // ratios above 1
	max   float64 // exact
}

// binBits are dropped from a float64: 5 bits of its significand remain.
const binBits = 52 - 5

func (h *hist) add(ratio float64) {
	if h.bins == nil {
		h.bins = map[uint32]int{}
	}
	h.bins[uint32(math.Float64bits(ratio)>>binBits)]++
	h.count++
	if ratio > 1 {
		h.over++
	}
	h.max = max(h.max, ratio)
}
