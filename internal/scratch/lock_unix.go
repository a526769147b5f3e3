//go:build unix

package scratch

import (
	"os"

	"golang.org/x/sys/unix"
)

// canLock says that folders can be locked and open files lose their names.
const canLock = true

// tryLock locks a folder until the file is closed; nil where another has it, or
// it cannot be locked.
func tryLock(dir string) *os.File {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil
	}
	return f
}
