package onekernel

import (
	"os"
	"path/filepath"
)

// Bundle writes what reproduces the smallest failing call into a folder.
func (r *Report) Bundle(dir string, cfg *Config) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "program.py"), []byte(r.Smallest.Program), 0o644)
}
