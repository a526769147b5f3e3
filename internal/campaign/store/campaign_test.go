package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/internal/campaign/report"
)

// oneUnit is a store with a campaign of which one unit is done.
func oneUnit(t *testing.T) (*Store, *Campaign) {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := &Campaign{Name: "x", Spec: []byte(strings.Repeat("spec", 1<<18)), Run: Run{Command: "plumb campaign run", Started: time.Now()}}
	if err := s.NewCampaign(c, []Part{{Test: "t", Subject: "a", Depends: []byte("d"), Wanted: 4, Most: 80}}); err != nil {
		t.Fatal(err)
	}
	w := s.Join(c)
	u := Unit{N: 0, Size: 2}
	part := Part{Test: "t", Subject: "a", Next: 2}
	if err := w.Commit(nil, []Part{part}, []Unit{u, {N: 1, First: 2, Size: 2}}); err != nil {
		t.Fatal(err)
	}
	part.Judged = 2
	done := Done{Unit: u, Judged: 2, Worker: "w", Cases: []Case{
		{Test: "t", Subject: "a", Outcome: report.Passed, Word: "aligned"}, {Test: "t", Number: 1, Subject: "a", Outcome: report.Failed, Word: "misaligned", Text: "p"},
	}}
	if err := w.Commit([]Done{done}, []Part{part}, nil); err != nil {
		t.Fatal(err)
	}
	// A second time is refused, with all that came with it.
	other := Done{Unit: Unit{N: 1, First: 2, Size: 2}, Cases: []Case{{Test: "t", Number: 2, Subject: "a", Outcome: report.Passed, Word: "new"}}}
	if err := w.Commit([]Done{other, done}, nil, nil); err == nil || !strings.Contains(err.Error(), ErrDone.Error()) {
		t.Fatal(err)
	}
	return s, c
}

// TestUnitsAreWrittenOnce: with their cases, or not at all; the writer goes on after a
// refusal.
func TestUnitsAreWrittenOnce(t *testing.T) {
	s, c := oneUnit(t)
	got, err := s.Campaign("x")
	if err != nil || string(got.Spec) != string(c.Spec) || got.Passed != 1 || got.Failed != 1 {
		t.Fatal(got, err)
	}
	cases, err := s.UnitCases(c.ID, 0)
	if err != nil || len(cases) != 2 || cases[1].Text != "p" {
		t.Error(cases, err)
	}
	waiting, err := s.Waiting(c.ID)
	if err != nil || len(waiting) != 1 || waiting[0].N != 1 {
		t.Error(waiting, err)
	}
	w := s.Join(c)
	if err := w.Commit([]Done{{Unit: waiting[0], Cases: []Case{{Test: "t", Number: 2, Subject: "a", Outcome: report.Passed, Word: "new"}}}}, nil, nil); err != nil {
		t.Error(err)
	}
	words := map[string]int{}
	if err := s.Words(c.ID, func(_, word string, n int) error { words[word] += n; return nil }); err != nil || words["new"] != 1 || words["aligned"] != 1 {
		t.Error(words, err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestClockGoesBack: a campaign whose clock goes back by an hour is under way while it
// writes, loses nothing, ends, and its times are none below zero.
func TestClockGoesBack(t *testing.T) {
	s, c := oneUnit(t)
	w := s.Join(c)
	now = func() time.Time { return time.Now().Round(0).Add(-time.Hour) } // as a clock that was set is
	defer func() { now = time.Now }()
	if r, err := s.Run("last"); err != nil || r.Going() { // not since it writes no more, as far as is known
		t.Error(r, err)
	}
	if err := w.Commit([]Done{{Unit: Unit{N: 1, First: 2, Size: 2}, Judged: 2, Cases: []Case{{Test: "t", Number: 2, Subject: "a", Outcome: report.Passed, Word: "aligned"}}}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run("last"); err != nil || !r.Going() {
		t.Error(r, err)
	}
	if err := w.End(true, 0); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run("last"); err != nil || r.Passed != 2 || !r.Complete || r.End() != "with 0" || r.Elapsed < 0 || r.Elapsed > 60 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestCheckFindsWhatIsWrong: a lost case, and a count that is another's.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	for _, spoil := range []struct{ text, want string }{
		{`DELETE FROM cases WHERE n = 1`, "run 1 counts 2 cases and has 1"},
		{`UPDATE units SET cases = 5 WHERE n = 0`, "the units of campaign 1 have 5 cases, and it has 2"},
		{`PRAGMA foreign_keys = 0; UPDATE cases SET subject = 999`, "run 1 has 2 cases, and names for 0"},
	} {
		s, _ := oneUnit(t)
		for text := range strings.SplitSeq(spoil.text, ";") {
			if _, err := s.conn.ExecContext(context.Background(), text); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), spoil.want) {
			t.Errorf("%s: %v", spoil.text, err)
		}
		if err := s.Vacuum(); err != nil {
			t.Error(err)
		}
	}
}

// TestLaterTables: files of versions 2 to 4 keep their runs and findings, and gain
// what is rolled up of them, and campaigns.
func TestLaterTables(t *testing.T) {
	for version, lacks := range map[int][]object{2: slices.Concat(campaignTables, rollupTables, digestTables), 3: slices.Concat(rollupTables, digestTables), 4: digestTables} {
		path := filepath.Join(t.TempDir(), "x.db")
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		sighted(t, s, []string{"a"}, []string{"a", "b"})
		want := rollupRows(t, s)
		texts := []string{fmt.Sprintf(`PRAGMA user_version = %d`, version)}
		for _, o := range slices.Backward(lacks) {
			if strings.HasPrefix(o.text, "CREATE TABLE") {
				texts = append(texts, `DROP TABLE `+o.name)
			}
		}
		for _, text := range texts {
			if _, err := s.conn.ExecContext(context.Background(), text); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(string) (*Store, error){Read, Open} {
			s, err := open(path)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := s.Run("last"); err != nil || r.Failed != 2 || r.End() != "with 1" {
				t.Error(r, err)
			}
			if got := rollupRows(t, s); !cmp.Equal(got, want) {
				t.Error(version, cmp.Diff(want, got))
			}
			if o, err := s.Diff(1, 2, func(c *Change) error { return fmt.Errorf("%+v", c) }); err != nil || o != (Overlap{Common: 1, OnlyAfter: 1}) {
				t.Error(version, o, err)
			}
			if _, err := s.Campaign("last"); err == nil || !strings.Contains(err.Error(), "has no campaign") {
				t.Error(err)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
