//go:build unix && !linux

package worker

import "os"

func memoryFile() (*os.File, error) { return unlinkedFile() }

func (m *memory) trim() {}
