package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign"
	"plumb/internal/find/bundle"
	"plumb/internal/mutants"
)

// prove writes the bundle of a mutant's finding and runs it in fresh processes,
// which have the same mutant planted.
func (s *selftest) prove(ctx context.Context, m *mutantRun) error {
	if s.proofs == 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "plumb-selftest-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := s.mutantFinding(m)
	err = s.withSolo(m, func(solo *campaign.Solo, _ *campaign.Config) error {
		f.Reference.Info, f.Candidate.Info = solo.Infos(m.Name, "")
		return nil
	})
	if err != nil {
		return err
	}
	b, err := bundle.Write(filepath.Join(dir, "bundle"), f)
	if err != nil {
		return err
	}
	proof, err := b.Prove(ctx, bundle.ProveOptions{Runs: s.proofs, Command: func(_ *bundle.Bundle, dir string) []string {
		return []string{self, "repro", dir, "--as", "plumb", "--run", "--mutant", m.Name}
	}})
	m.proof = &proof
	return err
}

// mutantFinding is what the bundle of a mutant's finding is made of.
func (s *selftest) mutantFinding(m *mutantRun) *bundle.Finding {
	r := m.found
	f := &bundle.Finding{
		Reference: bundle.Side{Spec: s.subjects.reference}, Candidate: bundle.Side{Spec: "native"},
		Seed: s.cases.seed, Test: r.Test, Index: r.Index, Timeout: s.judging.timeout,
	}
	if m.small != nil {
		f.Original, f.Choices = r.Program.String(), m.small.Choices
		f.Shrink = bundle.Shrink{Runs: m.small.Runs, Seconds: m.small.Elapsed.Seconds()}
		r = m.small.Record
	}
	f.Program, f.Job, f.Verdict, f.Expected, f.Got = r.Program, campaign.Job(r.Program, r.Reference), r.Verdict, r.Reference, r.Outcome
	return f
}

// mutant returns Plumb's own operators with a fault planted, by its name.
func mutant(name string) (backend.Backend, error) {
	for _, m := range mutants.All() {
		if m.Name == name {
			table, modules, err := m.Tables()
			if err != nil {
				return nil, err
			}
			return native.New(table, modules), nil
		}
	}
	return nil, fmt.Errorf("no mutant is named %q; see: plumb selftest --json", name)
}
