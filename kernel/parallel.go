package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
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
	var (
		next    atomic.Int64
		failure atomic.Pointer[any]
		ranges  sync.WaitGroup
	)
	run := func(lo int) {
		defer ranges.Done()
		defer func() {
			if p := recover(); p != nil {
				failure.CompareAndSwap(nil, &p)
			}
		}()
		if failure.Load() == nil {
			f(lo, min(lo+step, n))
		}
	}
	work := func() {
		for lo := int(next.Add(int64(step))) - step; lo < n; lo = int(next.Add(int64(step))) - step {
			run(lo)
		}
	}
	ranges.Add(ceilDiv(n, step))
	for range extra {
		go func() {
			defer helpers.Add(-1)
			work()
		}()
	}
	work()
	ranges.Wait()
	if p := failure.Load(); p != nil {
		panic(*p)
	}
}

func ceilDiv(n, d int) int {
	return (n + d - 1) / d
}
