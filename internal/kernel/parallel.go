package kernel

import (
	"runtime"
	"sync/atomic"
	"time"
)

var (
	threads atomic.Int32 // 0 means GOMAXPROCS
	helpers atomic.Int32 // goroutines that Parallel runs at this moment
)

// SetThreads limits how many goroutines the kernels use at once; n < 1 restores the default, GOMAXPROCS.
// No result depends on it.
func SetThreads(n int) {
	threads.Store(int32(max(n, 0)))
}

// Threads is the limit that SetThreads set, or GOMAXPROCS.
func Threads() int {
	if n := threads.Load(); n > 0 {
		return int(n)
	}
	return runtime.GOMAXPROCS(0)
}

// Parallel calls f on half-open ranges that together cover [0, n) once, several at a time.
// Every range but the last starts and ends at multiples of grain; how many grains it spans depends on Threads, so f must not carry sums from one grain to the next.
// Calls may nest: all of them together use at most Threads-1 goroutines beside their callers, and a call that gets none is f(0, n).
// A panic in f reaches the caller once all ranges under way have ended.
func Parallel(n, grain int, f func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	extra := 0
	if n > grain {
		extra = borrow(min(Threads(), ceilDiv(n, grain)) - 1)
	}
	if extra == 0 {
		f(0, n)
		return
	}
	share(n, ceilDiv(ceilDiv(n, grain), 4*(extra+1))*grain, extra, f)
}

func borrow(want int) int {
	for {
		used := helpers.Load()
		extra := min(want, Threads()-1-int(used))
		if extra <= 0 {
			return 0
		}
		if helpers.CompareAndSwap(used, used+int32(extra)) {
			return extra
		}
	}
}

// share waits for the ranges, not for the helpers: one that starts late finds nothing to do.
func share(n, step, extra int, f func(lo, hi int)) {
	l := &loop{f: f, n: n, step: step, done: make(chan struct{})}
	l.left.Store(int64(ceilDiv(n, step)))
	for range extra {
		lend(l)
	}
	l.work()
	if !awhile(func() bool { return l.left.Load() == 0 }) {
		<-l.done
	}
	if p := l.failure.Load(); p != nil {
		panic(*p)
	}
}

// A loop is one call of Parallel: whoever works on it takes its next range.
type loop struct {
	f          func(lo, hi int)
	n, step    int
	next, left atomic.Int64
	done       chan struct{} // closed when no range is left
	failure    atomic.Pointer[any]
}

func (l *loop) work() {
	step := int64(l.step)
	for lo := l.next.Add(step) - step; lo < int64(l.n); lo = l.next.Add(step) - step {
		l.run(int(lo))
	}
}

func (l *loop) run(lo int) {
	defer func() {
		if p := recover(); p != nil {
			l.failure.CompareAndSwap(nil, &p)
		}
		if l.left.Add(-1) == 0 {
			close(l.done)
		}
	}()
	if l.failure.Load() == nil {
		l.f(lo, min(lo+l.step, l.n))
	}
}

// patience is how long a helper looks out for another loop, and Parallel for the end of its own, before either sleeps.
// Waking a thread took 70 µs where it was measured, as long as many a loop.
const patience = 50 * time.Microsecond

// A helper is a goroutine that works on one loop after another.
type helper struct{ next atomic.Pointer[loop] }

var (
	idle    = make(chan *helper, 64) // helpers that look out for a loop, or did
	retired = new(loop)              // the next of a helper that gave up
)

// lend has a helper work on the loop: one that is awake, or a new one.
func lend(l *loop) {
	for {
		select {
		case h := <-idle:
			if h.next.CompareAndSwap(nil, l) {
				return
			}
		default:
			go new(helper).serve(l)
			return
		}
	}
}

func (h *helper) serve(l *loop) {
	for l != retired {
		l.work()
		h.next.Store(nil)
		l = h.await()
	}
}

// await gives the borrowed helper back and returns its next loop, or retired.
func (h *helper) await() *loop {
	select {
	case idle <- h:
		helpers.Add(-1)
	default:
		helpers.Add(-1)
		return retired
	}
	if !awhile(func() bool { return h.next.Load() != nil }) {
		h.next.CompareAndSwap(nil, retired)
	}
	return h.next.Load()
}

// awhile reports whether the condition comes to hold before patience ends.
func awhile(holds func() bool) bool {
	for start := time.Now(); time.Since(start) < patience; {
		for range 100 {
			if holds() {
				return true
			}
		}
	}
	return holds()
}

func ceilDiv(n, d int) int {
	return (n + d - 1) / d
}
