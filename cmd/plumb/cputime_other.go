//go:build !unix

package main

import "time"

var started = time.Now()

// cpuTime stands in for the CPU time of this process by the time on the clock.
func cpuTime() time.Duration { return time.Since(started) }
