package command

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/judge/verdict"
)

// spending spends a time on the tests whose operators, dtypes and layouts were
// met least: each has a case, then rounds go to those that are behind.
type spending struct {
	time  time.Duration // 0 where nothing but the number of cases ends a run
	tests []*spent
	by    map[string]*spent
	met   map[report.Cell]int // cases
	round int
}

// spent is what a test had.
type spent struct {
	test  campaign.Test
	next  int // index
	cases int
	cells map[report.Cell]bool
	over  bool // it has no more cases, or is in error
}

// errTimeUp ends a run whose time is spent.
var errTimeUp = errors.New("the time is spent")

// roundCases is how many cases a test has in a round after its first.
const roundCases = 8

// A round has a quarter of the tests, so that those after it know what it met; few
// tests have no rounds of one or two.
const (
	roundShare = 4
	roundLeast = 8
)

// first returns the tests with one case each.
func (s *spending) first(tests []campaign.Test) []campaign.Test {
	s.by, s.met = map[string]*spent{}, map[report.Cell]int{}
	for _, t := range tests {
		of := &spent{test: t, cells: map[report.Cell]bool{}}
		s.tests, s.by[t.Name] = append(s.tests, of), of
	}
	return s.next(s.tests, 1)
}

// next returns tests with their next cases.
func (s *spending) next(among []*spent, n int) []campaign.Test {
	s.round++
	var out []campaign.Test
	for _, of := range among {
		t := of.test
		t.First, t.N = of.next, n
		if t.Fixed {
			t.N = min(n, of.test.N-of.next)
		}
		out = append(out, t)
	}
	return out
}

// more returns the next cases of the tests that are least covered.
func (s *spending) more() []campaign.Test {
	left := slices.DeleteFunc(slices.Clone(s.tests), func(of *spent) bool { return of.over })
	slices.SortStableFunc(left, func(a, b *spent) int {
		return cmp.Or(cmp.Compare(s.least(a), s.least(b)), cmp.Compare(a.cases, b.cases))
	})
	return s.next(left[:min(len(left), max(len(left)/roundShare, roundLeast))], roundCases)
}

// least is how often the cell of a test was met that was met least.
func (s *spending) least(of *spent) int {
	n := 0
	for c := range of.cells {
		if n == 0 || s.met[c] < n {
			n = s.met[c]
		}
	}
	return n
}

func (s *spending) record(r *verdict.Record) {
	of := s.by[r.Test]
	if of == nil {
		return
	}
	of.cases++
	for c := range report.Cells(r.Program) {
		of.cells[c] = true
		s.met[c]++
	}
}

func (s *spending) end(e *verdict.End) {
	if of := s.by[e.Test]; of != nil {
		of.next = e.Next
		of.over = e.Err != nil || e.Judged == 0 || of.test.Fixed && of.next >= of.test.N
	}
}

// covered says what the time was spent on.
func (s *spending) covered() *report.Covered {
	c := &report.Covered{Rounds: s.round, Cells: len(s.met)}
	for _, of := range s.tests {
		if of.cases > 0 {
			c.Tests++
		}
	}
	if len(s.met) > 0 {
		c.Least = slices.Min(slices.Collect(maps.Values(s.met)))
	}
	return c
}
