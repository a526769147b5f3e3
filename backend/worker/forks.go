package worker

import (
	"cmp"
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// shared are the processes of which workers are forks: one for each Python and
// environment in which PyTorch is imported. They end with this process.
var shared = sharedForkers{of: map[string]*sharedForker{}}

type sharedForkers struct {
	mu sync.Mutex
	of map[string]*sharedForker
}

// sharedForker has no forker until it is opened, and none where that has failed.
type sharedForker struct {
	once   sync.Once
	forker atomic.Pointer[forker]
}

// mostForkers bounds them: each keeps a PyTorch in memory.
const mostForkers = 4

// open returns the forker of a key, or nil where workers are to be processes of their own.
func (s *sharedForkers) open(ctx context.Context, key string, open func(context.Context) (*forker, error)) *forker {
	one := s.one(key)
	if one == nil {
		return nil
	}
	one.once.Do(func() {
		f, err := open(ctx)
		one.forker.Store(f)
		if err != nil && ctx.Err() != nil {
			s.forget(func(o *sharedForker) bool { return o == one })
		}
	})
	return one.forker.Load()
}

func (s *sharedForkers) one(key string) *sharedForker {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[key]
	if one == nil && len(s.of) < mostForkers {
		one = &sharedForker{}
		s.of[key] = one
	}
	return one
}

// forget has the next worker open another.
func (s *sharedForkers) forget(gone func(*sharedForker) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.of, func(_ string, one *sharedForker) bool { return gone(one) })
}

// End ends the processes of which workers are forks, so that what they have used counts
// as that of this process's children. Workers that are still there end with them.
func End() {
	shared.end()
	leaveGroups()
}

func (s *sharedForkers) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.of {
		if f := one.forker.Load(); f != nil {
			f.finish()
		}
	}
	clear(s.of)
}

// forker is of what the next process is a fork; nil where it is one of its own.
func (w *Worker) forker(ctx context.Context) *forker {
	if w.alone || !w.config.forks() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.config.StartTimeout)
	defer cancel()
	return shared.open(ctx, w.config.Python+"\x00"+strings.Join(w.imported(), "\x00"), w.openForker)
}

// forks reports whether a process that has imported PyTorch is all that a worker starts
// from: a module of the user's, a device and a sandbox want one of its own.
func (c *Config) forks() bool {
	return runtime.GOOS == "linux" && len(c.Command) == 0 && cmp.Or(c.Framework, Torch) == Torch && c.Device == "cpu" && len(c.Imports) == 0 && !c.Sandbox
}

// forkSettings is the environment of what a worker is a fork of.
func (w *Worker) forkSettings() []string {
	hostsKernel := func(entry string) bool { return strings.HasPrefix(entry, "PLUMB_WORKER_KERNEL=") }
	if slices.ContainsFunc(w.config.Env, hostsKernel) {
		return append(w.settings(), "PLUMB_FORK_KERNELS=1")
	}
	return w.settings()
}

// imported is the environment as far as what the import of PyTorch makes may depend on it.
func (w *Worker) imported() []string {
	values := map[string]string{}
	for _, entry := range append(os.Environ(), w.forkSettings()...) {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	if values["PYTHONPATH"] != "" { // it may have relative folders
		values["PWD"], _ = os.Getwd()
	} else {
		delete(values, "PWD")
	}
	var entries []string
	for name, value := range values {
		if !readWhenUsed(name) {
			entries = append(entries, name+"="+value)
		}
	}
	slices.Sort(entries)
	return entries
}

// readWhenUsed reports whether a variable matters after the import alone: folders to write
// to, and what Plumb tells a worker.
func readWhenUsed(name string) bool {
	return strings.HasPrefix(name, "PLUMB_") && !strings.HasPrefix(name, "PLUMB_FORK_") || slices.Contains(buildingFolders, name) || slices.Contains([]string{"TMPDIR", "OLDPWD", "_", "SHLVL"}, name)
}
