package campaign

import (
	"context"
	"errors"
	"slices"
	"sync"

	"plumb/backend"
)

// pool holds instances of a backend for the lanes, which take one for each
// exchange: another is started while all are busy, up to a number.
type pool struct {
	open Opener
	most int
	free chan subject

	mu      sync.Mutex
	started int
	all     []subject
	about   []described // each mode
	waiting []*request
}

func newPool(open Opener, most int) *pool {
	return &pool{open: open, most: most, free: make(chan subject, most)}
}

// take returns an instance that nobody uses, to be given back; nil where none is
// needed any more.
func (p *pool) take(ctx context.Context, done <-chan struct{}) (subject, error) {
	select {
	case <-done:
		return nil, nil
	default:
	}
	select {
	case s := <-p.free:
		return s, nil
	default:
	}
	if p.another() {
		return p.start()
	}
	select {
	case s := <-p.free:
		return s, nil
	case <-done:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pool) give(s subject) { p.free <- s }

// another reports whether one more may be started, and counts it.
func (p *pool) another() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started == p.most {
		return false
	}
	p.started++
	return true
}

func (p *pool) start() (subject, error) {
	b, err := p.open()
	if err != nil {
		return nil, err
	}
	s, err := subjectOf(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all = append(p.all, s); p.about == nil {
		for _, m := range s {
			p.about = append(p.about, described{m.name, m.Info()})
		}
	}
	return s, err
}

// described is a mode, and the backend in it.
type described struct {
	name string
	info backend.Info
}

// modes describes the backend in its own mode, and in those for graphs.
func (p *pool) modes(graph bool) []described {
	if graph {
		return p.about
	}
	return p.about[:1]
}

// run runs jobs in one of the modes, the first of which is the backend's own.
func (p *pool) run(ctx context.Context, mode int, jobs []*backend.Job) ([]*backend.Outcome, error) {
	if p.about[mode].together() {
		return p.gather(ctx, mode, jobs)
	}
	return p.exchange(ctx, mode, jobs)
}

// exchange runs jobs in one exchange with an instance.
func (p *pool) exchange(ctx context.Context, mode int, jobs []*backend.Job) ([]*backend.Outcome, error) {
	s, err := p.take(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer p.give(s)
	return backend.RunBatch(ctx, s[mode].Backend, jobs)
}

// one runs one job by itself.
func (p *pool) one(ctx context.Context, mode int, job *backend.Job) (*backend.Outcome, error) {
	outcomes, err := p.exchange(ctx, mode, []*backend.Job{job})
	if err != nil {
		return nil, err
	}
	return outcomes[0], nil
}

func (p *pool) close() error {
	var errs []error
	for _, s := range p.all {
		errs = append(errs, s[0].Close())
	}
	return errors.Join(errs...)
}

// together reports whether lanes share exchanges.
func (p *pool) together() bool {
	return slices.ContainsFunc(p.about, func(d described) bool { return d.together() })
}

// pools are the reference's and the candidates' instances.
type pools struct {
	ref   *pool
	cands []*pool
}

// openPools starts one instance of each backend, all at the same time.
func openPools(cfg *Config) (*pools, error) {
	p := &pools{ref: newPool(cfg.Reference, cfg.Jobs)}
	all := []*pool{p.ref}
	for _, c := range cfg.Candidates {
		p.cands = append(p.cands, newPool(c.Open, cfg.Jobs))
	}
	all = append(all, p.cands...)
	errs := make([]error, len(all))
	var starting sync.WaitGroup
	for i, one := range all {
		starting.Go(func() {
			s, err := one.take(context.Background(), nil)
			if errs[i] = err; err == nil {
				one.give(s)
			}
		})
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if cfg.OnOpen != nil {
		var candidates []backend.Info
		for _, c := range p.cands {
			candidates = append(candidates, c.about[0].info)
		}
		cfg.OnOpen(p.ref.about[0].info, candidates)
	}
	return p, nil
}

// lanes is how many lanes there are for so many instances of each.
func (p *pools) lanes(instances int) int {
	if slices.ContainsFunc(p.cands, (*pool).together) {
		return gatherers * instances
	}
	return instances
}

func (p *pools) close() error {
	errs := []error{p.ref.close()}
	for _, c := range p.cands {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
