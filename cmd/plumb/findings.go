package main

import (
	"context"
	"fmt"
	"slices"

	"plumb/backend"
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
	if err := r.controls(ctx, solo, found); err != nil {
		return err
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

// controlThreads is the number of threads of the reference's second instance.
const controlThreads = 4

// controls run the reference again on the minimal programs, with one thread and
// with several. Where it disagrees with itself by the limits that the candidate
// is held to, the finding's cases are not held against the candidate.
func (r *runner) controls(ctx context.Context, solo *campaign.Solo, found []*finding.Finding) error {
	threaded, err := r.backends.Threaded(ctx, r.reference, controlThreads)
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
		}{fmt.Sprintf("with one thread and with %d", controlThreads), threaded})
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
