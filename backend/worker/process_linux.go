package worker

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processAttributes puts the worker into a session of its own, and so a process group,
// which dies with the host: where it computes without end, in however many threads, the
// host has its share of the processors (sched_autogroup).
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits for the worker's end, and ends what it has started. Its number,
// and so its process group, is its own until it has been waited for.
func (p *process) wait() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.kill()
	p.leave()
	p.group.end()
	killMarked(p.marker)
	p.cmd.Wait()
}

// killMarked kills the processes with a marker in their environment, those that
// left the process group too. They may have children until they are gone.
func killMarked(marker string) {
	for range 100 {
		found := false
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range files {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() && marked(pid, marker) {
				found = unix.Kill(pid, unix.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
