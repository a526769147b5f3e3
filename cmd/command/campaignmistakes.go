package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

// testPlace is where a test of a file stands.
type testPlace struct {
	Line    int  `json:"line"`
	OneFlow bool `json:"oneflow,omitempty"` // it may call what PyTorch lacks
}

// beyondReference begins the reason of a case that the reference does not support.
const beyondReference = "the reference does not support this program: "

// mistakes are those in the tests of a campaign, as plumb run tells them: what is wrong with
// a test, that it was given up since nearly all draws were rejected, and that the reference
// supports none of its cases.
func mistakes(db *store.Store, books *ledger.Ledger, c *store.Campaign) ([]store.Mistake, error) {
	s, err := decodeSpec(c.Spec)
	if err != nil {
		return nil, err
	}
	wrong, givenUp := books.Stuck()
	if err := whyRejected(db, c.ID, givenUp); err != nil {
		return nil, err
	}
	lacking, err := s.beyond(db, c.ID)
	if err != nil {
		return nil, err
	}
	wrong = slices.Concat(wrong, givenUp, lacking)
	for i, m := range wrong {
		if at, ok := s.Places[m.Test]; ok {
			wrong[i].Text = fmt.Sprintf("%s:%d:1: %s", fileOf(m.Test), at.Line, m.Text)
		}
	}
	return wrong, nil
}

// whyRejected adds to tests that were given up why their draws were rejected most often.
func whyRejected(db *store.Store, run int64, givenUp []store.Mistake) error {
	var tests []string
	for _, m := range givenUp {
		tests = append(tests, m.Test)
	}
	told := map[string]bool{}
	return db.Reasons(run, string(verdict.Rejected), tests, func(test, reason string, _ int) error {
		if told[test] {
			return nil
		}
		told[test] = true
		for i := range givenUp {
			if givenUp[i].Test == test {
				givenUp[i].Text += "; most often: " + reason
			}
		}
		return nil
	})
}

// beyond are the tests of files of which the reference supports no case, unless they may
// call what OneFlow alone has.
func (s *spec) beyond(db *store.Store, run int64) (wrong []store.Mistake, err error) {
	cases, supported := map[string]int{}, map[string]bool{}
	err = db.Totals(store.ByTest, run, func(t *store.Total) error {
		cases[t.Name] += t.Cases
		supported[t.Name] = supported[t.Name] || t.Word != string(verdict.Unsupported)
		return nil
	})
	tests := slices.DeleteFunc(slices.Sorted(maps.Keys(cases)), func(test string) bool {
		at, ofFile := s.Places[test]
		return !ofFile || at.OneFlow || supported[test]
	})
	if err != nil {
		return nil, err
	}
	lacks, times := map[string]string{}, map[string]int{} // of each, the most frequent reason
	err = db.Reasons(run, string(verdict.Unsupported), tests, func(test, reason string, n int) error {
		if what, ok := strings.CutPrefix(reason, beyondReference); ok {
			if times[test] += n; lacks[test] == "" {
				lacks[test] = what
			}
		}
		return nil
	})
	for _, test := range tests {
		if times[test] == cases[test] {
			wrong = append(wrong, store.Mistake{Test: test, Text: fmt.Sprintf("%s: the reference supports none of the %d cases: %s", test, cases[test]/len(s.Candidates), lacks[test])})
		}
	}
	return wrong, err
}
