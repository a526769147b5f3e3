package command

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
	"plumb/internal/campaign/report"
	"plumb/internal/find/bundle"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// maxMinimised bounds the groups of failing cases that are made smaller.
const maxMinimised = 50

// minimiser makes failing cases smaller and keeps them as bundles.
type minimiser struct {
	cfg      *campaign.Config
	subjects *subjects
	settings *settings
	seed     uint64
	summary  *report.Summary
	log      io.Writer
	onShrink func(at, of int, r *shrink.Result) // nil for nobody who is told

	solo *campaign.Solo
}

// minimise makes the failing cases smaller and joins those that fail alike.
func (m *minimiser) minimise(ctx context.Context, groups []*finding.Group) ([]*finding.Finding, error) {
	if len(groups) > maxMinimised {
		fmt.Fprintf(m.log, "plumb: %d kinds of failure; the first %d are minimised\n", len(groups), maxMinimised)
		groups = groups[:maxMinimised]
	}
	var err error
	if m.solo, err = campaign.Open(m.cfg); err != nil {
		return nil, err
	}
	defer m.solo.Close()
	m.solo.OnShrink = m.onShrink
	var again []campaign.Instance
	threaded, err := m.subjects.set.Threaded(ctx, m.subjects.reference)
	switch {
	case err != nil:
		return nil, err
	case threaded != nil:
		defer threaded.Close()
		again = append(again, campaign.Instance{How: fmt.Sprintf("with one thread and with %d", open.ControlThreads), Backend: threaded})
	}
	found, err := m.solo.Minimise(ctx, groups, m.settings.shrink, again...)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.Unstable != "" {
			m.acquit(f)
		}
	}
	for _, f := range found {
		m.bundle(ctx, f)
	}
	return found, nil
}

// bundle writes a finding's bundle and runs it in fresh processes. What keeps
// it from being written is said, and the finding is reported without.
func (m *minimiser) bundle(ctx context.Context, f *finding.Finding) {
	if m.settings.findings == "none" {
		return
	}
	dir, err := findingsDir(m.settings.findings)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	var b *bundle.Bundle
	if err == nil {
		b, err = bundle.Write(filepath.Join(dir, f.ID), m.finding(f))
	}
	if err != nil {
		fmt.Fprintf(m.log, "plumb: the bundle of %s: %v\n", f.ID, err)
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
		err = m.retry(ctx, f)
	case bundle.NotReproduced:
		err = m.needs(ctx, f, b)
	}
	if err != nil {
		fmt.Fprintf(m.log, "plumb: the bundle of %s: %v\n", f.ID, err)
	}
}

// retries is how often a flaky finding's case is judged again as it was drawn.
const retries = 5

// retry judges the case again under its original conditions, in one process.
func (m *minimiser) retry(ctx context.Context, f *finding.Finding) error {
	failed := 0
	for range retries {
		again, err := m.solo.Repeat(ctx, f.Groups[0].First, f.Groups[0].First.Program)
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

// needs looks for the earlier cases after which the bundle fails in a fresh
// process, and keeps them beside the bundle: those of the test, else those of the
// tests before it too.
func (m *minimiser) needs(ctx context.Context, f *finding.Finding, b *bundle.Bundle) error {
	first := f.Groups[0].First
	at := slices.IndexFunc(m.cfg.Tests, func(t campaign.Test) bool { return t.Name == first.Test })
	if at < 0 {
		return nil
	}
	own := drawnOf(&m.cfg.Tests[at], first.Index, m.solo)
	of, needed, err := "test", []*program.Program(nil), error(nil)
	if len(own) > 0 {
		needed, err = b.Needs(ctx, own, bundle.ProveOptions{})
	}
	if err == nil && needed == nil && at > 0 {
		of = "run"
		needed, err = b.Needs(ctx, before(m.cfg.Tests[:at], own, m.solo), bundle.ProveOptions{})
	}
	if err != nil || needed == nil {
		return err
	}
	path := b.Dir + ".after.py"
	err = whole(path, func(w io.Writer) error { _, err := io.WriteString(w, bundle.JoinPrograms(needed)); return err })
	f.Proof = fmt.Sprintf("reproduced after %d earlier cases of the %s, which leave state behind: plumb repro %s --run --as plumb --after %s", len(needed), of, f.ID, path)
	return err
}

// maxBefore bounds the cases of a run that a failing one is tried after.
const maxBefore = 200

// before returns cases in the order of a run: the last ones of tests, then those of the
// failing case's own test.
func before(tests []campaign.Test, own []*program.Program, o campaign.Observer) []*program.Program {
	cases := own
	for at := len(tests) - 1; at >= 0 && len(cases) < maxBefore; at-- {
		cases = slices.Concat(drawnOf(&tests[at], tests[at].First+tests[at].N, o), cases)
	}
	return cases[max(0, len(cases)-maxBefore):]
}

// drawnOf returns the cases of a test whose index is below end, as far as they are drawn.
func drawnOf(t *campaign.Test, end int, o campaign.Observer) []*program.Program {
	var cases []*program.Program
	for i := max(0, end-maxBefore); i < end; i++ {
		if p, err := t.Draw(i, o); err == nil {
			cases = append(cases, p)
		}
	}
	return cases
}

// finding is what a bundle is made of.
func (m *minimiser) finding(f *finding.Finding) *bundle.Finding {
	minimal, first := f.Result.Record, f.Groups[0].First
	spec, mode := minimal.Candidate, ""
	if len(minimal.Modes) > 0 && minimal.Modes[0] != backend.Eager {
		mode = minimal.Modes[0]
		spec = open.InMode(spec, mode)
	}
	reference, candidate := m.solo.Infos(minimal.Candidate, mode)
	return &bundle.Finding{
		Program: minimal.Program, Job: campaign.Job(minimal.Program, minimal.Reference), Verdict: minimal.Verdict,
		Reference: bundle.Side{Spec: m.subjects.reference, Info: reference}, Candidate: bundle.Side{Spec: spec, Info: candidate}, Modes: f.Modes(),
		Expected: minimal.Reference, Got: minimal.Outcome, Seed: m.seed, Test: first.Test, Index: first.Index,
		Choices: f.Result.Choices, Original: first.Program.String(), Count: f.Count(), Signature: f.Result.Signature.String(), Timeout: m.settings.timeout, Growth: int64(m.settings.growth),
		Shrink: bundle.Shrink{Runs: f.Result.Runs, Seconds: f.Result.Elapsed.Seconds()},
	}
}

// acquit counts a finding's cases as unstable.
func (m *minimiser) acquit(f *finding.Finding) {
	for _, g := range f.Groups {
		word := g.First.Verdict.Word
		if m.summary.Words[word] -= g.Count; m.summary.Words[word] == 0 {
			delete(m.summary.Words, word)
		}
		m.summary.Words[verdict.Unstable] += g.Count
	}
}
