//go:build !linux

package beside

import "syscall"

// ProcessAttributes are none: the process ends with the pipe that it reads.
func ProcessAttributes() *syscall.SysProcAttr { return nil }
