package command

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/draw/choice"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
)

// spending spends a time, or a number of cases, as a bandit does: each test has a case,
// then rounds go to the tests whose last cases gained most, for each case that they had.
// What is spent follows from the cases alone, so that a seed replays it.
type spending struct {
	time  time.Duration // 0 for no bound
	cases int           // 0 for no bound
	tests []*spent
	by    map[string]*spent
	met   map[report.Cell]int // cases
	had   map[uint64]bool     // traits
	seen  map[shrink.Signature]bool
	given int // cases that rounds have
	round int

	shared *atomic.Bool // cases share programs
}

// spent is what a test had.
type spent struct {
	test  campaign.Test
	next  int // index
	cases int
	gain  float64 // of a case, the later the more it counts
	over  bool    // it has no more cases, or is in error
}

// errTimeUp ends a run whose time is spent.
var errTimeUp = errors.New("the time is spent")

// Gains: new traits of a case (operator × dtype × layout, arguments by buckets) up to
// mostTraits, another way of failing, and how near to its limit it came, up to 1.
const (
	mostTraits = 6
	newFailure = 6
)

// roundCases is how many cases a test has in a round after its first: with two, planted
// faults were found later than where they are spent evenly (plumb bench budget).
const roundCases = 1

// A round has a quarter of the tests, so that those after it know what it met; few
// tests have no rounds of one or two.
const (
	roundShare = 4
	roundLeast = 8
)

// floorShare is the part of an even share that every test has in any case: 1 of so many.
const floorShare = 4

// flag is how much there is to spend.
func (s *spending) flag(fl *pflag.FlagSet) {
	v := &limited[spending]{to: s, kind: "duration|cases", want: "a positive duration such as 30m, or a number of cases"}
	v.parse = func(text string) (spending, bool) {
		if n, err := strconv.Atoi(text); err == nil {
			return spending{cases: n}, n > 0
		}
		d, err := time.ParseDuration(text)
		return spending{time: d}, err == nil && d > 0
	}
	fl.Var(v, "for", "go on for this time (30m), or for so many cases in all (50000), instead of a number for each test: each has one, then those have more whose last cases met what none had met, failed in another way, or came near their limits")
}

// is reports whether anything is to be spent.
func (s *spending) is() bool { return s.time > 0 || s.cases > 0 }

// first returns the tests with one case each.
func (s *spending) first(tests []campaign.Test) []campaign.Test {
	s.by, s.met, s.had, s.seen = map[string]*spent{}, map[report.Cell]int{}, map[uint64]bool{}, map[shrink.Signature]bool{}
	for _, t := range tests {
		of := &spent{test: t}
		s.tests, s.by[t.Name] = append(s.tests, of), of
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
		if s.cases > 0 {
			t.N = min(t.N, s.cases-s.given)
		}
		if t.N > 0 {
			s.given += t.N
			out = append(out, t)
		}
	}
	return out
}

// more returns the next cases of the tests that are worth most.
func (s *spending) more() []campaign.Test {
	left := slices.DeleteFunc(slices.Clone(s.tests), func(of *spent) bool { return of.over })
	floor := s.given / (floorShare * max(len(s.tests), 1))
	slices.SortStableFunc(left, func(a, b *spent) int {
		return cmp.Or(-cmp.Compare(a.worth(floor), b.worth(floor)), cmp.Compare(a.cases, b.cases))
	})
	return s.next(left[:min(len(left), max(len(left)/roundShare, roundLeast))], s.roundCases())
}

// roundCases is how many cases a test has in a round: where compiling is dear, as many as
// share a program.
func (s *spending) roundCases() int {
	if s.shared != nil && s.shared.Load() {
		return choice.Cases{Few: true}.Sharing()
	}
	return roundCases
}

// worth is the gain that another case may be expected to have: a test that has less
// than the floor goes first.
func (of *spent) worth(floor int) float64 {
	if of.cases < floor {
		return float64(mostTraits + newFailure + floor - of.cases)
	}
	return (1 + of.gain) / float64(max(of.cases, 1))
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
	gain := 0.0
	if r.Verdict.Word.IsFinding() {
		if sign := shrink.SignatureOf(r); !s.seen[sign] {
			s.seen[sign] = true
			gain = newFailure
		}
	}
	s.gains(of, report.Traits(r.Program), worst, gain)
}

// gains counts a case of a test.
func (s *spending) gains(of *spent, traits []uint64, worst, gain float64) {
	fresh := 0
	for _, t := range traits {
		if !s.had[t] {
			s.had[t] = true
			fresh++
		}
	}
	if gain += float64(min(fresh, mostTraits)); worst > 0 {
		gain += min(worst, 1)
	}
	if of.cases++; of.cases == 1 {
		of.gain = gain
	}
	of.gain = (of.gain + gain) / 2
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
