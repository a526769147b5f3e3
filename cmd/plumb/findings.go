package main

import (
	"context"
	"fmt"
	"slices"

	"plumb/campaign"
	"plumb/choice"
	"plumb/finding"
	"plumb/program"
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
	for _, f := range found {
		if err := r.control(ctx, solo, f); err != nil {
			return err
		}
	}
	r.sink.Findings(found)
	return nil
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

// control runs the reference again. Where it disagrees with itself, the
// finding's cases are not held against the candidate.
func (r *runner) control(ctx context.Context, solo *campaign.Solo, f *finding.Finding) error {
	v, err := solo.Again(ctx, f.Result.Record.Program)
	if err != nil || !v.Word.IsFinding() {
		return err
	}
	f.Unstable = "the reference, run twice, disagrees with itself: " + v.Reason
	for _, g := range f.Groups {
		r.summary.Words[g.First.Verdict.Word] -= g.Count
		r.summary.Words[verdict.Unstable] += g.Count
	}
	return nil
}
