//go:build unix && !linux

package worker

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts the worker into its own process group.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// wait waits for the worker's end, and ends its process group.
func (p *process) wait() {
	p.cmd.Wait()
	p.leave()
	unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
}

// killListed kills the processes that are listed, and reports whether there were any.
func killListed(list func() []int) bool {
	pids := list()
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return len(pids) > 0
}

func (p *process) forked(*forker, []string, *os.File, *os.File, *os.File, *os.File) error {
	return errors.New("workers are forked on Linux alone")
}
