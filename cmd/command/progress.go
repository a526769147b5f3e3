package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"plumb/internal/campaign"
	"plumb/internal/judge/verdict"
)

// progress is what a run knows of the tests that it has run.
type progress struct {
	limit   int // of failing tests; 0 for none
	budget  spending
	saved   bool // the tests are saved programs, all of them
	failed  map[string]bool
	ended   map[string]bool
	took    map[string]time.Duration
	enough  context.CancelCauseFunc
	stopped bool
}

// errEnough ends a run whose tests have failed often enough.
var errEnough = errors.New("enough tests failed")

// run runs the tests until enough of them have failed.
func (p *progress) run(ctx context.Context, cfg *campaign.Config) error {
	p.failed, p.ended, p.took = map[string]bool{}, map[string]bool{}, map[string]time.Duration{}
	ctx, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	p.enough = enough
	plan := *cfg
	if p.budget.Is() {
		plan.Tests, plan.More = p.budget.first(cfg.Tests), p.budget.more
	}
	if p.budget.Time > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, p.budget.Time, errTimeUp)
		defer stop()
	}
	err := campaign.Run(ctx, plan)
	if errors.Is(err, errEnough) || errors.Is(err, errTimeUp) {
		return nil
	}
	return err
}

// record keeps how long a test took and whether it failed.
func (p *progress) record(rec *verdict.Record) {
	p.budget.record(rec)
	p.took[rec.Test] += rec.Reference.Elapsed + rec.Outcome.Elapsed
	if rec.Verdict.Word.IsFinding() {
		p.fail(rec.Test)
	}
}

func (p *progress) end(e *verdict.End) {
	p.budget.end(e)
	if e.Err != nil {
		p.fail(e.Test)
	}
	p.ended[e.Test] = true
}

// fail counts a failing test, and ends the run when there are enough.
func (p *progress) fail(test string) {
	p.failed[test] = true
	if p.limit > 0 && len(p.failed) >= p.limit {
		p.stopped = true
		p.enough(errEnough)
	}
}

// remember keeps which tests failed, for --lf. Saved programs are none of them: who runs
// one again goes back to the tests after it.
func (p *progress) remember(before lastFailed, d *drawing, log io.Writer) {
	if p.saved || len(p.ended) == 0 && len(p.failed) == 0 {
		return
	}
	l := lastFailed{Seed: d.seed, Number: d.n, Shapes: d.shapes}
	for _, name := range before.Failed {
		if !p.ended[name] && !p.failed[name] {
			l.Failed = append(l.Failed, name)
		}
	}
	l.Failed = append(l.Failed, slices.Sorted(maps.Keys(p.failed))...)
	if len(l.Failed) == 0 && len(before.Failed) == 0 {
		return
	}
	if err := l.write(); err != nil {
		fmt.Fprintf(log, "plumb: which tests failed is not kept: %v\n", err)
	}
}

// print tells of the slowest tests, and of a run that ended early.
func (p *progress) print(out io.Writer, slowest, tests int) {
	if slowest > 0 && len(p.took) > 0 {
		names := slices.SortedFunc(maps.Keys(p.took), func(a, b string) int {
			if d := p.took[b] - p.took[a]; d != 0 {
				return int(min(max(d, -1), 1))
			}
			return strings.Compare(a, b)
		})
		fmt.Fprintf(out, "\nslowest tests, time in the reference and the candidates:\n")
		for _, n := range names[:min(len(names), slowest)] {
			fmt.Fprintf(out, "  %8.3fs  %s\n", p.took[n].Seconds(), n)
		}
	}
	if p.stopped {
		fmt.Fprintf(out, "\nthe run ended after %s; %s of %d had ended before\n", count(len(p.failed), "failing test"), count(len(p.ended), "test"), tests)
	}
}

// collected is a test as --collect-only --json prints it.
type collected struct {
	Test  string `json:"test"`
	Cases int    `json:"cases"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Skip  string `json:"skip,omitempty"`
}

// printCollected lists the tests that would run, and those that are skipped.
func printCollected(out io.Writer, list []collected, asJSON, quiet bool) {
	if asJSON {
		enc := json.NewEncoder(out)
		for _, c := range list {
			_ = enc.Encode(c)
		}
		return
	}
	width, cases, skipped := 0, 0, 0
	for _, c := range list {
		width = max(width, len(c.Test))
	}
	for _, c := range list {
		cases += c.Cases
		what := count(c.Cases, "case")
		if c.Skip != "" {
			skipped++
			what = "skipped: " + c.Skip
		}
		if quiet {
			fmt.Fprintln(out, c.Test)
		} else {
			fmt.Fprintf(out, "%-*s  %s\n", width, c.Test, what)
		}
	}
	if !quiet {
		fmt.Fprintf(out, "\n%s, %s, %d skipped\n", count(len(list)-skipped, "test"), count(cases, "case"), skipped)
	}
}
