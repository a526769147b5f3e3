package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/internal/find/bundle"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/program"
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
		again = append(again, campaign.Instance{How: fmt.Sprintf("with one thread and with %d", open.ControlThreads), Backend: threaded})
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
		r.bundle(ctx, cfg, solo, f)
	}
	r.sink.Findings(found)
	return nil
}

// bundle writes a finding's bundle and runs it in fresh processes. What keeps
// it from being written is said, and the finding is reported without.
func (r *runner) bundle(ctx context.Context, cfg *campaign.Config, solo *campaign.Solo, f *finding.Finding) {
	dir, err := findingsDir(r.findings)
	if r.findings == "none" {
		return
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	var b *bundle.Bundle
	if err == nil {
		b, err = bundle.Write(filepath.Join(dir, f.ID), r.finding(solo, f))
	}
	if err != nil {
		fmt.Fprintf(r.err, "plumb: the bundle of %s: %v\n", f.ID, err)
		return
	}
	f.Bundle = b.Dir
	proof, err := b.Prove(ctx, bundle.ProveOptions{})
	if err == nil {
		err = b.SetProof(proof)
	}
	if err != nil {
		f.Proof = "unproved: " + err.Error()
		return
	}
	f.Proof = proof.String()
	if proof.Reason != "" {
		f.Proof += ": " + proof.Reason
	}
	switch proof.State {
	case bundle.Flaky:
		err = r.retry(ctx, solo, f)
	case bundle.NotReproduced:
		err = r.needs(ctx, cfg, solo, f, b)
	}
	if err != nil {
		fmt.Fprintf(r.err, "plumb: the bundle of %s: %v\n", f.ID, err)
	}
}

// retries is how often a flaky finding's case is judged again as it was drawn.
const retries = 5

// retry judges the case again under its original conditions, in one process.
func (r *runner) retry(ctx context.Context, solo *campaign.Solo, f *finding.Finding) error {
	failed := 0
	for range retries {
		again, err := solo.Repeat(ctx, f.Groups[0].First, f.Groups[0].First.Program)
		if err != nil {
			return err
		}
		if again.Verdict.Word.IsFinding() {
			failed++
		}
	}
	f.Proof += fmt.Sprintf("; as it was drawn, in one process, it fails in %d of %d runs", failed, retries)
	return nil
}

// needs looks for the earlier cases of the test after which the bundle fails in
// a fresh process, and keeps them beside the bundle.
func (r *runner) needs(ctx context.Context, cfg *campaign.Config, solo *campaign.Solo, f *finding.Finding, b *bundle.Bundle) error {
	first := f.Groups[0].First
	at := slices.IndexFunc(cfg.Tests, func(t campaign.Test) bool { return t.Name == first.Test })
	if at < 0 {
		return nil
	}
	var earlier []*program.Program
	for i := range first.Index {
		if p, err := cfg.Tests[at].Draw(i, solo); err == nil {
			earlier = append(earlier, p)
		}
	}
	needed, err := b.Needs(ctx, earlier, bundle.ProveOptions{})
	if err != nil || needed == nil {
		return err
	}
	path := b.Dir + ".after.py"
	err = whole(path, func(w io.Writer) error { _, err := io.WriteString(w, bundle.JoinPrograms(needed)); return err })
	f.Proof = fmt.Sprintf("reproduced after %d earlier cases of the test, which leave state behind: plumb repro %s --run --as plumb --after %s", len(needed), f.ID, path)
	return err
}

// finding is what a bundle is made of.
func (r *runner) finding(solo *campaign.Solo, f *finding.Finding) *bundle.Finding {
	minimal, first := f.Result.Record, f.Groups[0].First
	spec, mode := minimal.Candidate, ""
	if len(minimal.Modes) > 0 && minimal.Modes[0] != backend.Eager {
		mode = minimal.Modes[0]
		spec = open.InMode(spec, mode)
	}
	reference, candidate := solo.Infos(minimal.Candidate, mode)
	return &bundle.Finding{
		Program: minimal.Program, Job: campaign.Job(minimal.Program, minimal.Reference), Verdict: minimal.Verdict,
		Reference: bundle.Side{Spec: r.reference, Info: reference}, Candidate: bundle.Side{Spec: spec, Info: candidate}, Modes: f.Modes(),
		Expected: minimal.Reference, Got: minimal.Outcome, Seed: r.seed, Test: first.Test, Index: first.Index,
		Choices: f.Result.Choices, Original: first.Program.String(), Count: f.Count(), Signature: f.Result.Signature.String(), Timeout: r.timeout,
		Shrink: bundle.Shrink{Runs: f.Result.Runs, Seconds: f.Result.Elapsed.Seconds()},
	}
}

// acquit counts a finding's cases as unstable.
func (r *runner) acquit(f *finding.Finding) {
	for _, g := range f.Groups {
		word := g.First.Verdict.Word
		if r.summary.Words[word] -= g.Count; r.summary.Words[word] == 0 {
			delete(r.summary.Words, word)
		}
		r.summary.Words[verdict.Unstable] += g.Count
	}
}
