//go:build unix

package worker

import (
	"os"

	"golang.org/x/sys/unix"
)

// unlinkedFile returns a file without a name in a directory that is memory where one is.
func unlinkedFile() (*os.File, error) {
	dir := "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "plumb-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

func (m *memory) remap(size int) error {
	bytes, err := unix.Mmap(int(m.file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	if m.bytes != nil {
		m.old = append(m.old, m.bytes)
	}
	m.bytes = bytes
	return nil
}

// beyond returns how many bytes of the region there are beyond what the host has mapped.
func (m *memory) beyond() int64 {
	var s unix.Stat_t
	if unix.Fstat(int(m.file.Fd()), &s) != nil {
		return 0
	}
	return max(s.Blocks*512-int64(len(m.bytes)), 0)
}

func unmap(b []byte) { unix.Munmap(b) }

func (m *memory) close() {
	for _, b := range m.old {
		unix.Munmap(b)
	}
	m.old = nil
	if m.bytes != nil {
		unix.Munmap(m.bytes)
		m.bytes = nil
	}
	m.file.Close()
}
