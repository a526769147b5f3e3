package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// tell hands the faults to pages and reports. The cases of the table without a fault
// are there already; each fault is one more, which is aligned where it was found.
func (s *selftest) tell(sum *selftestSummary) {
	if len(s.to) == 0 {
		return
	}
	of := s.told
	of.Reference, of.Candidates, of.Seed, of.Tests = sum.Reference, []string{"native"}, sum.Seed, len(s.mutants)
	of.Elapsed, of.Errors = time.Duration(sum.Seconds*float64(time.Second)), s.errors
	for i, m := range s.mutants {
		r := m.record(i)
		of.Add(r)
		s.to.Record(r)
	}
	s.to.Summary(of)
	s.filed.verdict(fmt.Sprintf("%d of %d faults found, %d false findings", sum.Found, sum.Planted, sum.False), s.verdict(sum) != nil)
	for _, section := range s.sections() {
		s.filed.section(section)
	}
}

// tellCase hands on a case of the table without a fault.
func (s *selftest) tellCase(r *verdict.Record) {
	if len(s.to) > 0 {
		s.told.Add(r)
		s.to.Record(r)
	}
}

// record is a fault as a case: aligned where it was found, misaligned where it escapes.
func (m *mutantRun) record(i int) *verdict.Record {
	v := &verdict.Verdict{Word: verdict.Misaligned, Kind: verdict.Kind(m.Kind), Reason: "escapes: " + m.Name}
	switch {
	case m.err != nil:
		v.Word, v.Reason = verdict.Fault, m.err.Error()
	case m.found != nil:
		v.Word, v.Kind, v.Reason = verdict.Aligned, "", ""
	}
	return &verdict.Record{
		Test: "selftest::" + m.In, Index: i, Candidate: "native, with faults", Modes: []string{backend.Eager}, Program: &program.Program{Name: m.Name},
		Verdict: v, Reference: &backend.Outcome{}, Outcome: &backend.Outcome{Elapsed: m.elapsed},
	}
}

// sections are the tables of a selftest's page.
func (s *selftest) sections() []page.Section {
	head := []string{"fault", "operator", "kind", "runs", "seconds", "found by", "as", "smallest program"}
	escaped, found := page.Section{Title: "Escaped", Head: append(slices.Clone(head[:5]), "error")}, page.Section{Title: "Found", Head: head}
	kinds, operators := map[string][2]int{}, map[string][2]int{}
	for _, m := range s.mutants {
		j, into, hit := m.json(), &escaped, 0
		row := []string{m.Name, m.In, string(m.Kind), fmt.Sprint(m.runs), fmt.Sprintf("%.3f", m.elapsed.Seconds())}
		program := ""
		if j.Small != nil {
			program = strings.Join(report.Body(m.small.Record.Program), "\n")
		}
		if j.Found {
			into, hit = &found, 1
			row = append(row, fmt.Sprintf("%s case %d", j.Test, j.Index), cmp.Or(j.Error, firstLineOf(j.Reason)), program)
		} else {
			row = append(row, j.Error)
		}
		into.Rows = append(into.Rows, row)
		for of, key := range map[*map[string][2]int]string{&kinds: string(m.Kind), &operators: m.In} {
			n := (*of)[key]
			(*of)[key] = [2]int{n[0] + 1, n[1] + hit}
		}
	}
	return []page.Section{escaped, foundOf("By kind", "kind", kinds), foundOf("By operator", "operator", operators), found}
}

// foundOf is a table of how many faults of each there are, and were found; where most
// escape, first.
func foundOf(title, of string, counts map[string][2]int) page.Section {
	s := page.Section{Title: title, Head: []string{of, "planted", "found", "escaped"}}
	for _, key := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		x, y := counts[a], counts[b]
		return cmp.Or((y[0]-y[1])-(x[0]-x[1]), strings.Compare(a, b))
	}) {
		n := counts[key]
		s.Rows = append(s.Rows, []string{key, fmt.Sprint(n[0]), fmt.Sprint(n[1]), fmt.Sprint(n[0] - n[1])})
	}
	return s
}
