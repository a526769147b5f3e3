package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapBound paces the collector where values are large and short-lived: garbage
// gathers until the heap has a size, or a quarter of that where nearly as much
// lives; collecting costs little, since values hold no pointers. A page of memory
// that is touched for the first time costs as much as many that are used again, so
// the size is small, and twice as much may lie free after a large case before pages
// go back to the system; a fixed limit would have it collect without end where more
// lives than that.
type heapBound struct {
	size  uint64
	reads []metrics.Sample
}

// boundHeap bounds the heap where cases under way may take so many bytes, unless
// GOGC says otherwise.
func boundHeap(memory int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	h := &heapBound{uint64(memory) / 2, []metrics.Sample{
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
	garbage := h.size / 4
	if h.size > live {
		garbage = max(garbage, h.size-live)
	}
	debug.SetGCPercent(int(100*garbage/live) + 1)
	debug.SetMemoryLimit(int64(live + garbage + 2*h.size))
	runtime.SetFinalizer(new(cycle), func(*cycle) { h.pace() })
}

// cycle is what a collection finds dead.
type cycle struct{ _ [16]byte }
