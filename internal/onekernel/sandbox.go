package onekernel

import (
	"cmp"
	"context"
	"os"
	"time"
)

// sandbox is what the kernel's process is kept in (plumb_sandbox.py).
type sandbox struct {
	folder string // where the kernel builds
	sealed bool   // since it was loaded
	builds string // what builds in calls, for which it keeps its compiler
	told   Sandbox
	marks  marks // that the kernel's process has
}

// Sandbox says what was taken of the kernel's process, and what could not be.
type Sandbox struct {
	Held    []string `json:"held"`
	Missing []string `json:"missing,omitempty"`
}

func (b *sandbox) make(c *Config) (err error) {
	if c.NoSandbox {
		b.told.Missing = []string{"all: --no-sandbox"}
		return nil
	}
	b.folder, err = os.MkdirTemp("", "kernel-")
	return err
}

func (b *sandbox) remove() {
	if b.folder != "" {
		os.RemoveAll(b.folder)
	}
}

// relax lets a kernel that was sealed have a compiler from its next start on; false
// where it has one.
func (b *sandbox) relax(builds string) bool {
	if !b.sealed || b.builds != "" || b.folder == "" {
		return false
	}
	b.builds = builds
	return true
}

// seal takes from the kernel's process what calls need not have, before the first
// one: its module, and a problem's model, have been made.
func (s *Session) seal(ctx context.Context) error {
	if s.sandbox.sealed {
		return nil
	}
	s.sandbox.sealed = true
	var told Sandbox
	if err := s.kernel.ask(ctx, map[string]any{"seal": map[string]any{"builds": s.sandbox.builds}}, &told); err != nil {
		return err
	}
	if s.sandbox.folder != "" {
		s.sandbox.told = told
	}
	return nil
}

// buildTimeout bounds the import of a kernel, which may compile.
const buildTimeout = 5 * time.Minute

// load has the kernel's process import it.
func (s *Session) load(ctx context.Context, told *described) error {
	s.kernel.Wait(buildTimeout)
	defer s.kernel.Wait(cmp.Or(s.cfg.Timeout, time.Minute))
	return s.kernel.ask(ctx, map[string]any{"describe": map[string]any{"marks": s.sandbox.marks}}, told)
}
