package command

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapBound paces the collector where values are large and short-lived: garbage
// of a size gathers between collections, less where so much lives that the heap
// would exceed three times that, and an eighth of it at least; collecting costs
// little, since values hold no pointers. A page of memory that is touched for the
// first time costs as much as many that are used again, so pages go back to the
// system only beyond the three sizes; a fixed limit would have it collect without
// end where more lives than that.
type heapBound struct {
	size    uint64
	percent uint64 // of what lives may gather at most
	reads   []metrics.Sample
}

// anyGarbage lets garbage gather however little lives.
const anyGarbage = 1 << 20

// boundHeap bounds the heap where cases under way may take so many bytes, and
// garbage to a percentage of what lives, unless GOGC says otherwise.
func boundHeap(memory, percent int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	h := &heapBound{uint64(memory) / 2, uint64(percent), []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/scan/stack:bytes"},
	}}
	h.pace()
}

// leastLive is what the runtime takes for live where less is.
const leastLive = 4 << 20

// pace sets the size at which the next collection begins, and is called again
// after it.
func (h *heapBound) pace() {
	metrics.Read(h.reads)
	live := uint64(0)
	for _, r := range h.reads {
		live += r.Value.Uint64()
	}
	live = max(live, leastLive)
	most := 3 * h.size
	garbage := min(max(most, live+h.size/8)-live, h.size)
	garbage = min(garbage, live*h.percent/100)
	debug.SetGCPercent(int(100*garbage/live) + 1)
	debug.SetMemoryLimit(int64(max(live+garbage+h.size/8, most)))
	runtime.SetFinalizer(new(cycle), func(*cycle) { h.pace() })
}

// cycle is what a collection finds dead.
type cycle struct{ _ [16]byte }
