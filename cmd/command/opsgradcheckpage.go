package command

import (
	"fmt"
	"slices"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
	"plumb/internal/gradcheck"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// gradientTold hands what plumb ops gradcheck finds to pages and reports: each order of an
// operator's gradients is a case.
type gradientTold struct {
	to   report.Sinks
	sum  *report.Summary
	by   string     // what the gradients are held to
	none [][]string // operators without a gradient
}

func (t *gradientTold) operator(r *gradcheck.Report) {
	if len(t.to) == 0 {
		return
	}
	t.sum.Tests++
	if r.None != "" {
		t.none = append(t.none, []string{r.ID, r.None})
	}
	test := "gradcheck::" + r.ID
	for i, o := range r.Orders {
		if o.Checked > 0 && !misses(r, i+1) {
			of := &program.Program{Name: fmt.Sprintf("%s, order %d", r.ID, i+1)}
			tellAspect(t.to, t.sum, test, i, of, &verdict.Verdict{Word: verdict.Aligned, Compared: o.Checked, Worst: compare.Number(o.Worst)})
		}
	}
	for i, f := range r.Findings {
		of := f.Program
		if of == nil {
			of = &program.Program{Name: r.ID}
		}
		tellAspect(t.to, t.sum, test, len(r.Orders)+i, of, &verdict.Verdict{Word: verdict.Misaligned, Kind: "gradient", Reason: f.String()})
	}
	t.to.End(&verdict.End{Test: test})
}

// misses reports whether a gradient of this order is wrong.
func misses(r *gradcheck.Report, order int) bool {
	return slices.ContainsFunc(r.Findings, func(f gradcheck.Finding) bool { return f.Order == order })
}

func (t *gradientTold) end(f *filed, seed uint64, took time.Duration) {
	t.sum.Reference, t.sum.Candidates, t.sum.Seed, t.sum.Elapsed = t.by, []string{"native"}, seed, took
	t.to.Summary(t.sum)
	f.section(page.Section{Title: "Without a gradient", Head: []string{"operator", "why"}, Rows: t.none})
}
