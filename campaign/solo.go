package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/program"
	"plumb/verdict"
)

// Solo judges programs one by one, outside of a run, with backends of its own.
// It is for one goroutine.
type Solo struct{ lane lane }

// Open starts the reference and the candidates of a configuration.
func Open(cfg *Config) (*Solo, error) {
	s := &Solo{lane{cfg: cfg}}
	if err := s.lane.open(); err != nil {
		return nil, errors.Join(err, s.lane.close())
	}
	return s, nil
}

// Judge runs a program on the reference and on the named candidate. The record
// names no test.
func (s *Solo) Judge(ctx context.Context, candidate string, p *program.Program) (*verdict.Record, error) {
	at := slices.IndexFunc(s.lane.cfg.Candidates, func(c Candidate) bool { return c.Name == candidate })
	if at < 0 {
		return nil, fmt.Errorf("there is no candidate %q", candidate)
	}
	job := newJob(p)
	ref, err := s.one(ctx, s.lane.ref, job)
	if err != nil {
		return nil, err
	}
	job.State = ref.Initial
	got, err := s.one(ctx, s.lane.cands[at], job)
	if err != nil {
		return nil, err
	}
	v, err := s.lane.verdict(ctx, job, ref, got)
	if err != nil {
		return nil, err
	}
	return &verdict.Record{Candidate: candidate, Program: p, Verdict: v, Reference: ref, Outcome: got}, nil
}

// Infos tell what the reference and the named candidate are.
func (s *Solo) Infos(candidate string) (reference, judged backend.Info) {
	at := slices.IndexFunc(s.lane.cfg.Candidates, func(c Candidate) bool { return c.Name == candidate })
	return s.lane.ref.Info(), s.lane.cands[at].Info()
}

// Again runs a program on the reference and then on another instance of it, nil
// for the same one, and judges the second outcome against the first as a
// candidate's: whether the reference stands still.
func (s *Solo) Again(ctx context.Context, p *program.Program, other backend.Backend) (*verdict.Verdict, error) {
	job := newJob(p)
	first, err := s.one(ctx, s.lane.ref, job)
	if err != nil {
		return nil, err
	}
	if other == nil {
		other = s.lane.ref
	}
	job.State = first.Initial
	second, err := s.one(ctx, other, job)
	if err != nil {
		return nil, err
	}
	return s.lane.verdict(ctx, job, first, second)
}

func (s *Solo) one(ctx context.Context, b backend.Backend, job *backend.Job) (*backend.Outcome, error) {
	outcomes, err := runBatch(ctx, b, []*backend.Job{job})
	if err != nil {
		return nil, err
	}
	return outcomes[0], nil
}

// Observe runs the program so far on the reference.
func (s *Solo) Observe(p *program.Program, ref program.Ref) (backend.Value, error) {
	return s.lane.Observe(p, ref)
}

// Close ends the backends.
func (s *Solo) Close() error { return s.lane.close() }

// Try runs programs on one more instance of a backend.
func Try(ctx context.Context, open Opener, programs []*program.Program) (outcomes []*backend.Outcome, err error) {
	b, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	jobs := make([]*backend.Job, len(programs))
	for i, p := range programs {
		jobs[i] = newJob(p)
	}
	return runBatch(ctx, b, jobs)
}
