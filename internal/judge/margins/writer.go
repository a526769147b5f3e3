package margins

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
)

// row is a line of a file: what a Table keeps of a group.
type row struct {
	Op     string         `json:"op"`
	DType  string         `json:"dtype"`
	Part   backend.Part   `json:"part"`
	Erring classes        `json:"erring,omitempty"` // classes of the comparisons with an error
	Clean  classes        `json:"clean,omitempty"`  // of those without
	Count  int            `json:"count"`
	Over   int            `json:"over,omitempty"`
	Max    compare.Number `json:"max"`
	At     *Place         `json:"at,omitempty"` // of Max, when above 0
	// Bins has the counts of bins 0, 1 and so on; in the place of k empty bins
	// it may have -k. Bin 0 is the ratio 0. Any other, its number multiplied by
	// Join being n, begins at 2^(n/32 − 13) × (1 + (n mod 32)/32), n/32 rounded
	// down. The first of them also has what is less, the last what is more.
	Join int   `json:"join"`
	Bins []int `json:"bins"`
}

// Write writes the table as a file that Read merges: a line per group, by
// operator, dtype and part.
func (t *Table) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	order := slices.SortedFunc(maps.Keys(t.groups), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.dtype, b.dtype), cmp.Compare(a.part, b.part))
	})
	for _, g := range order {
		if err := enc.Encode(t.groups[g].row(g)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tally) row(g group) *row {
	r := &row{Op: g.op, DType: g.dtype, Part: g.part, Erring: t.erring, Clean: t.clean,
		Count: t.count, Over: t.over, Max: compare.Number(t.max), Join: 1 << t.joins}
	if t.max > 0 {
		r.At = &t.at
	}
	next := 0
	for _, b := range slices.Sorted(maps.Keys(t.bins)) {
		if b > next {
			r.Bins = append(r.Bins, next-b)
		}
		r.Bins = append(r.Bins, t.bins[b])
		next = b + 1
	}
	return r
}

// Default returns the file of the last run's margins, in the user's cache
// directory. The error says that there is no such directory.
func Default() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "plumb", "margins", "last.jsonl"), nil
}

// Writer sums up the margins of a run and writes them to a file, which is
// replaced at once: a reader sees the run before or this one, never half of
// it. Its methods are called from one goroutine at a time.
type Writer struct {
	path  string
	file  *os.File
	table Table
	err   error
}

// Create starts a file of margins at path, and makes its directory where that
// is missing. What is no regular file, such as a pipe, is written in place.
func Create(path string) (*Writer, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	return &Writer{path: path, file: f}, nil
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

// Add counts the margins of a record. After an error nothing is counted any
// more, and Close returns it.
func (w *Writer) Add(r *verdict.Record) {
	if w.err != nil {
		return
	}
	for _, m := range Of(r) {
		if w.err = w.table.Add(&m); w.err != nil {
			return
		}
	}
}

// Close writes the file and puts it in its place; where something went wrong,
// the file that was there before stays.
func (w *Writer) Close() error {
	err := w.err
	if err == nil {
		err = w.write()
	}
	if w.file.Name() == w.path {
		return errors.Join(err, w.file.Close())
	}
	defer os.Remove(w.file.Name())
	if err = errors.Join(err, w.file.Chmod(0o644), w.file.Close()); err != nil {
		return err
	}
	return os.Rename(w.file.Name(), w.path)
}

func (w *Writer) write() error {
	b := bufio.NewWriterSize(w.file, 1<<16)
	return errors.Join(w.table.Write(b), b.Flush())
}
