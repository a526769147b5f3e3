package campaign

import (
	"context"

	"plumb/backend"
)

// In the mode of backend.Together, what several lanes ask for while all instances are busy
// is one exchange of up to gathered programs, however many jobs differ in their
// elements alone, and there are so many lanes for each that would keep the instances
// busy. PyTorch's inductor compiles 32 cases as one function in the time of two
// alone; fewer stay well within the time that a case has.
const (
	gathered  = 16
	gatherers = 16
)

func (d *described) together() bool { return d.info.Features[backend.Together] == d.name }

// request is what a lane waits for.
type request struct {
	mode     int
	jobs     []*backend.Job
	forms    []string // of their programs
	outcomes []*backend.Outcome
	err      error
	done     chan struct{}
}

// gather runs jobs with those of the other lanes that wait.
func (p *pool) gather(ctx context.Context, mode int, jobs []*backend.Job) ([]*backend.Outcome, error) {
	r := &request{mode: mode, jobs: jobs, done: make(chan struct{})}
	for _, j := range jobs {
		r.forms = append(r.forms, j.Program.Form())
	}
	p.mu.Lock()
	p.waiting = append(p.waiting, r)
	p.mu.Unlock()
	for {
		s, err := p.take(ctx, r.done)
		switch {
		case err != nil:
			return nil, err
		case s == nil:
			return r.outcomes, r.err
		}
		requests := p.next()
		runTogether(ctx, s, requests)
		p.give(s)
		if len(requests) == 0 { // another lane runs it
			<-r.done
		}
	}
}

// next takes the first of the requests that wait, and those after it in its mode
// whose programs fit in its exchange.
func (p *pool) next() []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, forms := 0, map[string]bool{}
	for _, r := range p.waiting {
		for _, form := range r.forms {
			forms[form] = true
		}
		if n > 0 && (len(forms) > gathered || r.mode != p.waiting[0].mode) {
			break
		}
		n++
	}
	var out []*request
	out, p.waiting = p.waiting[:n:n], p.waiting[n:]
	return out
}

// runTogether answers requests of one mode.
func runTogether(ctx context.Context, s subject, requests []*request) {
	if len(requests) == 0 {
		return
	}
	var jobs []*backend.Job
	for _, r := range requests {
		jobs = append(jobs, r.jobs...)
	}
	outcomes, err := backend.RunBatch(ctx, s[requests[0].mode].Backend, jobs)
	for _, r := range requests {
		if r.err = err; err == nil {
			r.outcomes, outcomes = outcomes[:len(r.jobs):len(r.jobs)], outcomes[len(r.jobs):]
		}
		close(r.done)
	}
}
