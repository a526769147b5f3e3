package margins

import (
	"maps"
	"math"
	"slices"
)

// hist counts ratios in bins of which each is a 32nd of a power of two wide.
// Zero has a bin of its own; what lies beyond least and most goes into theirs.
type hist struct {
	bins  map[uint32]int // by the upper bits of the ratio
	count int
	over  int // ratios above 1
	max   float64
}

const (
	binBits = 52 - 5 // of a float64 are dropped
	least   = 0x1p-32
	most    = 0x1p16
)

func (h *hist) add(ratio float64) {
	if h.bins == nil {
		h.bins = map[uint32]int{}
	}
	h.bins[bin(ratio)]++
	h.count++
	if ratio > 1 {
		h.over++
	}
	h.max = max(h.max, ratio)
}

func bin(ratio float64) uint32 {
	if ratio <= 0 {
		return 0
	}
	return uint32(math.Float64bits(min(max(ratio, least), most)) >> binBits)
}

// quantile returns a bound that at least the share q of the ratios keeps: the
// upper edge of the bin that holds the quantile, or the maximum where that is
// less. For ratios between least and most it is at most 1/32 too large.
func (h *hist) quantile(q float64) float64 {
	rank := max(int(math.Ceil(q*float64(h.count))), 1)
	for _, b := range slices.Sorted(maps.Keys(h.bins)) {
		if rank -= h.bins[b]; rank <= 0 {
			return h.edge(b)
		}
	}
	return h.max
}

func (h *hist) edge(b uint32) float64 {
	if b == 0 || b == bin(most) {
		return min(float64(b)*math.MaxFloat64, h.max)
	}
	return min(math.Float64frombits(uint64(b+1)<<binBits), h.max)
}
