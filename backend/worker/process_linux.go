package worker

import "syscall"

// processAttributes puts the worker into its own process group, which dies with the host.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
