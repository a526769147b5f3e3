package command

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"plumb/internal/campaign"
	"plumb/internal/campaign/bandit"
	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/report"
	"plumb/internal/draw/choice"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
)

// spending spends a time, or a number of cases, as a bandit does: each test has a case,
// then rounds go to the tests whose last cases gained most, for each case that they had.
type spending struct {
	ledger.Budget
	bandit bandit.Bandit
	tests  []*spent
	by     map[string]*spent
	of     map[*bandit.Arm]*spent
	met    map[report.Cell]int // cases
	seen   map[shrink.Signature]bool
	round  int

	shared *atomic.Bool // cases share programs
}

// spent is what a test had.
type spent struct {
	bandit.Arm
	test campaign.Test
	next int // index
}

// errTimeUp ends a run whose time is spent.
var errTimeUp = errors.New("the time is spent")

// roundCases is how many cases a test has in a round after its first: with two, planted
// faults were found later than where they are spent evenly (plumb bench budget).
const roundCases = 1

// A round has a quarter of the tests, so that those after it know what it met; few
// tests have no rounds of one or two.
const (
	roundShare = 4
	roundLeast = 8
)

// budgetFlag is how much there is to spend; then says which cases a test has.
func budgetFlag(fl *pflag.FlagSet, b *ledger.Budget, then string) {
	v := &limited[ledger.Budget]{to: b, kind: "duration|cases", want: "a positive duration such as 30m, or a number of cases"}
	v.parse = func(text string) (ledger.Budget, bool) {
		if n, err := strconv.Atoi(text); err == nil {
			return ledger.Budget{Cases: n}, n > 0
		}
		d, err := time.ParseDuration(text)
		return ledger.Budget{Time: d}, err == nil && d > 0
	}
	fl.Var(v, "for", "go on for this time (30m), or for so many cases in all (50000), instead of a number for each test: "+then+" have more whose last cases met what none had met, failed in another way, or came near their limits")
}

// asBudget takes --cases N for --for N.
func asBudget(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "cases" {
		name = "for"
	}
	return pflag.NormalizedName(name)
}

// first returns the tests with one case each.
func (s *spending) first(tests []campaign.Test) []campaign.Test {
	s.by, s.of, s.met, s.seen = map[string]*spent{}, map[*bandit.Arm]*spent{}, map[report.Cell]int{}, map[shrink.Signature]bool{}
	for _, t := range tests {
		of := &spent{test: t}
		s.tests, s.by[t.Name], s.of[&of.Arm] = append(s.tests, of), of, of
		s.bandit.Add(&of.Arm)
	}
	return s.next(s.tests, 1)
}

// next returns tests with their next cases, as far as there are some to spend.
func (s *spending) next(among []*spent, n int) []campaign.Test {
	s.round++
	var out []campaign.Test
	for _, of := range among {
		t := of.test
		t.First, t.N = of.next, n
		if t.Fixed {
			t.N = min(n, of.test.N-of.next)
		}
		if s.Cases > 0 {
			t.N = min(t.N, s.Cases-s.bandit.Given())
		}
		if t.N > 0 {
			s.bandit.Give(&of.Arm, t.N)
			out = append(out, t)
		}
	}
	return out
}

// more returns the next cases of the tests that are worth most.
func (s *spending) more() []campaign.Test {
	best := s.bandit.Best()
	var among []*spent
	for _, arm := range best[:min(len(best), max(len(best)/roundShare, roundLeast))] {
		among = append(among, s.of[arm])
	}
	return s.next(among, s.roundCases())
}

// roundCases is how many cases a test has in a round: where compiling is dear, as many as
// share a program.
func (s *spending) roundCases() int {
	if s.shared != nil && s.shared.Load() {
		return choice.Cases{Few: true}.Sharing()
	}
	return roundCases
}

func (s *spending) record(r *verdict.Record) {
	of := s.by[r.Test]
	if of == nil {
		return
	}
	for c := range report.Cells(r.Program) {
		s.met[c]++
	}
	worst, _ := worstOf(r.Verdict)
	failures := 0
	if r.Verdict.Word.IsFinding() {
		if sign := shrink.SignatureOf(r); !s.seen[sign] {
			s.seen[sign], failures = true, 1
		}
	}
	s.bandit.Told(&of.Arm, 1, report.Traits(r.Program), nearness(worst), failures)
}

// nearness is how near to its limit a case came, from 0 to 1.
func nearness(worst float64) float64 {
	if !(worst > 0) {
		return 0
	}
	return min(worst, 1)
}

func (s *spending) end(e *verdict.End) {
	if of := s.by[e.Test]; of != nil {
		of.next = e.Next
		of.Over = e.Err != nil || e.Judged == 0 || of.test.Fixed && of.next >= of.test.N
	}
}

// covered says what the time was spent on.
func (s *spending) covered() *report.Covered {
	c := &report.Covered{Rounds: s.round, Cells: len(s.met)}
	for _, of := range s.tests {
		if of.Told() > 0 {
			c.Tests++
		}
	}
	if len(s.met) > 0 {
		c.Least = slices.Min(slices.Collect(maps.Values(s.met)))
	}
	return c
}
