// Package scratch makes folders and files for as long as a process lives. What
// one leaves that was killed, the next one removes.
package scratch

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// prefix begins the names of folders.
const prefix = "plumb-scratch-"

// mu guards locks.
var mu sync.Mutex

// locks are the locks of the folders of this process, by path: while it is
// held, a folder is in use.
var locks = map[string]*os.File{}

// Dir makes a folder for a purpose, such as "worker". Remove removes it.
func Dir(purpose string) (string, error) {
	dir, err := os.MkdirTemp("", prefix+purpose+"-")
	if err != nil {
		return "", err
	}
	if lock := tryLock(dir); lock != nil {
		mu.Lock()
		locks[dir] = lock
		mu.Unlock()
	}
	return dir, nil
}

// Remove removes a folder of Dir; "" is none.
func Remove(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.RemoveAll(dir)
	mu.Lock()
	defer mu.Unlock()
	if lock := locks[dir]; lock != nil {
		lock.Close()
		delete(locks, dir)
	}
	return err
}

// Sweep removes the folders that no process uses.
func Sweep() {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			sweep(filepath.Join(os.TempDir(), e.Name()))
		}
	}
}

// sweep removes a folder that is not locked. One that has just been made and
// is not locked yet is empty: it is left.
func sweep(dir string) {
	lock := tryLock(dir)
	if lock == nil {
		return
	}
	defer lock.Close()
	if inside, err := os.ReadDir(dir); err == nil && len(inside) > 0 {
		_ = os.RemoveAll(dir)
	}
}

// Lock locks a folder that others may want to write to; taken is true where
// another process has it. Where folders cannot be locked there is no lock.
func Lock(dir string) (release func(), taken bool) {
	lock := tryLock(dir)
	if lock == nil {
		return func() {}, canLock
	}
	return func() { lock.Close() }, false
}

// File makes a file without a name where that can be, else one that Close does
// not remove: see Discard.
func File(dir, purpose string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "."+prefix+purpose+"-")
	if err == nil && canLock {
		err = os.Remove(f.Name())
	}
	return f, err
}

// Discard closes a file of File and removes it where it has a name.
func Discard(f *os.File) error {
	err := f.Close()
	if !canLock {
		_ = os.Remove(f.Name())
	}
	return err
}
