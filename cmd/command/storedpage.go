package command

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// storedPage writes a run of the store as one page, without the tensors that only a
// run under way has.
type storedPage struct{ html string }

func (p *storedPage) flag(fl *pflag.FlagSet) {
	fl.Var(outFile(&p.html), "html", "write the run as one page to this file: its failures with their programs, tests, every case")
}

// write writes the page, where one is asked for.
func (p *storedPage) write(s *store.Store, r *store.Run, log io.Writer) error {
	if p.html == "" {
		return nil
	}
	f := filed{html: p.html}
	f.begin(cmp.Or(r.Command, "plumb"), r.Started, nil)
	f.page.Environment = [][2]string{
		{"command", strings.TrimSpace("plumb " + strings.Join(r.Args, " "))}, {"run", fmt.Sprintf("%d of the store, %s", r.ID, r.End())}, {"plumb", r.Plumb}, {"reference", r.Reference().String()},
	}
	sum := report.NewSummary()
	sum.Reference, sum.Seed, sum.Elapsed = r.Reference().String(), r.Seed, time.Duration(r.Elapsed*float64(time.Second))
	for _, c := range r.Candidates() {
		sum.Candidates = append(sum.Candidates, c.Name)
		f.about("candidate", c.String())
	}
	tests := map[string]bool{}
	err := s.Cases(r.ID, func(c *store.Case) error {
		tests[c.Test] = true
		if c.Word != "" {
			ofStore(f.page, sum, c)
		}
		return nil
	})
	sum.Tests = len(tests)
	f.page.Summary(sum)
	return f.end(err, log)
}

// ofStore counts a case and hands it to the page: one that failed with its program.
func ofStore(p *page.Page, sum *report.Summary, c *store.Case) {
	word, worst := verdict.Word(c.Word), 0.0
	if !math.IsNaN(c.Worst) {
		worst = c.Worst
	}
	sum.Words[word]++
	sum.Compared += c.Compared
	switch {
	case word == verdict.Aligned && worst > sum.Worst:
		sum.Worst, sum.WorstAt = worst, fmt.Sprintf("%s case %d, %s", c.Test, c.Number, c.WorstAt)
	case word == verdict.Unsupported:
		sum.Lacking[report.Lack(c.Reason)]++
	}
	if word.IsFinding() {
		if of, err := program.Parse(c.Program, c.Text); err == nil {
			p.Record(&verdict.Record{
				Test: c.Test, Index: c.Number, Candidate: c.Subject, Modes: []string{cmp.Or(c.Mode, backend.Eager)}, Program: of,
				Verdict:   &verdict.Verdict{Word: word, Kind: verdict.Kind(c.Kind), Reason: c.Reason, Worst: compare.Number(worst)},
				Reference: &backend.Outcome{Elapsed: c.Reference}, Outcome: &backend.Outcome{Elapsed: c.Elapsed},
			})
			return
		}
	}
	p.Case(&page.Case{
		Test: c.Test, Index: c.Number, ID: c.Program, Candidate: c.Subject, Word: word, Worst: worst, Took: c.Elapsed + c.Reference,
		Operators: c.Operators, DTypes: strings.Fields(c.DTypes), Reason: c.Reason,
	})
}
