package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// openRegular opens a file that a command reads to its end. What is no regular
// file may have none: a FIFO or a device makes the command wait without end.
func openRegular(path string) (*os.File, error) {
	if err := checkRegular(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// checkRegular returns an error where a path is not that of a regular file.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err.(*fs.PathError).Err}
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Errorf("read %s: is a directory", path)
	case mode&fs.ModeNamedPipe != 0:
		return fmt.Errorf("read %s: is a FIFO; save its text in a file", path)
	case !mode.IsRegular():
		return fmt.Errorf("read %s: is not a regular file", path)
	}
	return nil
}

// checkWritable returns an error where no file can be written at a path: there
// is a folder, or there is none around it.
func checkWritable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("is a directory; name a file in it")
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no directory %s", dir)
	}
	return nil
}

// checkFolder returns an error where a path is that of a file.
func checkFolder(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return errors.New("is a file; name a directory")
	}
	return nil
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
