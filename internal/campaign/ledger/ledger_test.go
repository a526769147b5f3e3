package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// world is what the cases of a campaign are: some draws are rejected, one test is
// wrong from a case on, another is never accepted.
func world(test string, index int) (word string, mistake bool) {
	switch {
	case test == "wrong" && index >= 37:
		return "", true
	case test == "never", index%7 == 3:
		return "rejected", false
	case index%11 == 5:
		return "misaligned", false
	}
	return "aligned", false
}

// judge judges a unit.
func judge(u Unit, worker string) Result {
	r := Result{Unit: u.N, Worker: worker}
	for i := u.First; i < u.First+u.Size; i++ {
		word, mistake := world(u.Test, i)
		if mistake {
			r.Error = "no such operator"
			return r
		}
		if word == "rejected" {
			r.Rejected++
		} else {
			r.Judged++
		}
		r.Cases = append(r.Cases, store.Case{Test: u.Test, Number: i, Subject: u.Subject, Word: word, Outcome: report.Passed})
	}
	return r
}

// take takes units of a subject.
func take(t *testing.T, l *Ledger, subject string, most int) []Unit {
	t.Helper()
	units, err := l.Take(subject, most)
	if err != nil {
		t.Error(err)
	}
	return units
}

var parts = []store.Part{
	{Test: "usual", Subject: "a", Depends: []byte("1"), Wanted: 100, Most: 2000},
	{Test: "usual", Subject: "b", Depends: []byte("2"), Wanted: 100, Most: 2000},
	{Test: "fixed", Subject: "a", Depends: []byte("3"), Wanted: 50, Fixed: true},
	{Test: "wrong", Subject: "a", Depends: []byte("4"), Wanted: 100, Most: 2000},
	{Test: "never", Subject: "b", Depends: []byte("5"), Wanted: 5, Most: 100},
}

// begin makes a campaign in a new store.
func begin(t *testing.T, path string, parts []store.Part) int64 {
	t.Helper()
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &store.Campaign{Name: "x", Spec: make([]byte, 1<<20)}
	if err := db.NewCampaign(c, slices.Clone(parts)); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// opened opens the books of a campaign, as a process does that goes on with it.
func opened(t *testing.T, path string, run int64, size int, budget Budget) (*store.Store, *Ledger) {
	t.Helper()
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Campaign(fmt.Sprint(run))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(db, c, size, budget)
	if err != nil {
		t.Fatal(err)
	}
	return db, l
}

// contents are the cases of a run, each with how often it is there, and the counts.
func contents(t *testing.T, db *store.Store, run int64) (map[string]int, map[string]int) {
	t.Helper()
	cases, words := map[string]int{}, map[string]int{}
	if err := db.Cases(run, func(c *store.Case) error {
		cases[fmt.Sprint(c.Subject, " ", c.Test, " ", c.Number, " ", c.Word)]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Words(run, func(subject, word string, n int) error { words[subject+" "+word] += n; return nil }); err != nil {
		t.Fatal(err)
	}
	return cases, words
}

// undisturbed runs a campaign from beginning to end.
func undisturbed(t *testing.T, path string, run int64) (cases, words map[string]int) {
	t.Helper()
	db, l := opened(t, path, run, 8, Budget{})
	defer db.Close()
	for subjects := l.Subjects(); len(subjects) > 0; subjects = l.Subjects() {
		for _, u := range take(t, l, subjects[0], 3) {
			if err := l.Finish([]Result{judge(u, "one")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return contents(t, db, run)
}

// TestEachCaseOnce: whatever becomes of the processes, and however late and often
// results come, each case is in the store once, and the counts are those of the
// undisturbed campaign.
func TestEachCaseOnce(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.db")
	wantCases, wantWords := undisturbed(t, plain, begin(t, plain, parts))
	if n := wantWords["a aligned"]; n < 100 || wantWords["b rejected"] < 100 {
		t.Fatal(wantWords)
	}
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 25))
		path := filepath.Join(dir, fmt.Sprint(seed, ".db"))
		run := begin(t, path, parts)
		var kept []Result // results that come again
		deaths := 0
		for over := false; !over; deaths++ {
			db, l := opened(t, path, run, 8, Budget{})
			for range rnd.IntN(30) { // then the process is killed
				subjects := l.Subjects()
				if over = l.Over(); over {
					break
				}
				var results []Result
				if len(kept) > 0 && rnd.IntN(2) == 0 {
					results = append(results, kept[rnd.IntN(len(kept))])
				}
				if len(subjects) > 0 {
					units := take(t, l, subjects[rnd.IntN(len(subjects))], 1+rnd.IntN(4))
					for _, u := range units {
						r := judge(u, fmt.Sprint(rnd.IntN(3)))
						kept = append(kept, r)
						if rnd.IntN(3) > 0 {
							results = append(results, r, r)
						}
					}
					if rnd.IntN(4) == 0 {
						l.Return(units)
					}
				}
				if err := l.Finish(results); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		db, _ := opened(t, path, run, 8, Budget{})
		cases, words := contents(t, db, run)
		if !maps.Equal(cases, wantCases) || !maps.Equal(words, wantWords) {
			t.Errorf("seed %d, %d deaths: %v, want %v", seed, deaths, words, wantWords)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIncremental: what depends on what has changed is judged again, and nothing else.
func TestIncremental(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	want, _ := undisturbed(t, path, begin(t, path, parts))
	changed := slices.Clone(parts)
	changed[0].Depends = []byte("changed")
	changed[1].Wanted = 200
	run := begin(t, path, changed)
	db, l := opened(t, path, run, 8, Budget{})
	defer db.Close()
	taken, err := l.Reuse()
	if err != nil {
		t.Fatal(err)
	}
	cases, _ := contents(t, db, run)
	for key, n := range cases {
		if n != 1 || want[key] != 1 {
			t.Errorf("%s is there %d times, before %d", key, n, want[key])
		}
	}
	left := map[string]int{}
	for _, s := range l.Subjects() {
		for _, u := range take(t, l, s, 1000) {
			left[u.Test+" "+u.Subject] += u.Size
		}
	}
	if taken < 270 || left["usual a"] != 100 || left["fixed a"] != 0 || left["never b"] != 0 || left["usual b"] == 0 || left["usual b"] > 130 {
		t.Error(taken, left)
	}
}

// TestWrongResultsAreRefused: a result that cannot be of its unit changes nothing.
func TestWrongResultsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	run := begin(t, path, parts)
	db, l := opened(t, path, run, 8, Budget{})
	defer db.Close()
	u := take(t, l, "a", 1)[0]
	right := judge(u, "w")
	for name, spoil := range map[string]func(*Result){
		"another test":    func(r *Result) { r.Cases[0].Test = "fixed" },
		"another subject": func(r *Result) { r.Cases[0].Subject = "b" },
		"another case":    func(r *Result) { r.Cases[0].Number += 100 },
		"too few":         func(r *Result) { r.Judged-- },
		"too many":        func(r *Result) { r.Judged++ },
		"negative":        func(r *Result) { r.Judged, r.Rejected = -1, u.Size+1 },
	} {
		r := right
		r.Cases = slices.Clone(right.Cases)
		spoil(&r)
		var wrong *WrongError
		if err := l.Finish([]Result{r}); !errors.As(err, &wrong) || wrong.Worker != "w" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if cases, _ := contents(t, db, run); len(cases) != 0 {
		t.Error(cases)
	}
	if err := l.Finish([]Result{right}); err != nil {
		t.Error(err)
	}
}
