package ledger

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/internal/campaign/bandit"
	"plumb/internal/campaign/store"
)

var spendable = []store.Part{
	{Test: "dull", Subject: "a", Depends: []byte("1"), Most: 20},
	{Test: "gains", Subject: "a", Depends: []byte("2"), Most: 20},
	{Test: "fixed", Subject: "a", Depends: []byte("3"), Wanted: 10, Fixed: true},
	{Test: "wrong", Subject: "a", Depends: []byte("4"), Most: 20},
	{Test: "never", Subject: "b", Depends: []byte("5"), Most: 20},
	{Test: "dull", Subject: "b", Depends: []byte("6"), Most: 20},
}

// spendAll judges a campaign with a budget, by processes that are killed after so many
// rounds, one more each time, and what they had is lost.
func spendAll(t *testing.T, budget Budget, rounds int) (*store.Store, *Ledger) {
	path := filepath.Join(t.TempDir(), "x.db")
	run := begin(t, path, spendable)
	for ; ; rounds++ {
		db, l := opened(t, path, run, 8, budget)
		for range rounds {
			subjects := l.Subjects()
			if len(subjects) == 0 {
				return db, l
			}
			var results []Result
			for _, u := range take(t, l, subjects[0], 4) {
				r := judge(u, "one")
				r.Elapsed = time.Duration(u.Size) * 100 * time.Millisecond
				if u.Test == "gains" {
					for i := range 6 * u.Size {
						r.Traits = append(r.Traits, uint64(6*u.First+i))
					}
				}
				results = append(results, r)
			}
			if err := l.Finish(results); err != nil {
				t.Fatal(err)
			}
		}
		take(t, l, l.parts[0].Subject, 2) // its process is killed now
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCasesAreSpent: each subject has its share to the case, whoever is killed; a test has
// more where its cases gain; what has no more cases is left out.
func TestCasesAreSpent(t *testing.T) {
	for _, rounds := range []int{1, 1000} {
		testSpent(t, rounds)
	}
}

func testSpent(t *testing.T, rounds int) {
	path := filepath.Join(t.TempDir(), "x.db")
	begun, fresh := opened(t, path, begin(t, path, spendable), 8, Budget{Cases: 800})
	if got := fresh.Standing().String(); got != "0 of 800 cases" {
		t.Error(got)
	}
	if err := begun.Close(); err != nil {
		t.Fatal(err)
	}
	db, l := spendAll(t, Budget{Cases: 800}, rounds)
	defer db.Close()
	given, had := map[string]int{}, map[string]int{}
	for _, p := range l.parts {
		given[p.Subject] += p.Next
		had[p.Test+" "+p.Subject] = p.Judged + p.Rejected
	}
	if given["a"] != 400 || given["b"] != 400 || !l.Over() {
		t.Errorf("given: %v, over %v", given, l.Over())
	}
	if had["fixed a"] != 10 || had["never b"] < 20 || had["never b"] > 30 || had["gains a"] <= had["dull a"] || rounds > 1 && had["gains a"] < 3*had["dull a"] || had["dull a"] < 400/(4*4)-8 {
		t.Errorf("%v", had)
	}
	inError, givenUp := l.Stuck()
	if len(inError) != 1 || !strings.Contains(inError[0].Text, "wrong on a: no such operator") || len(givenUp) != 1 || !strings.Contains(givenUp[0].Text, "never on b: the reference rejected") {
		t.Errorf("stuck: %v, %v", inError, givenUp)
	}
	cases, _ := contents(t, db, l.run)
	for key, n := range cases {
		if n != 1 {
			t.Errorf("%s is there %d times", key, n)
		}
	}
}

// TestAheadOfTheClock: what waits is what will be judged, as far as is known.
func TestAheadOfTheClock(t *testing.T) {
	for _, one := range []struct {
		spent         time.Duration
		judged, given int
		want          int
	}{
		{time.Second, 0, 0, firstCases},
		{time.Second, 0, 100, firstCases - 100},
		{time.Hour, 36000, 36000, 600}, // a minute of ten a second
		{time.Hour, 36000, 36500, 100},
		{time.Hour, 36000, 37000, 0},
		{8*time.Hour - 10*time.Second, 8 * 36000, 8 * 36000, 100},
		{8*time.Hour - time.Second, 100, 100, 1},
		{8*time.Hour - time.Second, 100, 101, 0},
	} {
		b := purse{share: Budget{Time: 8 * time.Hour, Clock: true}, spent: one.spent, judged: one.judged}
		b.bandit.Give(&bandit.Arm{}, one.given)
		if got := b.affords(); got != one.want {
			t.Errorf("%+v: %d", one, got)
		}
	}
	if got := (Budget{Time: time.Hour, Clock: true}).Each(4); got.Time != time.Hour || !got.Clock {
		t.Errorf("%+v", got)
	}
}

// TestTimeIsSpent: each subject has its share of the time, up to a round.
func TestTimeIsSpent(t *testing.T) {
	db, l := spendAll(t, Budget{Time: time.Minute}, 3)
	defer db.Close()
	const round = 4 * 8 * 100 * time.Millisecond
	for subject, of := range l.purses {
		if of.spent < 30*time.Second || of.spent > 30*time.Second+round {
			t.Errorf("%s has judged for %v", subject, of.spent)
		}
	}
	if got := l.Standing().String(); !strings.HasSuffix(got, " of 1m0s") || !strings.Contains(got, " cases in 1m") {
		t.Error(got)
	}
	if got := fmt.Sprint(Budget{Cases: 3}.Each(5), Budget{Time: time.Hour}.Each(2)); got != "{0s 1 false} {30m0s 0 false}" {
		t.Error(got)
	}
}
