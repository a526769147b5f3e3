package onekernel

import (
	"runtime"
	"sync"
	"time"
)

const (
	copyTime  = 20 * time.Millisecond
	leastCopy = 1 << 14 // bytes that one core copies at a time, in its nearest cache
)

// copyRate is how many bytes a second all cores read and write together where they copy
// as many bytes as a call moves: what stays in caches there may stay in them.
func copyRate(bytes int) float64 {
	cores := runtime.GOMAXPROCS(0)
	size := max(bytes/cores/2, leastCopy)
	rates := make([]float64, cores)
	var all sync.WaitGroup
	for i := range rates {
		all.Go(func() {
			from, to := make([]byte, size), make([]byte, size)
			for start, n := time.Now(), 0; ; {
				copy(to, from)
				n += 2 * size
				if spent := time.Since(start); spent > copyTime {
					rates[i] = float64(n) / spent.Seconds()
					return
				}
			}
		})
	}
	all.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}
