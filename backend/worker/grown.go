//go:build unix

package worker

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// grown is what the process takes beyond what it had when it was ready, and what it has
// made of the shared memory beyond what was given to it.
func (p *process) grown() int64 {
	return own(p.pid) - p.ready + p.memory.beyond()
}

// crowded reports whether the process keeps so many threads of earlier cases that one to
// come might be refused its own: Paddle keeps ten for each program that it has captured.
func (p *process) crowded() bool {
	s := readStatus(fmt.Sprintf("/proc/%d", p.pid))
	return s != nil && int64(s.threads) > p.bounds.tasks()/2
}

// used returns the time of processors that the process has taken; below 0 where the
// system does not tell.
func (p *process) used() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return -1
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on: proc(5)
	if len(fields) < 13 {
		return -1
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, also := strconv.ParseInt(fields[12], 10, 64)
	if err != nil || also != nil {
		return -1
	}
	return time.Duration(user+system) * (time.Second / ticks)
}

// stopped reports whether the process has been told to stop (SIGSTOP).
func (p *process) stopped() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	return err == nil && bytes.HasPrefix(text[bytes.LastIndexByte(text, ')')+1:], []byte(" T"))
}

// ticks are the units in a second in which Linux tells of time.
const ticks = 100

// queued returns how long threads of the process have waited for a processor; 0 where the
// system does not tell. One that gets none does not sleep.
func (p *process) queued() time.Duration {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.pid))
	var sum time.Duration
	for _, name := range tasks {
		text, err := os.ReadFile(name)
		if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				sum += time.Duration(n)
			}
		}
	}
	return sum
}
