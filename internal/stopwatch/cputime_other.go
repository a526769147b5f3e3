//go:build !unix

package stopwatch

import "time"

var started = time.Now()

// CPUTime stands in for the CPU time of this process by the time on the clock.
func CPUTime() time.Duration { return time.Since(started) }
