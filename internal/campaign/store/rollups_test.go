package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/internal/campaign/report"
)

// rollupRows are the rows of the tables of roll-ups, which Check has not.
func rollupRows(t *testing.T, s *Store) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for table, columns := range map[string]string{"latest": "kind || ' ' || name || ' ' || subject || ' ' || run", "spans": "finding || ' ' || first || ' ' || last || ' ' || runs || ' ' || cases"} {
		rows, err := s.conn.QueryContext(context.Background(), `SELECT `+columns+` FROM `+table+` ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var one string
			if err := rows.Scan(&one); err != nil {
				t.Fatal(err)
			}
			all[table] = append(all[table], one)
		}
	}
	return all
}

// rolledUp are the rows that a migration makes from what they sum up.
func rolledUp(t *testing.T, s *Store) map[string][]string {
	t.Helper()
	for _, text := range append([]string{`DELETE FROM progress`, `DELETE FROM latest`, `DELETE FROM spans`}, rollUp...) {
		if _, err := s.conn.ExecContext(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
	return rollupRows(t, s)
}

// sighted writes runs with the tests and the findings that each has.
func sighted(t *testing.T, s *Store, runs ...[]string) {
	t.Helper()
	for i, names := range runs {
		r := exampleRun()
		r.Recording, r.Started = nil, started.Add(time.Duration(i)*time.Hour)
		w, err := s.Begin(r)
		for _, name := range names {
			c := result(0, name, report.Failed, "misaligned")
			c.Text = "x"
			if err == nil {
				err = w.Add(c)
			}
			if err == nil {
				err = w.Sight(&Sighting{Subject: "native", Operator: name, What: name, Test: name, Cases: 1})
			}
		}
		if err == nil {
			err = w.End(true, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDelete: a deleted run is gone with all that it had; what is rolled up is of
// the runs that are left, the numbers of runs and findings are given once, and the
// room comes back.
func TestDelete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open2(t, path)
	sighted(t, s, []string{"a"}, []string{"a", "b"}, []string{"b", "c"}, []string{"a", "c"})
	for _, run := range []int64{4, 2} {
		if err := s.Delete(run); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	var found []string
	for _, f := range collect(t, func(each func(*Finding) error) error { return s.Findings(FindingQuery{Most: 10}, each) }) {
		found = append(found, fmt.Sprintf("%d %s: %d-%d, %d runs, %d cases, %s", f.ID, f.What, f.First, f.Last, f.Runs, f.Cases, f.Until.Sub(f.Since)))
	}
	if want := []string{"2 b: 3-3, 1 runs, 1 cases, 0s", "3 c: 3-3, 1 runs, 1 cases, 0s", "1 a: 1-1, 1 runs, 1 cases, 0s"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
	names := map[string]int64{}
	if err := s.Names(ByTest, "", 0, 10, func(name string, last int64) error { names[name] = last; return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"a": 1, "b": 3, "c": 3}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Run("2"); err == nil {
		t.Error("a deleted run is there")
	}
	if f, _, err := s.Finding(1); err != nil || f == nil || f.Last != 1 {
		t.Error(f, err)
	}
	for _, run := range []int64{1, 3} {
		if err := s.Delete(run); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"runs", "cases", "details", "totals", "subjects", "sightings", "progress", "latest", "spans", "digests"} {
		if n, err := s.count(`SELECT count(*) FROM ` + table); err != nil || n > 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
	sighted(t, s, []string{"b"})
	if r, err := s.Run("last"); err != nil || r.ID != 5 {
		t.Error(r, err)
	}
	if f, _, err := s.Finding(2); err != nil || f == nil || f.What != "b" || f.First != 5 {
		t.Error(f, err)
	}
	if got, want := rollupRows(t, s), rolledUp(t, s); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// TestDeleteGoesOn: a run whose deletion was interrupted is gone, and the next one, or
// Vacuum, removes its cases; every table with rows of runs is looked at.
func TestDeleteGoesOn(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := context.Background()
	for _, o := range tables {
		if of := strings.Contains(o.text, "REFERENCES runs") || strings.Contains(o.text, "REFERENCES campaigns"); of && !slices.Contains(slices.Concat(ofRun, ofCases), o.name) {
			t.Errorf("no deletion knows the table %s", o.name)
		}
	}
	sighted(t, s, []string{"a", "b"}, []string{"a"}, []string{"b"})
	for i, over := range []func() error{func() error { return s.Delete(3) }, s.Vacuum} {
		gone := int64(i + 1)
		err := s.unbound(ctx, func() error { return s.transaction(ctx, func(tx *sql.Tx) error { return forget(ctx, tx, gone) }) })
		left, err2 := s.count(`SELECT count(*) FROM cases WHERE run = ?`, gone)
		if err != nil || err2 != nil || left == 0 || s.Check() != nil {
			t.Fatal(left, err, err2, s.Check())
		}
		if _, err := s.Run(fmt.Sprint(gone)); err == nil {
			t.Error("it is there")
		}
		if err := over(); err != nil {
			t.Fatal(err)
		}
		for _, table := range ofCases {
			if n, err := s.count(`SELECT count(*) FROM `+table+` WHERE run = ?`, gone); err != nil || n > 0 {
				t.Errorf("%s has %d rows, %v", table, n, err)
			}
		}
	}
}

// TestDeleteCampaign: a campaign goes with its parts and units.
func TestDeleteCampaign(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	c := &Campaign{Name: "x", Spec: []byte("spec"), Run: Run{Command: "plumb campaign run", Started: started}}
	if err := s.NewCampaign(c, []Part{{Test: "t", Subject: "native", Depends: []byte{1}, Wanted: 7}}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run("last"); err != nil || r.Wanted != 7 || !r.Going() || r.End() != "under way" {
		t.Error(r, err)
	}
	if err := s.Delete(c.ID); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"campaigns", "specs", "parts", "units", "runs"} {
		if n, err := s.count(`SELECT count(*) FROM ` + table); err != nil || n > 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
}

// TestRollups: what is kept while runs are written is what a migration makes of them,
// of a run too that is gone on with after a later one.
func TestRollups(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	sighted(t, s, []string{"a", "b"}, []string{"b"})
	first, err := s.Run("1")
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Resume(first, func(*Case) error { return nil })
	if err == nil {
		err = w.Add(result(1, "b", report.Passed, "aligned"))
	}
	if err == nil {
		err = w.Sight(&Sighting{Subject: "native", Operator: "b", What: "b", Test: "b", Cases: 2})
	}
	if err == nil {
		err = w.Does("making failure 1 of 2 smaller")
	}
	if r, err2 := s.Run("1"); err != nil || err2 != nil || r.Doing != "making failure 1 of 2 smaller" || !r.Going() {
		t.Error(r, err, err2)
	}
	if err := w.End(true, 0); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run("1"); err != nil || r.Doing != "" || r.End() != "with 0" {
		t.Error(r, err)
	}
	if got, want := rollupRows(t, s), rolledUp(t, s); !cmp.Equal(got, want) || len(got["spans"]) != 2 {
		t.Error(cmp.Diff(want, got))
	}
}

// TestKilledRuns: a run whose process is gone is not under way, one that another
// machine writes is until it is silent for long.
func TestKilledRuns(t *testing.T) {
	if thisProcess() == "" {
		t.Skip("the system does not tell of processes")
	}
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	w, err := s.Begin(exampleRun())
	if err != nil {
		t.Fatal(err)
	}
	where, pid, began := bootID(), os.Getpid(), beginning(os.Getpid())
	for process, want := range map[string]string{
		thisProcess(): "under way", "": "under way",
		fmt.Sprintf("%s %d %s0", where, pid, began): "killed", fmt.Sprintf("%s %d %s", where, 1<<22+1, began): "killed",
		fmt.Sprintf("another %d %s0", pid, began): "under way",
	} {
		if _, err := s.conn.ExecContext(context.Background(), `UPDATE runs SET environment = json_set(environment, '$.process', ?)`, process); err != nil {
			t.Fatal(err)
		}
		r, err := s.Run("last")
		if err != nil || r.End() != want || r.Environment[owner] != "" || r.Environment["os"] != exampleRun().Environment["os"] {
			t.Errorf("%q: %s, want %s; %v, %v", process, r.End(), want, r.Environment, err)
		}
	}
	if err := s.own(w.ID); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run("last"); err != nil || !r.Going() {
		t.Error(r, err)
	}
}

// TestFlakes: a test is flaky that ends in two ways in equal runs, and not in runs that
// were told otherwise, or have another reference or subject.
func TestFlakes(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	run := func(outcome report.Outcome, complete bool, change func(*Run)) {
		r := exampleRun()
		r.Recording = nil
		change(r)
		write(t, s, r, complete, result(0, "shaky", outcome, "x"), result(1, "calm", report.Passed, "aligned"))
	}
	same := func(*Run) {}
	run(report.Passed, true, same)
	run(report.Failed, false, same)
	for _, change := range []func(*Run){
		func(r *Run) { r.Args = append(r.Args, "--tolerance", "exact") }, func(r *Run) { r.Subjects[0].Version = "2" },
		func(r *Run) { r.Subjects[1].Version = "2" }, func(r *Run) { r.Seed = 1 }, func(r *Run) { r.Plumb = "v2" },
	} {
		run(report.Failed, true, change)
	}
	flakes := func() []Flake {
		return collect(t, func(each func(*Flake) error) error { return s.Flakes(10, each) })
	}
	if got := flakes(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	run(report.Failed, true, same)
	run(report.Passed, true, same)
	want := []Flake{{Test: "shaky", Subject: "native", Version: "1", Seed: fmt.Sprint(exampleRun().Seed), Runs: 3, Failed: 1, Last: 9}}
	if diff := cmp.Diff(want, flakes()); diff != "" {
		t.Error(diff)
	}
}
