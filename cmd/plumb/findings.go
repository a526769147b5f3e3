package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"plumb/backend/named"
	"plumb/campaign"
	"plumb/finding"
	"plumb/repro"
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
	var again []campaign.Instance
	threaded, err := r.backends.Threaded(ctx, r.reference)
	switch {
	case err != nil:
		return err
	case threaded != nil:
		defer threaded.Close()
		again = append(again, campaign.Instance{How: fmt.Sprintf("with one thread and with %d", named.ControlThreads), Backend: threaded})
	}
	found, err := solo.Minimise(ctx, groups, r.shrink, again...)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Unstable != "" {
			r.acquit(f)
		}
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
	if err == nil {
		err = b.SetProof(proof)
	}
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

// acquit counts a finding's cases as unstable.
func (r *runner) acquit(f *finding.Finding) {
	for _, g := range f.Groups {
		r.summary.Words[g.First.Verdict.Word] -= g.Count
		r.summary.Words[verdict.Unstable] += g.Count
	}
}
