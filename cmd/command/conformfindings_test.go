package command

import (
	"strings"
	"testing"
	"time"

	"plumb/internal/find/bundle"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
)

// TestProofsEnd: what takes a case's whole time is proved last, and only where there
// is time for all of its runs.
func TestProofsEnd(t *testing.T) {
	found := func(id string, w verdict.Word) *finding.Finding {
		return &finding.Finding{ID: id, Result: &shrink.Result{Record: &verdict.Record{Verdict: &verdict.Verdict{Word: w}}}}
	}
	slow := found("slow", verdict.Timeout)
	all := []*finding.Finding{found("first", verdict.Misaligned), slow, found("second", verdict.Crash)}
	order := ""
	for _, one := range slowLast(all) {
		order += one.ID + " "
	}
	if order != "first second slow " || all[1] != slow {
		t.Errorf("the order is %s", order)
	}
	for _, c := range []struct {
		one    *finding.Finding
		left   time.Duration
		reason string
	}{
		{slow, provingTime, "3 runs would take the time limit of a case each, 2m0s"},
		{all[0], -time.Second, "the proofs before took 2m0s"},
	} {
		p, err := prove(t.Context(), nil, c.one, 2*time.Minute, c.left)
		if err != nil || p.State != bundle.Unproved || !strings.Contains(p.Reason, c.reason) {
			t.Errorf("%s: %+v, %v", c.one.ID, p, err)
		}
	}
}
