package margins

import (
	"maps"
	"math"
	"slices"
)

// hist counts ratios in bins of which each is a 32nd of a power of two wide,
// as long as maxBins of them suffice. Whenever they do not, all bins of the
// hist are joined two by two. So its content follows from the ratios alone,
// whatever their order and however they were split among hists that are merged.
type hist struct {
	bins  map[int]int // by binOf(ratio) >> joins
	joins int
	count int
	over  int // ratios above 1
	max   float64
}

// Bin 0 has the ratios of 0, the first after it all below least, the last all
// from most. After maxJoins there are no more than maxBins.
const (
	binsPerOctave = 32
	binBits       = 52 - 5 // of a float64 are dropped
	leastExponent = -12
	mostExponent  = 3
	least         = 1.0 / (1 << -leastExponent)
	most          = 1 << mostExponent
	lastBin       = (mostExponent - leastExponent + 1) * binsPerOctave
	maxJoins      = 3
	maxBins       = lastBin>>maxJoins + 1
	binOffset     = (1023+leastExponent)*binsPerOctave - binsPerOctave
)

func (h *hist) add(ratio float64) {
	if h.bins == nil {
		h.bins = map[int]int{}
	}
	h.bins[binOf(ratio)>>h.joins]++
	h.count++
	if ratio > 1 {
		h.over++
	}
	h.max = max(h.max, ratio)
	h.fit()
}

// merge makes h the hist of its ratios and those of o.
func (h *hist) merge(o *hist) {
	if h.bins == nil {
		h.bins = map[int]int{}
	}
	for h.joins < o.joins {
		h.join()
	}
	for b, n := range o.bins {
		h.bins[b>>(h.joins-o.joins)] += n
	}
	h.count += o.count
	h.over += o.over
	h.max = max(h.max, o.max)
	h.fit()
}

func (h *hist) fit() {
	for len(h.bins) > maxBins {
		h.join()
	}
}

func (h *hist) join() {
	joined := make(map[int]int, maxBins)
	for b, n := range h.bins {
		joined[b>>1] += n
	}
	h.bins = joined
	h.joins++
}

func binOf(ratio float64) int {
	if ratio <= 0 {
		return 0
	}
	return int(math.Float64bits(min(max(ratio, least), most))>>binBits) - binOffset
}

// quantile returns a bound that at least the share q of the ratios keeps: the
// upper edge of the bin that holds the quantile, or the maximum where that is
// less. For ratios between least and most it is at most 1/32 too large, 1/4
// after maxJoins.
func (h *hist) quantile(q float64) float64 {
	rank := max(int(math.Ceil(q*float64(h.count))), 1)
	for _, b := range slices.Sorted(maps.Keys(h.bins)) {
		if rank -= h.bins[b]; rank <= 0 {
			return h.edge(b)
		}
	}
	return h.max
}

func (h *hist) edge(b int) float64 {
	switch b {
	case 0:
		return 0
	case lastBin >> h.joins:
		return h.max
	}
	return min(math.Float64frombits(uint64((b+1)<<h.joins+binOffset)<<binBits), h.max)
}
