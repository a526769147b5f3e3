package command

import (
	"fmt"
	"strings"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
	"plumb/internal/campaign/store"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/internal/opcheck"
	"plumb/program"
)

// checkTold hands what plumb ops check finds to pages and reports: each aspect of a
// definition is a case.
type checkTold struct {
	to  report.Sinks
	sum *report.Summary
	by  string // what the definitions are held to

	checked, unchecked [][]string
}

func (t *checkTold) operator(r *opcheck.Report) {
	if len(t.to) == 0 {
		return
	}
	t.sum.Tests++
	for i, aspect := range opcheck.Aspects {
		of := r.Of(aspect)
		if len(of) == 0 && r.Checked[aspect] > 0 {
			t.record(r.ID, i, aspect, &verdict.Verdict{Word: verdict.Aligned, Compared: r.Checked[aspect]})
		}
		t.checked = append(t.checked, []string{r.ID, aspect, fmt.Sprint(r.Checked[aspect]), fmt.Sprint(len(of))})
	}
	for i, f := range r.Findings {
		t.record(r.ID, len(opcheck.Aspects)+i, f.Aspect, &verdict.Verdict{Word: verdict.Misaligned, Kind: verdict.Kind(f.Aspect), Reason: fmt.Sprint(f)})
	}
	for _, g := range r.Unchecked {
		t.unchecked = append(t.unchecked, []string{r.ID, g.Field, g.Why})
	}
	t.to.End(&verdict.End{Test: "check::" + r.ID})
}

func (t *checkTold) record(id string, i int, aspect string, v *verdict.Verdict) {
	tellAspect(t.to, t.sum, "check::"+id, i, &program.Program{Name: id + ", " + aspect}, v)
}

func (t *checkTold) end(f *filed, seed uint64) {
	t.sum.Reference, t.sum.Candidates, t.sum.Seed = t.by, []string{"native"}, seed
	t.to.Summary(t.sum)
	f.section(page.Section{Title: "Checked", Head: []string{"operator", "what", "comparisons", "findings"}, Rows: t.checked})
	f.section(page.Section{Title: "Not checked", Head: []string{"operator", "field", "why"}, Rows: t.unchecked})
}

// keptAspects keeps verdicts on definitions in the results store.
type keptAspects struct{ *keeping }

// keepAspects begins a run of a command that judges definitions by themselves, and adds
// what keeps it, where it is to be kept.
func (k *keeping) keepAspects(to report.Sinks, command, by string, seed uint64) report.Sinks {
	k.begin(&store.Run{Command: command, Seed: seed, Subjects: []store.Subject{{Name: by}, {Name: "native", Version: plumbVersion()}}})
	if k.writer == nil {
		return to
	}
	return append(to, keptAspects{k})
}

// Record keeps a verdict, and where it is a finding that one too.
func (k keptAspects) Record(r *verdict.Record) {
	c := storedCase(r)
	_, id, _ := strings.Cut(r.Test, "::")
	c.Operators = []string{id}
	k.add(c)
	if v := r.Verdict; v.Word.IsFinding() {
		k.sight(&store.Sighting{Subject: c.Subject, Operator: id, What: fmt.Sprintf("%s %s of %s", v.Word, v.Kind, id), Test: c.Test, Cases: 1, Reason: v.Reason, Program: c.Text})
	}
}

// End keeps nothing: a test is its cases.
func (keptAspects) End(*verdict.End) {}

// Findings keeps nothing: those of definitions come with their records.
func (keptAspects) Findings([]*finding.Finding) {}

// Summary keeps nothing: the store counts by itself.
func (keptAspects) Summary(*report.Summary) {}

// tellAspect hands on a verdict that no reference took part in.
func tellAspect(to report.Sinks, sum *report.Summary, test string, i int, of *program.Program, v *verdict.Verdict) {
	r := &verdict.Record{
		Test: test, Index: i, Candidate: "native", Modes: []string{backend.Eager}, Program: of,
		Verdict: v, Reference: &backend.Outcome{}, Outcome: &backend.Outcome{},
	}
	sum.Add(r)
	to.Record(r)
}
