package onekernel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"plumb/backend"
)

// unseen is what neither the interpreter nor the compiler's output shows.
const unseen = "Triton ran in its interpreter: races in shared memory and faults of the compiler are not seen"

// compileTimeout bounds what a compiler takes: it judges nothing but its own errors.
const compileTimeout = 15 * time.Second

// compiling is how much of the time for calls is left to the compiler, for which Triton is
// imported once more.
const compiling = 3 * time.Second

// compile has what was launched compiled to PTX, in a process whose Triton is no
// interpreter; it needs no GPU. An error is a finding, what is approximate a note.
func (s *Session) compile(ctx context.Context) error {
	if !s.launches() || s.blamed() {
		return nil
	}
	s.notes = append(s.notes, unseen)
	var told struct {
		Launches json.RawMessage `json:"launches"`
	}
	if err := s.kernel.ask(ctx, map[string]any{"launched": nil}, &told); err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "plumb-triton-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	spec := s.cfg.Kernel.spec("compiler", s.cfg.target())
	spec["params"], spec["tensors"], spec["required"] = s.kernel.spec["params"], s.kernel.spec["tensors"], s.kernel.spec["required"]
	h, err := openHost(ctx, s.cfg, spec, "", "TRITON_CACHE_DIR="+cache)
	if err != nil {
		return err
	}
	defer h.Close()
	h.Wait(compileTimeout)
	var done struct {
		Errors, Notes []string
		Compiled      int
		Error         string
	}
	if err := h.ask(ctx, map[string]any{"compile": told}, &done); err != nil {
		s.notes = append(s.notes, "not compiled: "+firstLine(err.Error()))
		return nil
	}
	for _, text := range done.Errors {
		s.add(finding{Kind: "compile", Text: text})
	}
	if done.Compiled > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d launched signatures compiled for sm_80", done.Compiled))
	}
	s.notes = append(s.notes, done.Notes...)
	return nil
}

// forget leaves out of that what a kernel launches in a call that is none, or in another dtype
// than it promises: a block of no elements, of which there is no mean, compiles nowhere.
func (s *Session) forget(ctx context.Context, seen observed) error {
	if seen.Launches == 0 {
		return nil
	}
	var none struct{}
	return s.kernel.ask(ctx, map[string]any{"forget": nil}, &none)
}

// launches reports whether any answered case launched a kernel in Triton.
func (s *Session) launches() bool {
	for _, r := range s.outcomes {
		if r.kernel.Status == backend.OK && r.seen.Launches > 0 {
			return true
		}
	}
	return false
}

// blamed reports whether there is a finding that is no limit.
func (s *Session) blamed() bool {
	for _, f := range s.findings {
		if w := f.word(); w != Limited && w != Delegation {
			return true
		}
	}
	return false
}
