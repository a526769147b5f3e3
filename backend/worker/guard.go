package worker

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// A process is looked at so often, and may take so many times of the memory as it leaves
// the machine.
const (
	glance    = 100 * time.Millisecond
	leastLeft = 4
)

// Guard ends a process of this program's, of which nobody else says what it may take,
// where it has more than most bytes of memory to itself, unless most is 0, or four times
// what it leaves the machine. It does until it is told to stop, and then says why it has
// ended the process, "" if it has not. On Linux alone.
func Guard(pid int, most int64) (stop func() (why string)) {
	if runtime.GOOS != "linux" {
		return func() string { return "" }
	}
	var why string
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for why == "" {
			select {
			case <-over:
				return
			case <-time.After(glance):
			}
			held := own(pid)
			if left := FreeMemory(os.DirFS("/")); most > 0 && held > most || left > 0 && held/leastLeft > left {
				if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
					why = fmt.Sprintf("out of memory: it took %d MB, and left %d MB to the machine", held>>20, left>>20)
				}
			}
		}
	}()
	end := sync.OnceFunc(func() { close(over); <-gone })
	return func() string { end(); return why }
}

// own returns the bytes of memory that a process shares with no other; 0 where the
// system does not tell.
func own(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared); err != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}
