package gotest

import (
	"context"
	"sync"

	"plumb/backend"
	"plumb/internal/campaign"
)

// workers are processes that are between two tests. They end with this one,
// whose end of their pipe closes.
var workers pool

type pool struct {
	mu   sync.Mutex
	idle map[string][]backend.Backend
}

// take returns an idle worker, or a new one.
func (p *pool) take(spec string, open campaign.Opener) (backend.Backend, error) {
	p.mu.Lock()
	if idle := p.idle[spec]; len(idle) > 0 {
		b := idle[len(idle)-1]
		p.idle[spec] = idle[:len(idle)-1]
		p.mu.Unlock()
		return p.lend(spec, b), nil
	}
	p.mu.Unlock()
	b, err := open()
	if err != nil {
		return nil, err
	}
	return p.lend(spec, b), nil
}

// lend wraps a worker so that Close gives it back.
func (p *pool) lend(spec string, b backend.Backend) backend.Backend {
	return keeping(b, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.idle == nil {
			p.idle = map[string][]backend.Backend{}
		}
		p.idle[spec] = append(p.idle[spec], b)
	})
}

// kept is a backend that Close leaves open.
type kept struct {
	backend.Backend
	closed func()
}

type keptBatcher struct {
	kept
	batcher backend.Batcher
}

func keeping(b backend.Backend, closed func()) backend.Backend {
	k := kept{b, closed}
	if batcher, ok := b.(backend.Batcher); ok {
		return &keptBatcher{k, batcher}
	}
	return &k
}

// Close tells that the backend is not used any more.
func (k *kept) Close() error {
	k.closed()
	return nil
}

// RunBatch runs the jobs in one exchange.
func (k *keptBatcher) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	return k.batcher.RunBatch(ctx, jobs)
}

// Shared returns how to open a backend that is open already: by any number of
// users, of whom one runs at a time.
func Shared(b backend.Backend) campaign.Opener {
	one := make(chan struct{}, 1)
	return func() (backend.Backend, error) { return &shared{b, one}, nil }
}

type shared struct {
	backend.Backend
	one chan struct{}
}

// Run runs the job when no other runs.
func (s *shared) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	s.one <- struct{}{}
	defer func() { <-s.one }()
	return s.Backend.Run(ctx, job)
}

// RunBatch runs the jobs, in one exchange where the backend has that.
func (s *shared) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	s.one <- struct{}{}
	defer func() { <-s.one }()
	return backend.RunBatch(ctx, s.Backend, jobs)
}

// In returns the backend in another mode, which runs when no other does.
func (s *shared) In(mode string) (backend.Backend, error) {
	modal, ok := s.Backend.(backend.Modal)
	if !ok {
		info := s.Info()
		return nil, &backend.ModeError{Backend: info.Name, Mode: mode, Modes: info.Modes}
	}
	b, err := modal.In(mode)
	if err != nil {
		return nil, err
	}
	return &shared{b, s.one}, nil
}

// Close leaves the backend open: it belongs to the test.
func (s *shared) Close() error { return nil }
