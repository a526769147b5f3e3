package beside

import "syscall"

// ProcessAttributes let a process die with the one that started it.
func ProcessAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
