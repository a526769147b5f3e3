package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	list := func() (pids []int) {
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range files {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() && marked(pid, marker) {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	for tries := 0; tries < 100 && killListed(list); tries++ {
		time.Sleep(time.Millisecond)
	}
}

// killListed kills the processes that are listed, and reports whether there were any. Where
// many are started the number of one that has ended is soon another's: each is held before
// it is listed once more.
func killListed(list func() []int) bool {
	pids, held := list(), map[int]int{}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case err == nil:
			held[pid] = fd
		case !errors.Is(err, unix.ESRCH): // the kernel has no such call, or there are no descriptors
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	still := pids[:0:0]
	if len(held) > 0 {
		still = list()
	}
	for pid, fd := range held {
		if slices.Contains(still, pid) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
	return len(pids) > 0
}
