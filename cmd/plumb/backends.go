package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/recorded"
	"plumb/backend/worker"
	"plumb/baselines"
	"plumb/campaign"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
)

// backends opens backends by the names that --reference and --candidate take.
type backends struct {
	python  string
	timeout time.Duration

	mu      sync.Mutex
	found   map[string]string // resolved Python by the name asked for
	version map[string]string // of its torch
	is      map[string]string // name and version by backend, such as "torch 1.13.1"
	spent   time.Duration     // CPU time of closed workers after their start
}

const backendHelp = `"torch" (found through --python, $PLUMB_PYTHON, python3, /usr/bin/python3), "torch:PYTHON", "native", or "recorded:FILE"`

// opener returns how to start instances of a backend, after checking that it
// can be started.
func (b *backends) opener(ctx context.Context, spec string) (campaign.Opener, error) {
	kind, arg, _ := strings.Cut(spec, ":")
	if b.is == nil {
		b.found, b.version, b.is = map[string]string{}, map[string]string{}, map[string]string{}
	}
	switch kind {
	case "native":
		if arg != "" && arg != "eager" {
			return nil, usage(fmt.Errorf("native has no mode %q; it has eager", arg))
		}
		return func() (backend.Backend, error) { return native.New(ops.Table(), nn.Modules()), nil }, nil
	case "torch":
		if arg == "" {
			arg = b.python
		}
		path, version, err := b.findPython(arg)
		if err != nil {
			return nil, err
		}
		b.is[spec] = "torch " + version
		return func() (backend.Backend, error) { return b.openWorker(ctx, path) }, nil
	case "recorded":
		base, err := readBaseline(arg)
		if err != nil {
			return nil, usage(err)
		}
		b.is[spec] = base.Reference().Name + " " + base.Reference().Version
		return func() (backend.Backend, error) { return base, nil }, nil
	}
	return nil, usage(fmt.Errorf("unknown backend %q: want %s", spec, backendHelp))
}

func (b *backends) findPython(asked string) (path, version string, err error) {
	if path, ok := b.found[asked]; ok {
		return path, b.version[asked], nil
	}
	if path, version, err = worker.FindPython(asked); err == nil {
		b.found[asked], b.version[asked] = path, version
	}
	return path, version, err
}

// meteredWorker adds its CPU time to the total when it is closed.
type meteredWorker struct {
	*worker.Worker
	owner *backends
	start time.Duration
}

func (b *backends) openWorker(ctx context.Context, python string) (backend.Backend, error) {
	return b.openThreads(ctx, python, 1)
}

func (b *backends) openThreads(ctx context.Context, python string, threads int) (backend.Backend, error) {
	w, err := worker.Open(ctx, worker.Config{Python: python, CaseTimeout: b.timeout, Threads: threads})
	if err != nil {
		return nil, err
	}
	return &meteredWorker{w, b, w.CPUTime()}, nil
}

// Close closes the worker.
func (m *meteredWorker) Close() error {
	m.owner.mu.Lock()
	m.owner.spent += m.CPUTime() - m.start
	m.owner.mu.Unlock()
	return m.Worker.Close()
}

// controlThreads is the number of threads of the reference's second instance.
const controlThreads = 4

// threaded starts a live reference with several threads; nil for others.
func (b *backends) threaded(ctx context.Context, spec string) (backend.Backend, error) {
	kind, asked, _ := strings.Cut(spec, ":")
	if kind != "torch" {
		return nil, nil
	}
	if asked == "" {
		asked = b.python
	}
	path, _, err := b.findPython(asked)
	if err != nil {
		return nil, err
	}
	return b.openThreads(ctx, path, controlThreads)
}

// readBaseline reads a baseline file, or the embedded one for "".
func readBaseline(path string) (*recorded.Baseline, error) {
	if path == "" {
		return recorded.Read(baselines.Default())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	base, err := recorded.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return base, nil
}

// signatures tells a target's parameters: the table's, the modules', then the
// reference's own.
type signatures struct {
	open campaign.Opener // nil when the reference cannot be asked

	mu     sync.Mutex
	source backend.Signatures
	err    error
	known  map[string][]*op.Sig
}

// Signatures returns the overloads of a public name; nil when nobody knows it.
func (s *signatures) Signatures(name string) ([]*op.Sig, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sigs, ok := s.known[name]; ok {
		return sigs, nil
	}
	sigs := ours(name)
	if sigs == nil {
		var err error
		if sigs, err = s.ask(name); err != nil {
			return nil, err
		}
	}
	if s.known == nil {
		s.known = map[string][]*op.Sig{}
	}
	s.known[name] = sigs
	return sigs, nil
}

// ours returns the overloads that the table or the modules have.
func ours(name string) []*op.Sig {
	var sigs []*op.Sig
	for _, d := range ops.Table().Lookup(name) {
		sigs = append(sigs, d.Sigs()...)
	}
	if d := nn.Modules().Lookup(name); sigs == nil && d != nil {
		return d.Sigs()
	}
	return sigs
}

// ask returns the reference's overloads; it remembers its answers itself.
func (s *signatures) ask(name string) ([]*op.Sig, error) {
	if s.open == nil || s.err != nil {
		return nil, s.err
	}
	if s.source == nil {
		b, err := s.open()
		if err != nil {
			s.err = err
			return nil, err
		}
		source, ok := b.(backend.Signatures)
		if !ok {
			s.open = nil
			return nil, b.Close()
		}
		s.source = source
	}
	return s.source.Signatures(name)
}

// Reference returns what tells the reference's own signatures only; nil when
// it cannot be asked.
func (s *signatures) Reference() backend.Signatures {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return nil
	}
	return referenceSignatures{s}
}

type referenceSignatures struct{ *signatures }

// Signatures returns the reference's overloads of a public name.
func (r referenceSignatures) Signatures(name string) ([]*op.Sig, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ask(name)
}

// Close ends the reference that was opened for questions.
func (s *signatures) Close() {
	if b, ok := s.source.(backend.Backend); ok {
		_ = b.Close()
	}
}

// tolerances returns the numerics of the operators that answer to a target.
func tolerances(target string) []op.Tol {
	defs := ops.Table().Lookup(target)
	tols := make([]op.Tol, len(defs))
	for i, d := range defs {
		tols[i] = d.Tol
	}
	return tols
}
