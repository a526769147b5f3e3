package worker

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns memory that cannot shrink under the host's mapping.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("plumb", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return unlinkedFile()
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		unix.Close(fd)
		return unlinkedFile()
	}
	return os.NewFile(uintptr(fd), "plumb"), nil
}

// trim gives back the pages that a large case has touched, where there are more than
// are kept.
func (m *memory) trim() {
	var s unix.Stat_t
	if unix.Fstat(int(m.file.Fd()), &s) == nil && s.Blocks*512 > keepMemory && s.Size > keepMemory { // the worker may have made it larger
		unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, keepMemory, s.Size-keepMemory)
	}
}
