package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/internal/onekernel"
)

// tell hands what became of a kernel to pages and reports, as a run of one test.
func (f *kernelFlags) tell(to report.Sinks, rep *onekernel.Report) {
	sum := report.NewSummary()
	sum.Reference, sum.Candidates, sum.Seed, sum.Tests = rep.Against, []string{rep.Kernel}, rep.Seed, 1
	sum.Elapsed = time.Duration(rep.Seconds * float64(time.Second))
	for _, r := range rep.Records() {
		sum.Add(r)
		to.Record(r)
	}
	var findings []*finding.Finding
	if !f.Passes(rep) {
		findings = kernelFindings(rep)
	}
	for _, one := range findings {
		if r := one.Result.Record; len(r.Program.Calls) == 0 { // seen in no call, such as at the import
			sum.Add(r)
			to.Record(r)
		}
	}
	to.End(&verdict.End{Test: "kernel::" + rep.Kernel, Judged: sum.Judged()})
	to.Findings(findings)
	to.Summary(sum)
	f.filed.about("reference", rep.Reference)
	f.filed.verdict(string(rep.Verdict), !f.Passes(rep))
	for _, s := range kernelSections(rep) {
		f.filed.section(s)
	}
}

// kernelFindings are what is said against a kernel, as the findings of a run.
func kernelFindings(rep *onekernel.Report) []*finding.Finding {
	var all []*finding.Finding
	for i, one := range rep.Found() {
		f := &finding.Finding{
			ID: one.Small.Program.ID(), Result: &shrink.Result{Record: one.Small, Signature: shrink.SignatureOf(one.Small), Minimal: true},
			Groups: []*finding.Group{{Test: one.First.Test, Candidate: rep.Kernel, Signature: shrink.SignatureOf(one.First), First: one.First, Count: max(one.Cases, 1)}},
		}
		if rep.Bundle != nil && i == 0 {
			f.Again, f.Proof = rep.Bundle.Run, rep.Bundle.Seen()
		}
		if strings.HasPrefix(rep.When, "only ") {
			f.Common = rep.When
		}
		all = append(all, f)
	}
	return all
}

// kernelSections are the tables that a kernel's page has beside what every page has.
func kernelSections(rep *onekernel.Report) []page.Section {
	verdict := page.Section{Title: "Verdict", Head: []string{"what", "calls", "in words"}}
	evidence := page.Section{Title: "Evidence", Intro: "What was seen beside the results.", Head: verdict.Head}
	for into, reasons := range map[*page.Section][]onekernel.Reason{&verdict: rep.Reasons, &evidence: rep.Evidence} {
		for _, r := range reasons {
			into.Rows = append(into.Rows, []string{r.Kind, fmt.Sprint(r.Cases), r.Text})
		}
	}
	t := rep.Tried
	tried := page.Section{Title: "Tried", Head: []string{"what", ""}, Rows: [][]string{
		{"calls", fmt.Sprintf("%d, of which %d right and %d refused", t.Cases, t.Right, t.Refused)},
		{"with gradients", fmt.Sprint(t.Gradients)}, {"dtypes", strings.Join(t.DTypes, ", ")}, {"layouts", strings.Join(t.Layouts, ", ")},
		{"values", strings.Join(t.Values, ", ")}, {"sizes", strings.Trim(fmt.Sprint(t.Sizes), "[]")}, {"score", fmt.Sprintf("%.3g", rep.Score)},
	}}
	for _, lines := range []struct {
		what string
		all  []string
	}{{"promised", rep.Promises}, {"sandbox without", rep.Sandbox.Missing}, {"note", rep.Notes}} {
		for _, text := range lines.all {
			tried.Rows = append(tried.Rows, []string{lines.what, text})
		}
	}
	refused := page.Section{Title: "Refused", Head: []string{"what the kernel says", "calls", "such as"}}
	for _, text := range slices.Sorted(maps.Keys(rep.Refused)) {
		refused.Rows = append(refused.Rows, []string{text, fmt.Sprint(len(rep.Refused[text])), rep.Refused[text][0]})
	}
	return []page.Section{verdict, evidence, tried, refused, kernelTimes(rep.Time)}
}

// kernelTimes are the times of a kernel and its reference, in microseconds.
func kernelTimes(t *onekernel.Timing) page.Section {
	s := page.Section{Title: "Time", Head: []string{"call", "bytes", "memory", "kernel, µs", "reference, µs", "times as fast"}}
	if t == nil {
		return s
	}
	s.Intro = t.Refused
	span := func(of onekernel.Span) string { return fmt.Sprintf("%.4g (%.4g to %.4g)", of.Median, of.Low, of.High) }
	for _, p := range t.Points {
		for _, of := range []struct {
			memory string
			pair   *onekernel.Pair
		}{{"warm", p.Warm}, {"cold", p.Cold}} {
			if of.pair != nil {
				s.Rows = append(s.Rows, []string{p.Case, fmt.Sprint(p.Bytes), of.memory, span(of.pair.Kernel), span(of.pair.Reference), span(of.pair.Speedup)})
			}
		}
		if p.Refused != "" {
			s.Rows = append(s.Rows, []string{p.Case, fmt.Sprint(p.Bytes), p.Refused, "", "", ""})
		}
	}
	return s
}
