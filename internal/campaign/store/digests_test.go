package store

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"plumb/internal/campaign/report"
)

// TestDiffByDigests: what is not read since its digest is alike changes neither the
// changes nor the counts, whether the cases of tests lie together or are scattered.
func TestDiffByDigests(t *testing.T) {
	for _, scattered := range []bool{false, true} {
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
				words[run][fmt.Sprint(c.Test, c.Name, c.Subject)] = c.Word
				cases = append(cases, c)
			}
			if scattered {
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
			got = append(got, fmt.Sprint(c.Test, c.Case, c.Subject)+" "+c.Before+" "+c.After)
			return nil
		})
		slices.Sort(want)
		slices.Sort(got)
		if is, err2 := s.scattered(1, 2); err != nil || err2 != nil || is != scattered || o != wanted || len(want) < 10 || !slices.Equal(want, got) {
			t.Errorf("scattered %v (%v): %+v, want %+v; %d changes, want %d; %v, %v", scattered, is, o, wanted, len(got), len(want), err, err2)
		}
		if o, err := s.Diff(1, 1, func(c *Change) error { return fmt.Errorf("%+v", c) }); err != nil || o != (Overlap{Common: len(words[0])}) {
			t.Errorf("a run and itself: %+v, %v", o, err)
		}
	}
}
