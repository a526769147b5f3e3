package worker

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// compiledCache is where a framework keeps, for later runs, what it compiles in a
// mode.
type compiledCache struct {
	framework, mode string
	variable        string // of the environment, which names the folder
	folder          string // of the user's cache
	once            *sync.Once
}

var compiledCaches = []compiledCache{
	{Torch, "compile", "TORCHINDUCTOR_CACHE_DIR", "inductor", new(sync.Once)},
	{"jax", "jit", "JAX_COMPILATION_CACHE_DIR", "jax", new(sync.Once)},
}

// CompiledCaches are the variables of the environment which name the folders where
// frameworks keep what they compile.
func CompiledCaches() []string {
	var names []string
	for _, c := range compiledCaches {
		names = append(names, c.variable)
	}
	return names
}

// maxCompiled bounds what each cache holds from one run to the next, in bytes.
const maxCompiled = 1 << 30

// keeping has what a mode compiles kept for later runs, unless the user says where.
func (w *Worker) keeping() []string {
	c, dir := w.kept()
	if c == nil {
		return nil
	}
	c.once.Do(func() { prune(dir, maxCompiled) })
	return []string{c.variable + "=" + dir}
}

// kept is the cache of the mode, and its folder; nil where the user has another one.
func (w *Worker) kept() (*compiledCache, string) {
	cache, err := os.UserCacheDir()
	at := slices.IndexFunc(compiledCaches, func(c compiledCache) bool {
		return c.framework == cmp.Or(w.config.Framework, Torch) && c.mode == w.config.Mode
	})
	if err != nil || at < 0 || len(w.config.Command) > 0 || os.Getenv(compiledCaches[at].variable) != "" {
		return nil, ""
	}
	c := &compiledCaches[at]
	return c, filepath.Join(cache, "plumb", c.folder)
}

// forget removes what was compiled since a time: a process that was killed then may
// have left a file half written, which every later run would find.
func (w *Worker) forget(since time.Time) {
	c, dir := w.kept()
	if c == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil && !info.ModTime().Before(since) {
			os.Remove(path)
		}
		return nil
	})
}

// prune removes the oldest files below a folder until those that are left take
// half of a limit, where they take more than the limit. It is of no account what it
// cannot remove.
func prune(dir string, limit int64) {
	type file struct {
		path string
		size int64
		time time.Time
	}
	var files []file
	var total int64
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			files = append(files, file{path, info.Size(), info.ModTime()})
			total += info.Size()
		}
		return nil
	})
	if total <= limit {
		return
	}
	slices.SortFunc(files, func(a, b file) int { return a.time.Compare(b.time) })
	for _, f := range files {
		if total <= limit/2 {
			return
		}
		if os.Remove(f.path) == nil {
			total -= f.size
		}
	}
}
