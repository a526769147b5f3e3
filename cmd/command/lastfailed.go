package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// lastFailed are the tests that failed when they were last run in a folder.
type lastFailed struct {
	Version int      `json:"version"`
	Seed    uint64   `json:"seed"`   // of the last run
	Number  int      `json:"number"` // its -n; 0 for the tests' own
	Shapes  shapes   `json:"shapes,omitempty"`
	Failed  []string `json:"failed"`
}

const lastFailedVersion = 1

// maxLastFailed bounds the file, in bytes.
const maxLastFailed = 8 << 20

// lastFailedPath is a file of the user's cache, one for each working directory.
func lastFailedPath() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(cache, "plumb", "lastfailed", hex.EncodeToString(sum[:8])+".json"), nil
}

// readLastFailed returns an empty list where there is no file.
func readLastFailed() (l lastFailed, err error) {
	path, err := lastFailedPath()
	if err != nil {
		return l, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLastFailed+1))
	switch {
	case err != nil:
	case len(text) > maxLastFailed:
		err = fmt.Errorf("it is larger than %d bytes", maxLastFailed)
	default:
		if err = json.Unmarshal(text, &l); err == nil && l.Version != lastFailedVersion {
			err = fmt.Errorf("it has version %d, not %d", l.Version, lastFailedVersion)
		}
	}
	if err != nil {
		return lastFailed{}, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// write replaces the file.
func (l lastFailed) write() error {
	path, err := lastFailedPath()
	if err != nil {
		return err
	}
	l.Version = lastFailedVersion
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".plumb-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
