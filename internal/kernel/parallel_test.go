package kernel

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestParallelCoversOnce(t *testing.T) {
	defer SetThreads(0)
	for _, threads := range []int{1, 2, 7} {
		SetThreads(threads)
		for _, n := range []int{0, 1, 9, 10, 11, 1000} {
			for _, grain := range []int{0, 1, 3, 10, 5000} {
				seen := make([]atomic.Int32, n)
				Parallel(n, grain, func(lo, hi int) {
					if lo >= hi || grain > 0 && (lo%grain != 0 || hi%grain != 0 && hi != n) {
						t.Errorf("n %d, grain %d: range [%d, %d)", n, grain, lo, hi)
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
				})
				for i := range seen {
					if c := seen[i].Load(); c != 1 {
						t.Fatalf("threads %d, n %d, grain %d: %d seen %d times", threads, n, grain, i, c)
					}
				}
			}
		}
	}
}

func TestParallelNests(t *testing.T) {
	defer SetThreads(0)
	SetThreads(4)
	var running, most, total atomic.Int32
	Parallel(8, 1, func(lo, hi int) {
		for range hi - lo {
			Parallel(100, 1, func(lo, hi int) {
				now := running.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				total.Add(int32(hi - lo))
				for range 10 {
					runtime.Gosched()
				}
				running.Add(-1)
			})
		}
	})
	if total.Load() != 800 || most.Load() > 4 {
		t.Errorf("%d calls, %d at once; want 800, at most 4", total.Load(), most.Load())
	}
}

func TestParallelPanics(t *testing.T) {
	defer SetThreads(0)
	for _, threads := range []int{1, 4} {
		SetThreads(threads)
		for _, at := range []int{0, 99} {
			func() {
				defer func() {
					if got := recover(); got != at {
						t.Errorf("threads %d: panic %v, want %d", threads, got, at)
					}
				}()
				Parallel(100, 1, func(lo, hi int) {
					if lo <= at && at < hi {
						panic(at)
					}
				})
			}()
		}
	}
	for range 1000 {
		if helpers.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d helpers left", helpers.Load())
}
