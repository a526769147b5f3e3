package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"plumb/backend"
	"plumb/backend/named"
	"plumb/campaign"
	"plumb/choice"
	"plumb/finding"
	"plumb/program"
	"plumb/repro"
	"plumb/shrink"
	"plumb/verdict"
)

// maxMinimised bounds the groups of failing cases that are made smaller.
const maxMinimised = 50

// minimise makes the failing cases smaller, joins those that fail alike, and
// reports them.
func (r *runner) minimise(ctx context.Context, cfg *campaign.Config) error {
	groups := r.collector.Groups()
	if len(groups) == 0 || r.shrink.Runs == 0 {
		return nil
	}
	if len(groups) > maxMinimised {
		fmt.Fprintf(r.err, "plumb: %d kinds of failure; the first %d are minimised\n", len(groups), maxMinimised)
		groups = groups[:maxMinimised]
	}
	solo, err := campaign.Open(cfg)
	if err != nil {
		return err
	}
	defer solo.Close()
	var found []*finding.Finding
	for _, g := range groups {
		result, err := shrink.Shrink(ctx, g.First, subject(solo, cfg, g.First), r.shrink, nil)
		if err != nil {
			return err
		}
		found = append(found, &finding.Finding{ID: result.Record.Program.ID(), Groups: []*finding.Group{g}, Result: result})
	}
	found = finding.Cluster(found)
	if err := r.controls(ctx, solo, found); err != nil {
		return err
	}
	for _, f := range found {
		r.bundle(ctx, solo, f)
	}
	r.sink.Findings(found)
	return nil
}

// bundle writes a finding's bundle and runs it in fresh processes. What keeps
// it from being written is said, and the finding is reported without.
func (r *runner) bundle(ctx context.Context, solo *campaign.Solo, f *finding.Finding) {
	dir, err := findingsDir(r.findings)
	if r.findings == "none" {
		return
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	var b *repro.Bundle
	if err == nil {
		b, err = repro.Write(filepath.Join(dir, f.ID), r.finding(solo, f))
	}
	if err != nil {
		fmt.Fprintf(r.err, "plumb: the bundle of %s: %v\n", f.ID, err)
		return
	}
	f.Bundle = b.Dir
	proof, err := b.Prove(ctx, repro.ProveOptions{})
	switch {
	case err != nil:
		f.Proof = "unproved: " + err.Error()
	case proof.Reason != "":
		f.Proof = proof.String() + ": " + proof.Reason
	default:
		f.Proof = proof.String()
	}
}

// finding is what a bundle is made of.
func (r *runner) finding(solo *campaign.Solo, f *finding.Finding) *repro.Finding {
	minimal, first := f.Result.Record, f.Groups[0].First
	reference, candidate := solo.Infos(minimal.Candidate)
	return &repro.Finding{
		Program: minimal.Program, Job: campaign.Job(minimal.Program, minimal.Reference), Verdict: minimal.Verdict,
		Reference: repro.Side{Spec: r.reference, Info: reference}, Candidate: repro.Side{Spec: minimal.Candidate, Info: candidate},
		Expected: minimal.Reference, Got: minimal.Outcome, Seed: r.seed, Test: first.Test, Index: first.Index,
		Choices: f.Result.Choices, Original: first.Program.String(), Count: f.Count(), Signature: f.Result.Signature.String(), Timeout: r.timeout,
		Shrink: repro.Shrink{Runs: f.Result.Runs, Seconds: f.Result.Elapsed.Seconds()},
	}
}

// subject is what a failing case of the run is tried on.
func subject(solo *campaign.Solo, cfg *campaign.Config, first *verdict.Record) shrink.Subject {
	s := shrink.Subject{Judge: func(ctx context.Context, p *program.Program) (*verdict.Record, error) {
		return solo.Judge(ctx, first.Candidate, p)
	}}
	at := slices.IndexFunc(cfg.Tests, func(t campaign.Test) bool { return t.Name == first.Test })
	if at >= 0 && cfg.Tests[at].Redraw != nil {
		s.Redraw = func(record []choice.Choice) (*program.Program, []choice.Choice, error) {
			return cfg.Tests[at].Redraw(first.Index, record, solo)
		}
	}
	return s
}

// controls run the reference again on the minimal programs, with one thread and
// with several. Where it disagrees with itself by the limits that the candidate
// is held to, the finding's cases are not held against the candidate.
func (r *runner) controls(ctx context.Context, solo *campaign.Solo, found []*finding.Finding) error {
	threaded, err := r.backends.Threaded(ctx, r.reference)
	if err != nil {
		return err
	}
	again := []struct {
		how   string
		other backend.Backend
	}{{"run twice", nil}}
	if threaded != nil {
		defer threaded.Close()
		again = append(again, struct {
			how   string
			other backend.Backend
		}{fmt.Sprintf("with one thread and with %d", named.ControlThreads), threaded})
	}
	for _, f := range found {
		for _, a := range again {
			v, err := solo.Again(ctx, f.Result.Record.Program, a.other)
			if err != nil {
				return err
			}
			if v.Word.IsFinding() && f.Unstable == "" {
				f.Unstable = fmt.Sprintf("the reference, %s, disagrees with itself: %s", a.how, v.Reason)
				r.acquit(f)
			}
		}
	}
	return nil
}

// acquit counts a finding's cases as unstable.
func (r *runner) acquit(f *finding.Finding) {
	for _, g := range f.Groups {
		r.summary.Words[g.First.Verdict.Word] -= g.Count
		r.summary.Words[verdict.Unstable] += g.Count
	}
}
