package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/conform/baseline"
	"plumb/internal/find/bundle"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
)

// conformFindings makes findings of the failing cases of a conformance run: those
// that fail alike are one, with a bundle of the smallest.
type conformFindings struct {
	dir      string // of the bundles; "none" writes none
	known    string
	accepted *acceptedList

	collector finding.Collector
	mu        sync.Mutex
	candidate backend.Info // of an instance that was opened
}

func (f *conformFindings) flags(fl *pflag.FlagSet) {
	fl.Var(&pathValue{&f.dir, "folder", checkFindings}, "findings", `the folder of the bundles of findings, for plumb repro; "none" for no bundles (default: in the user's cache)`)
	fl.Var(&pathValue{&f.known, "file", checkKnown}, "known", `the list of accepted failures, see plumb known; "none" for no list (default: `+defaultKnown+`, where it exists)`)
}

// checkFindings returns an error where --findings names no folder.
func checkFindings(path string) error {
	if path == "none" {
		return nil
	}
	return checkFolder(path)
}

// open reads the list of accepted failures, and notes what the candidate says of
// itself.
func (f *conformFindings) open(cfg *baseline.RunConfig, errs io.Writer) (err error) {
	f.collector.Smallest = true
	opener := cfg.Open
	cfg.Open = func() (backend.Backend, error) {
		b, err := opener()
		if err == nil {
			f.mu.Lock()
			f.candidate = b.Info()
			f.mu.Unlock()
		}
		return b, err
	}
	f.accepted, err = openKnown(f.known, 0, errs)
	return err
}

// record takes a record, which may be excused.
func (f *conformFindings) record(r *baseline.Record) {
	f.accepted.excuse(&r.Record)
	fails := r.Verdict.Word.IsFinding() && r.Reference != nil && r.Outcome != nil
	f.collector.Record(&r.Record, fails)
	if !fails {
		r.Reference, r.Outcome = nil, nil
	}
}

// findings are the clusters of failing cases, with their bundles.
func (f *conformFindings) findings(ctx context.Context, r *conformRun, errs io.Writer) []*finding.Finding {
	f.collector.End()
	groups := f.collector.Groups()
	if len(groups) > maxMinimised {
		fmt.Fprintf(errs, "plumb: %d kinds of failure; the first %d are kept as bundles\n", len(groups), maxMinimised)
		groups = groups[:maxMinimised]
	}
	var all []*finding.Finding
	for _, g := range groups {
		all = append(all, &finding.Finding{
			ID: g.First.Program.ID(), Groups: []*finding.Group{g}, Common: finding.Common(g.Failing, g.Passing),
			Result: &shrink.Result{Record: g.First, Signature: g.Signature, Minimal: true},
		})
	}
	all = finding.Cluster(all)
	if f.dir == "none" {
		return all
	}
	until := time.Now().Add(provingTime)
	for _, one := range slowLast(all) {
		if err := f.bundle(ctx, r, one, time.Until(until)); err != nil {
			fmt.Fprintf(errs, "plumb: the bundle of %s: %v\n", one.ID, err)
		}
	}
	return all
}

// provingTime is what the proofs of a run take together: what it has found is to be
// told, and plumb repro proves a bundle at any time.
const provingTime = 2 * time.Minute

// proofRuns is how often a bundle is run.
const proofRuns = 3

// slowLast are the findings, those last of which each proof takes a case's whole time.
func slowLast(all []*finding.Finding) []*finding.Finding {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *finding.Finding) int {
		switch x, y := timedOut(a), timedOut(b); {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	})
	return all
}

func timedOut(one *finding.Finding) bool {
	return one.Result.Record.Verdict.Word == verdict.Timeout
}

// prove runs a bundle in fresh processes, for no longer than what is left.
func prove(ctx context.Context, b *bundle.Bundle, one *finding.Finding, limit, left time.Duration) (bundle.Proof, error) {
	p := bundle.Proof{State: bundle.Unproved}
	switch {
	case timedOut(one) && proofRuns*limit > left:
		p.Reason = fmt.Sprintf("%d runs would take the time limit of a case each, %v", proofRuns, limit)
	case left <= 0:
		p.Reason = fmt.Sprintf("the proofs before took %v", provingTime)
	default:
		return b.Prove(ctx, bundle.ProveOptions{Runs: proofRuns, Within: left})
	}
	return p, nil
}

// bundle writes a finding's bundle and runs it in fresh processes, for no longer than
// what is left.
func (f *conformFindings) bundle(ctx context.Context, r *conformRun, one *finding.Finding, left time.Duration) error {
	dir, err := findingsDir(f.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	first := one.Result.Record
	p := first.Program
	if first.Function != nil {
		p = first.Function.Of
	}
	b, err := bundle.Write(filepath.Join(dir, one.ID), &bundle.Finding{
		Program: p, Function: first.Function, Job: campaign.Job(p, first.Reference), Verdict: first.Verdict,
		Reference: bundle.Side{Spec: r.base.Manifest.Reference.Name, Info: r.base.Manifest.Reference},
		Candidate: bundle.Side{Spec: r.candidate, Info: f.candidate},
		Expected:  first.Reference, Got: first.Outcome, Seed: r.base.Manifest.Seed, Test: first.Test, Index: first.Index,
		Count: one.Count(), Signature: one.Result.Signature.String(), Timeout: r.timeout,
	})
	if err != nil {
		return err
	}
	one.Bundle = b.Dir
	proof, err := prove(ctx, b, one, r.timeout, left)
	if err == nil {
		err = b.SetProof(proof)
	}
	if err != nil {
		one.Proof = "unproved: " + err.Error()
		return nil
	}
	one.Proof = proof.String()
	if proof.Reason != "" {
		one.Proof += ": " + proof.Reason
	}
	return nil
}
