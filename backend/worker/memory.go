package worker

import (
	"encoding/binary"
	"os"
)

const (
	align       = 64
	startMemory = 16 << 20  // sparse: pages exist once they are touched
	keepMemory  = 256 << 20 // what a large case leaves behind beyond this is given back
)

// memory is the region that host and worker both map. Its first bytes say
// which case, from 1, and which call is running; the host fills the rest from
// below, and the worker's results follow.
type memory struct {
	file  *os.File
	bytes []byte
	top   int
	old   [][]byte // mappings that tensors may still lie in
}

func newMemory() (*memory, error) {
	file, err := memoryFile()
	if err != nil {
		return nil, err
	}
	m := &memory{file: file, top: align}
	if err := m.resize(startMemory); err != nil {
		file.Close()
		return nil, err
	}
	return m, nil
}

// resize makes the region larger.
func (m *memory) resize(size int) error {
	if err := m.file.Truncate(int64(size)); err != nil {
		return err
	}
	return m.remap(size)
}

// reserve returns n bytes of the region and their offset.
func (m *memory) reserve(n int) ([]byte, int, error) {
	at := m.top
	if at+n > len(m.bytes) {
		if err := m.resize(max(2*len(m.bytes), at+n+align)); err != nil {
			return nil, 0, err
		}
	}
	m.top = (at + n + align - 1) &^ (align - 1)
	return m.bytes[at : at+n : at+n], at, nil
}

// follow maps the region at the size to which the worker has brought it.
func (m *memory) follow(size int) error {
	if size <= len(m.bytes) {
		return nil
	}
	info, err := m.file.Stat()
	if err != nil {
		return err
	}
	if int64(size) > info.Size() {
		return os.ErrInvalid
	}
	return m.remap(size)
}

// room makes the region so large that n bytes can be reserved without a new mapping.
func (m *memory) room(n int) error {
	if m.top+n <= len(m.bytes) {
		return nil
	}
	return m.resize(max(2*len(m.bytes), m.top+n))
}

// release ends the use of tensors in the region, and gives back what it takes
// beyond what is kept.
func (m *memory) release() {
	for _, b := range m.old {
		unmap(b)
	}
	m.old = nil
	m.trim()
}

func (m *memory) clearMark() { clear(m.bytes[:8]) }

// mark returns the case, from 0, and the call that were running; ok is false
// when none was.
func (m *memory) mark() (index, call int, ok bool) {
	index = int(binary.NativeEndian.Uint32(m.bytes))
	return index - 1, int(binary.NativeEndian.Uint32(m.bytes[4:])), index > 0
}
