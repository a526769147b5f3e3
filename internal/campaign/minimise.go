package campaign

import (
	"context"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// Instance is an instance of the reference that is to agree with it: How says
// in which way it differs, such as "with one thread and with 4". A nil Backend
// is the reference itself, once more.
type Instance struct {
	How     string
	Backend backend.Backend
}

// Minimise makes the first case of each group smaller, joins the groups that
// fail alike, and runs the reference again on what is left. Where it disagrees
// with itself by the limits that the candidate is held to, the finding is
// Unstable.
func (s *Solo) Minimise(ctx context.Context, groups []*finding.Group, b shrink.Budget, again ...Instance) ([]*finding.Finding, error) {
	var found []*finding.Finding
	for i, g := range groups {
		var progress func(*shrink.Result)
		if s.OnShrink != nil {
			progress = func(r *shrink.Result) { s.OnShrink(i+1, len(groups), r) }
		}
		result, err := shrink.Shrink(ctx, g.First, s.Subject(g.First), b, progress)
		if err != nil {
			return nil, err
		}
		found = append(found, &finding.Finding{ID: result.Record.Program.ID(), Groups: []*finding.Group{g}, Result: result})
	}
	found = finding.Cluster(found)
	for _, f := range found {
		if err := s.control(ctx, f, append([]Instance{{How: "run twice"}}, again...)); err != nil {
			return nil, err
		}
		if err := s.poll(ctx, f.Result.Record); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Subject is what a failing case of a run is tried on.
func (s *Solo) Subject(first *verdict.Record) shrink.Subject {
	subject := shrink.Subject{Judge: func(ctx context.Context, p *program.Program) (*verdict.Record, error) {
		return s.Repeat(ctx, first, p)
	}}
	_, judged := s.Infos(first.Candidate, "")
	subject.OverRanks = judged.Features[backend.OverRanks] != ""
	tests := s.lane.cfg.Tests
	at := slices.IndexFunc(tests, func(t Test) bool { return t.Name == first.Test })
	if at >= 0 && tests[at].Redraw != nil {
		subject.Redraw = func(record []choice.Choice) (*program.Program, []choice.Choice, error) {
			return tests[at].Redraw(first.Index, record, s)
		}
	}
	return subject
}

func (s *Solo) control(ctx context.Context, f *finding.Finding, again []Instance) error {
	for _, a := range again {
		v, err := s.Again(ctx, f.Result.Record.Program, a.Backend)
		if err != nil {
			return err
		}
		if r, c := v.Reference, v.Candidate; v.OfReference && r != nil && c != nil && r.Status == c.Status && r.Class == c.Class {
			continue // it ends so each time
		}
		if v.Word.IsFinding() {
			f.Unstable = fmt.Sprintf("the reference, %s, disagrees with itself: %s", a.How, v.Reason)
			return nil
		}
	}
	return nil
}
