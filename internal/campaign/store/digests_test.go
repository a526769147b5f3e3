package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"plumb/internal/campaign/report"
)

// TestDiffByDigests: what is not read since its digest is alike changes neither the
// changes nor the counts, whether the cases of tests lie together or are scattered, and
// whether they have all programs in common or few.
func TestDiffByDigests(t *testing.T) {
	for _, as := range []struct{ scattered, few bool }{{}, {scattered: true}, {few: true}, {true, true}} {
		s := open2(t, filepath.Join(t.TempDir(), "s.db"))
		rnd := rand.New(rand.NewPCG(25, 5))
		words := []map[string]string{{}, {}}
		for run := range 2 {
			var cases []Case
			for i := range 2700 {
				test, number := i/300, i%300
				if test == 7+run { // of the other run alone
					continue
				}
				c := result(number, fmt.Sprint("t", test), report.Passed, "aligned")
				c.Subject = []string{"native", "jax"}[number%2]
				if test > 3 && rnd.IntN(20) == 0 {
					c.Outcome, c.Word = report.Failed, "misaligned"
				}
				if test == 3 && number == 5 { // and nothing else of the test
					c.Outcome, c.Word = report.Failed, []string{"misaligned", "crash"}[run]
				}
				c.Program = fmt.Sprintf("%016x", i)
				if as.few && number > 15 {
					c.Program = fmt.Sprintf("%08x%08x", run+1, i)
				}
				words[run][fmt.Sprint(c.Test, c.Name, c.Subject, c.Program)] = c.Word
				cases = append(cases, c)
			}
			if as.scattered {
				rnd.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
			}
			write(t, s, exampleRun(), true, cases...)
		}
		want, wanted := []string{}, Overlap{}
		for at, word := range words[0] {
			switch after, both := words[1][at]; {
			case !both:
				wanted.OnlyBefore++
			case after != word:
				want = append(want, at+" "+word+" "+after)
				wanted.Common++
			default:
				wanted.Common++
			}
		}
		wanted.OnlyAfter = len(words[1]) - wanted.Common
		got := []string{}
		o, err := s.Diff(1, 2, func(c *Change) error {
			got = append(got, fmt.Sprint(c.Test, c.Case, c.Subject, c.Program)+" "+c.Before+" "+c.After)
			return nil
		})
		slices.Sort(want)
		slices.Sort(got)
		most, scattered, err2 := s.spread(1, 2)
		_, few, err3 := s.fewCommon(1, 2)
		if err := errors.Join(err, err2, err3); err != nil || scattered != as.scattered || few != as.few || !most ||
			o != wanted || len(want) < 5 || !slices.Equal(want, got) {
			t.Errorf("%+v (%v, %v): %+v, want %+v; %d changes, want %d; %v", as, scattered, few, o, wanted, len(got), len(want), err)
		}
		if o, err := s.Diff(1, 1, func(c *Change) error { return fmt.Errorf("%+v", c) }); err != nil || o != (Overlap{Common: len(words[0])}) {
			t.Errorf("a run and itself: %+v, %v", o, err)
		}
	}
}
