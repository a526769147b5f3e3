package store

import (
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumb/internal/campaign/report"
)

// file1 makes a file of version 1 with two runs.
func file1(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "old.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := `INSERT INTO runs VALUES (%d, '2026-11-22T01:02:03Z', 1500, %d, 'config.py', 'c0', 'b0', 'native', '1', 'torch', '1.13.1', '{}', '18446744073709551615', 'dev', 9, 9, 9, 9, 9, 9, 9)`
	for _, text := range []string{
		tables1[0].text, tables1[1].text, fmt.Sprintf(`PRAGMA application_id = %d`, application), `PRAGMA user_version = 1`,
		fmt.Sprintf(run, 3, 1), fmt.Sprintf(run, 7, 0),
		`INSERT INTO results VALUES (3, 'a::relu_1', '', 1, 'relu', 'float32 int64', 'passed', 'aligned', '', '', 2, 1, 0.5, 'grad x', 3000)`,
		`INSERT INTO results VALUES (3, 'a::relu_0', '', 0, 'relu', '', 'skipped', '', '', '', 0, 0, NULL, '', NULL)`,
		`INSERT INTO results VALUES (3, 'a::relu_1', 'inplace', 1, 'relu', 'float32', 'failed', 'misaligned', 'wrong', 'passes', 1, 0, 9e999, 'value', 5)`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestMigration: a file of version 1 is read with all that it holds, whoever opens it first.
func TestMigration(t *testing.T) {
	for name, open := range map[string]func(string) (*Store, error){"read": Read, "write": Open} {
		s, err := open(file1(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer s.Close()
		runs := collect(t, s.Runs)
		want := Run{
			ID: 3, Command: "plumb conform run", Started: started, Ended: started.Add(1500 * time.Millisecond), Written: started.Add(1500 * time.Millisecond), Elapsed: 1.5, Complete: true, Seed: math.MaxUint64, Plumb: "dev",
			Subjects: []Subject{{"torch", "1.13.1"}, {"native", "1"}}, Recording: &Recording{Config: "config.py", ConfigSHA256: "c0", Baseline: "b0", Flags: "{}", Functions: 1, Implemented: 1},
			Counts: Counts{Passed: 1, Failed: 1, Skipped: 1},
		}
		if diff := cmp.Diff(want, runs[0], cmpopts.EquateEmpty()); diff != "" || len(runs) != 2 || runs[1].ID != 7 || runs[1].Complete || !runs[1].Ended.IsZero() {
			t.Errorf("%s: %+v; -want +got:\n%s", name, runs, diff)
		}
		cases := results(t, s, 3)
		wanted := []Case{
			{Test: "relu", Name: "a::relu_0", Subject: "native", Outcome: report.Skipped, Worst: math.NaN(), Operators: []string{"relu"}},
			{Test: "relu", Name: "a::relu_1", Number: 1, Subject: "native", Outcome: report.Passed, Word: "aligned", DTypes: "float32 int64", Compared: 2, Drawn: 1, Worst: 0.5, WorstAt: "grad x", Elapsed: 3 * time.Millisecond, Operators: []string{"relu"}},
			{Test: "relu", Name: "a::relu_1", Variant: "inplace", Number: 1, Subject: "native", Outcome: report.Failed, Word: "misaligned", Reason: "wrong", Lenient: "passes", DTypes: "float32", Compared: 1, Worst: math.Inf(1), WorstAt: "value", Elapsed: 5 * time.Microsecond, Operators: []string{"relu"}},
		}
		if diff := cmp.Diff(wanted, cases, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Case{}, "N")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestMigrationIsWhole: a file that cannot be migrated stays as it was.
func TestMigrationIsWhole(t *testing.T) {
	path := file1(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE runs SET seed = 'x' WHERE id = 7`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if s, err := Read(path); err == nil {
			s.Close()
			t.Fatal("a seed that is no number is read")
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(before) != string(after) {
		t.Errorf("the file has changed, or %v", err)
	}
}

// TestTotals holds the totals, which are kept while writing, to a count of the cases.
func TestTotals(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	for range 2 {
		var cases []Case
		for i := range 2*batchCases + 100 {
			c := result(i, []string{"relu", "add", "mul"}[i%3], outcomes[i%5], []string{"aligned", "known", "crash"}[i%7%3])
			c.Subject, c.Worst = []string{"native", "jax"}[i%2], float64(i%11)
			if i%11 == 5 {
				c.Worst = math.NaN()
			}
			cases = append(cases, c)
		}
		write(t, s, exampleRun(), true, cases...)
	}
	for kind, column := range map[Kind]string{ByTest: "test", ByOperator: "operator"} {
		differ, err := s.count(`WITH counted AS (SELECT run, `+column+` AS name, subject, outcome, verdict, count(*) AS cases, max(worst) AS worst,
				sum(elapsed_us) AS elapsed_us, sum(reference_us) AS reference_us FROM cases GROUP BY 1, 2, 3, 4, 5),
			kept AS (SELECT run, name, subject, outcome, verdict, cases, worst, elapsed_us, reference_us FROM totals WHERE kind = ?)
			SELECT count(*) FROM (SELECT * FROM (SELECT * FROM counted EXCEPT SELECT * FROM kept) UNION ALL SELECT * FROM (SELECT * FROM kept EXCEPT SELECT * FROM counted))`, int(kind))
		rows, err2 := s.count(`SELECT count(*) FROM totals WHERE kind = ?`, int(kind))
		if err != nil || err2 != nil || differ > 0 || rows < 100 {
			t.Errorf("%s: %d of %d totals differ, %v, %v", column, differ, rows, err, err2)
		}
	}
	for _, kind := range []Kind{BySubject, ByDType} {
		if n, err := s.count(`SELECT sum(cases) FROM totals WHERE kind = ?`, int(kind)); err != nil || n != 2*(2*batchCases+100) {
			t.Errorf("kind %d: %d cases, %v", kind, n, err)
		}
	}
}

// TestFindings: a finding is one over all runs, with the versions in which it was seen.
func TestFindings(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	sighting := Sighting{Subject: "native", Operator: "relu", What: "misaligned value of relu (float)", Test: "t", Cases: 3, Reason: "r", Program: "x", Bundle: "b", Proof: "reproduced 3/3"}
	for _, version := range []string{"1", "2", "2"} {
		r := exampleRun()
		r.Subjects = r.Subjects[:1]
		w, err := s.Begin(r)
		if err == nil {
			err = w.Subjects([]Subject{{"torch", "1.13.1"}, {"native", version}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if version == "2" {
			other := sighting
			other.What = "crash"
			err = w.Sight(&other)
		}
		if err := w.Sight(&sighting); err != nil || w.End(true, 1) != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	found := collect(t, func(each func(*Finding) error) error { return s.Findings(FindingQuery{Most: 10}, each) })
	want := []Finding{
		{ID: 1, Subject: "native", Operator: "relu", What: sighting.What, Runs: 3, Cases: 9, First: 1, Last: 3, Since: started, Until: started, Versions: []string{"1", "2"}},
		{ID: 2, Subject: "native", Operator: "relu", What: "crash", Runs: 2, Cases: 6, First: 2, Last: 3, Since: started, Until: started, Versions: []string{"2"}},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	one, seen, err := s.Finding(2)
	if err != nil || one.What != "crash" || len(seen) != 2 || seen[0].Run != 3 {
		t.Errorf("%+v, %+v, %v", one, seen, err)
	}
	sighting.Finding, sighting.Run = 1, 2
	of := collect(t, func(each func(*Sighting) error) error { return s.Sightings(2, each) })
	if diff := cmp.Diff(sighting, of[0]); diff != "" || len(of) != 2 {
		t.Errorf("%d; -want +got:\n%s", len(of), diff)
	}
}

// TestSizeOfACase: an aligned case takes at most 200 bytes of the file.
func TestSizeOfACase(t *testing.T) {
	const n = 20_000
	path := filepath.Join(t.TempDir(), "s.db")
	s := open2(t, path)
	if err := fillUp(s, n); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if size := info.Size() / n; size > 200 {
		t.Errorf("%d bytes a case", size)
	}
}

// fillUp writes a run of aligned cases as runs of operators have them.
func fillUp(s *Store, n int) error {
	w, err := s.Begin(exampleRun())
	for i := 0; i < n && err == nil; i++ {
		op := fmt.Sprintf("operator%d", i/20%400)
		err = w.Add(Case{
			Test: "ops::" + op + "[float32]", Number: i % 20, Program: fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15), Subject: "native", Mode: "eager, graph",
			Operators: []string{op}, DTypes: "float32", Outcome: report.Passed, Word: "aligned", Compared: 3, Worst: float64(i%1000) / 1001, WorstAt: "grad x",
			Elapsed: time.Duration(i%5000) * time.Microsecond, Reference: time.Duration(i%3000) * time.Microsecond,
		})
	}
	if err != nil {
		return err
	}
	return w.End(true, 0)
}

// BenchmarkWrite writes cases one by one, as a run does.
func BenchmarkWrite(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s.db")
	s, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ResetTimer()
	if err := fillUp(s, b.N); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if info, err := os.Stat(path); err == nil {
		b.ReportMetric(float64(info.Size())/float64(b.N), "bytes/row")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkDiff compares two runs of 100,000 cases.
func BenchmarkDiff(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "s.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := fillUp(s, 100_000); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Diff(1, 2, func(*Change) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
