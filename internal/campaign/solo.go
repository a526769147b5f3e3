package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// Solo judges programs one by one, outside of a run, with backends of its own.
// It is for one goroutine.
type Solo struct {
	// OnShrink, which may be nil, is told how far Minimise is: at which of how many
	// failures, and the smallest case so far.
	OnShrink func(at, of int, r *shrink.Result)

	lane *lane
}

// Open starts the reference and the candidates of a configuration.
func Open(cfg *Config) (*Solo, error) {
	solo := *cfg
	solo.Jobs = 1
	p, err := openPools(&solo)
	if err != nil {
		return nil, err
	}
	return &Solo{lane: &lane{cfg: &solo, pools: p}}, nil
}

// Judge runs a program on the reference and on the named candidate, in its own
// mode. The record names no test.
func (s *Solo) Judge(ctx context.Context, candidate string, p *program.Program) (*verdict.Record, error) {
	records, err := s.judge(ctx, candidate, p, false)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

// Repeat judges a program as the case of a record was, in the same modes. The
// record that it returns is the one that fails as that one does, where there
// is one.
func (s *Solo) Repeat(ctx context.Context, of *verdict.Record, p *program.Program) (*verdict.Record, error) {
	records, err := s.judge(ctx, of.Candidate, p, s.graph(of))
	if err != nil {
		return nil, err
	}
	want := shrink.SignatureOf(of)
	for _, r := range records {
		if shrink.SignatureOf(r) == want {
			return r, nil
		}
	}
	return records[0], nil
}

// graph reports whether a record's case was judged in graph modes too.
func (s *Solo) graph(of *verdict.Record) bool {
	at := slices.IndexFunc(s.lane.cfg.Tests, func(t Test) bool { return t.Name == of.Test })
	return at >= 0 && s.lane.cfg.Tests[at].Graph
}

func (s *Solo) judge(ctx context.Context, candidate string, p *program.Program, graph bool) ([]*verdict.Record, error) {
	at, err := s.at(candidate)
	if err != nil {
		return nil, err
	}
	job := backend.NewJob(p)
	ref, err := s.lane.ref.one(ctx, 0, job)
	if err != nil {
		return nil, err
	}
	job.State = ref.Initial
	trials, err := s.lane.try(ctx, s.lane.cands[at], &Test{Graph: graph}, []*backend.Job{job}, []*backend.Outcome{ref})
	if err != nil {
		return nil, err
	}
	return merge(trials[0], verdict.Record{Candidate: candidate, Program: p, Reference: ref}), nil
}

func (s *Solo) at(candidate string) (int, error) {
	at := slices.IndexFunc(s.lane.cfg.Candidates, func(c Candidate) bool { return c.Name == candidate })
	if at < 0 {
		return 0, fmt.Errorf("there is no candidate %q", candidate)
	}
	return at, nil
}

// Infos tell what the reference and the named candidate are, this one in a
// mode; "" is its own.
func (s *Solo) Infos(candidate, mode string) (reference, judged backend.Info) {
	reference = s.lane.ref.modes(false)[0].info
	at, err := s.at(candidate)
	if err != nil {
		return reference, backend.Info{}
	}
	modes := s.lane.cands[at].modes(true)
	k := slices.IndexFunc(modes, func(m described) bool { return m.name == mode })
	return reference, modes[max(k, 0)].info
}

// Again runs a program on the reference and then on another instance of it, nil
// for the same one, and judges the second outcome against the first as a
// candidate's: whether the reference stands still.
func (s *Solo) Again(ctx context.Context, p *program.Program, other backend.Backend) (*verdict.Verdict, error) {
	job := backend.NewJob(p)
	first, err := s.lane.ref.one(ctx, 0, job)
	if err != nil {
		return nil, err
	}
	job.State = first.Initial
	var second *backend.Outcome
	if other == nil {
		second, err = s.lane.ref.one(ctx, 0, job)
	} else {
		second, err = other.Run(ctx, job)
	}
	if err != nil {
		return nil, err
	}
	return s.lane.cfg.Judge.Judge(ctx, job, first, second, s.lane.ask)
}

// poll has all candidates vote on a finding.
func (s *Solo) poll(ctx context.Context, r *verdict.Record) error {
	var voters []verdict.Voter
	for i, cand := range s.lane.cands {
		voter := verdict.Voter{Name: s.lane.cfg.Candidates[i].Name}
		if voter.Name != r.Candidate {
			var err error
			if voter.Outcome, err = cand.one(ctx, 0, Job(r.Program, r.Reference)); err != nil {
				return err
			}
		}
		voters = append(voters, voter)
	}
	s.lane.cfg.poll(r, voters)
	return nil
}

// Observe runs the program so far on the reference.
func (s *Solo) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	return s.lane.Observe(p, refs...)
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
		jobs[i] = backend.NewJob(p)
	}
	return backend.RunBatch(ctx, b, jobs)
}
