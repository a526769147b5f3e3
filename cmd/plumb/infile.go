package main

import (
	"fmt"
	"io/fs"
	"os"
)

// openRegular opens a file that a command reads to its end. What is no regular
// file may have none: a FIFO or a device makes the command wait without end.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err.(*fs.PathError).Err}
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, fmt.Errorf("read %s: is a directory", path)
	case mode&fs.ModeNamedPipe != 0:
		return nil, fmt.Errorf("read %s: is a FIFO; save its text in a file", path)
	case !mode.IsRegular():
		return nil, fmt.Errorf("read %s: is not a regular file", path)
	}
	return os.Open(path)
}

// readRegular reads such a file.
func readRegular(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, info.Size())
	n, err := f.ReadAt(text, 0)
	if n == len(text) {
		err = nil
	}
	return text[:n], err
}
