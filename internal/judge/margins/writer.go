package margins

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"plumb/internal/judge/verdict"
)

// Default returns the file of the last run's margins, in the user's cache
// directory. The error says that there is no such directory.
func Default() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "plumb", "margins", "last.jsonl"), nil
}

// Writer writes margins to a file, which is replaced only when all are written:
// a reader sees the run before or this one, never half of it. Its methods are
// called from one goroutine at a time.
type Writer struct {
	path string
	file *os.File
	w    *bufio.Writer
	enc  *json.Encoder
	err  error
}

// Create starts a file of margins at path, and makes its directory where that
// is missing. What is no regular file, such as a pipe, is written in place.
func Create(path string) (*Writer, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, file: f, w: bufio.NewWriterSize(f, 1<<16)}
	w.enc = json.NewEncoder(w.w)
	w.enc.SetEscapeHTML(false)
	return w, nil
}

func create(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(path), ".margins-*")
}

// Add writes the margins of a record. After an error nothing is written any
// more, and Close returns it.
func (w *Writer) Add(r *verdict.Record) {
	if w.err != nil {
		return
	}
	for _, m := range Of(r) {
		if w.err = w.enc.Encode(m); w.err != nil {
			return
		}
	}
}

// Close puts the file in its place; where something went wrong, the file that
// was there before stays.
func (w *Writer) Close() error {
	err := errors.Join(w.err, w.w.Flush())
	if w.file.Name() == w.path {
		return errors.Join(err, w.file.Close())
	}
	defer os.Remove(w.file.Name())
	if err = errors.Join(err, w.file.Chmod(0o644), w.file.Close()); err != nil {
		return err
	}
	return os.Rename(w.file.Name(), w.path)
}
