package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plumb/backend"
	"plumb/conform"
	"plumb/internal/conform/baseline"
	"plumb/internal/judge/verdict"
)

// byRecording runs the mutants on the shipped conformance suite, whose cases are
// judged as conform run judges a device.
func (s *selftest) byRecording(ctx context.Context) error {
	base, err := conform.Open("")
	if err != nil {
		return err
	}
	kit, err := conform.NewKit(base, conform.Modes{})
	if err != nil {
		return err
	}
	m := &base.Manifest
	s.subjects.reference = fmt.Sprintf("recorded %s %s", m.Reference.Name, m.Reference.Version)
	s.cases.seed, s.proofs, s.judging.shrink.Runs = m.Seed, 0, 0
	cfg := baseline.RunConfig{
		Candidate: "native", Open: s.touched.open,
		Jobs:   1, // the mutants meet the cases in order, so that the same one finds a mutant every time
		Memory: 1 << 30,
		Select: func(e *baseline.Entry) bool { return s.matches(e.Name) },
	}
	kit.Apply(&cfg)
	cfg.Read = 0 // a result is judged more than once
	cfg.Judge = func(q *baseline.Question) *verdict.Verdict {
		s.plantedIn(ctx, kit, q)
		return kit.Judge(q)
	}
	cfg.OnRecord = s.onRecorded
	return base.Run(ctx, cfg)
}

// onRecorded notes what the table without a fault is found to be.
func (s *selftest) onRecorded(r *baseline.Record) {
	s.judged++
	if r.Test = testName(r); !r.Skipped {
		s.tellCase(&r.Record)
	}
	if r.Verdict.Word.IsFinding() {
		s.control = append(s.control, &r.Record)
	}
}

// plantedIn runs the mutants that are not yet found on a case that touches what
// they change, as far as there is a result to judge them by.
func (s *selftest) plantedIn(ctx context.Context, kit *conform.Kit, q *baseline.Question) {
	touched := s.touched.take(q.Job.Program)
	if q.Ref.Status != backend.OK {
		return
	}
	for _, m := range s.mutants {
		if m.found == nil && m.err == nil && touched[m.In] {
			m.err = errors.Join(s.tryRecorded(ctx, kit, m, q), ctx.Err())
		}
	}
}

// tryRecorded runs a mutant on a recorded case. What differs from the table
// without a fault in no bit need not be judged.
func (s *selftest) tryRecorded(ctx context.Context, kit *conform.Kit, m *mutantRun, q *baseline.Question) error {
	start := time.Now()
	defer func() { m.elapsed += time.Since(start) }()
	m.runs++
	job := backend.NewJob(q.Job.Program)
	job.State = q.Job.State
	out, err := m.backend.Run(ctx, job)
	if err != nil || sameOutcome(out, q.Cand) {
		return err
	}
	planted := *q
	planted.Cand = out
	if v := kit.Judge(&planted); v.Word.IsFinding() {
		m.found = &verdict.Record{Test: q.Entry.Name, Candidate: m.Name, Program: q.Job.Program, Verdict: v, Reference: q.Ref, Outcome: out}
	}
	return nil
}
