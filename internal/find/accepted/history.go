package accepted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CleanRuns is after how many clean runs on end an entry counts as fixed.
const CleanRuns = 3

// History counts, across runs, for how many on end each entry has not failed.
type History struct {
	path  string
	Clean map[string]int `json:"clean"` // by the entry's identity
}

// DefaultHistory returns the place of a list's history in the user's cache.
func DefaultHistory(list string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(list)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(dir, "plumb", "known", hex.EncodeToString(sum[:8])+".json"), nil
}

// OpenHistory reads a history; a missing one is empty. A broken one gives an
// error and an empty history to go on with.
func OpenHistory(path string) (*History, error) {
	h := &History{path: path, Clean: map[string]int{}}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, nil
	case err == nil && len(b) > maxFile:
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	case err == nil:
		err = json.Unmarshal(b, h)
	}
	if err != nil || h.Clean == nil {
		h.Clean = map[string]int{}
	}
	if err != nil {
		return h, fmt.Errorf("%s: %w; delete it", path, err)
	}
	return h, nil
}

// Note counts a run and returns the entries that are fixed: clean in this run
// and in the runs before it, as many as after says.
func (h *History) Note(w *Watch, after int) (fixed []*Entry, err error) {
	clean, failed := w.Clean()
	for _, e := range failed {
		delete(h.Clean, e.identity())
	}
	for _, e := range clean {
		id := e.identity()
		h.Clean[id]++
		if h.Clean[id] >= after {
			fixed = append(fixed, e)
		}
	}
	b, err := json.Marshal(h)
	if err != nil {
		return fixed, err
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o755); err != nil {
		return fixed, err
	}
	return fixed, os.WriteFile(h.path, b, 0o644)
}

// identity tells an entry by its scope.
func (e *Entry) identity() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{e.Operator, string(e.Kind), e.DType, e.Layout, e.Mode, e.Candidate, e.Signature}))
	return hex.EncodeToString(sum[:8])
}
