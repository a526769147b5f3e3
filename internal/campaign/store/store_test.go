package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumb/internal/campaign/report"
)

var started = time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)

func exampleRun() *Run {
	return &Run{
		Command: "plumb conform run", Args: []string{"conform", "run", "--fname", "<b>"}, Started: started, Seed: math.MaxUint64, Plumb: "dev",
		Environment: map[string]string{"os": "linux"},
		Subjects:    []Subject{{"torch", "1.13.1"}, {"native", "1"}},
		Recording:   &Recording{Config: "config.py", ConfigSHA256: "c0", Baseline: "b0", Flags: `{"forward":true}`},
	}
}

func result(i int, function string, o report.Outcome, word string) Case {
	return Case{
		Test: function, Name: fmt.Sprintf("%s_%d", function, i), Number: i, Subject: "native", Operators: []string{function}, DTypes: "float32 int64",
		Outcome: o, Word: word, Compared: 2, Worst: 0.5, WorstAt: "grad x", Elapsed: 3 * time.Millisecond, Reference: time.Millisecond,
	}
}

func open2(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func write(t *testing.T, s *Store, r *Run, complete bool, results ...Case) *Writer {
	t.Helper()
	w, err := s.Begin(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range results {
		if err := w.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(complete, 0); err != nil {
		t.Fatal(err)
	}
	return w
}

func collect[T any](t *testing.T, walk func(func(*T) error) error) []T {
	t.Helper()
	var out []T
	if err := walk(func(one *T) error { out = append(out, *one); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func results(t *testing.T, s *Store, run int64) []Case {
	t.Helper()
	return collect(t, func(each func(*Case) error) error { return s.Cases(run, each) })
}

// TestWhatIsWrittenIsRead: a run and its results come back as they were, in the
// order of the baseline, with the counts of a vendor's report.
func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c%20#.db")
	s := open2(t, path)
	want := []Case{
		result(0, "relu", report.Passed, "aligned"), result(1, "relu", report.Failed, "misaligned"), result(2, "nms", report.Unrecorded, "rejected"),
		result(3, "conv", report.Unsupported, "unsupported"), result(4, "conv", report.Skipped, ""), result(10, "add", report.Passed, "known"),
	}
	want[1].Reason, want[1].Lenient, want[1].Worst = "wrong: \x00 <b> '; DROP TABLE runs", "passes", math.Inf(1)
	want[4].Worst, want[4].Elapsed, want[4].Compared = math.NaN(), 0, 0
	inPlace := want[0]
	inPlace.Variant = "inplace"
	want = append(want[:1:1], append([]Case{inPlace}, want[1:]...)...)
	want[2].Program, want[2].Text, want[2].Mode, want[2].Kind = "0123456789abcdef", "x = 1\n", "eager, graph", "value"
	write(t, s, exampleRun(), true, want...)

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	s, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff(want, results(t, s, 1), cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Case{}, "N")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r := exampleRun()
	r.ID, r.Complete, r.Exit = 1, true, new(int)
	r.Counts = Counts{Passed: 3, Failed: 1, Unsupported: 1, Skipped: 1, Unrecorded: 1}
	r.Recording.Functions, r.Recording.Implemented = 3, 2
	runs := collect(t, s.Runs)
	if diff := cmp.Diff([]Run{*r}, runs, cmpopts.IgnoreFields(Run{}, "Process", "Elapsed", "Ended", "Written")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := r.PassRate(); got != 0.75 || r.Cases() != 7 {
		t.Errorf("pass rate %g of %d cases, want 0.75 of 7", got, r.Cases())
	}
	if _, err := s.Begin(exampleRun()); err == nil {
		t.Error("a file that is read can be written")
	}
}

// TestRunsByName asks for runs that are there and for such as are not.
func TestRunsByName(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	if _, err := s.Run("last"); err == nil || !strings.Contains(err.Error(), "has no runs") {
		t.Error(err)
	}
	write(t, s, exampleRun(), true)
	write(t, s, exampleRun(), true)
	for name, want := range map[string]int64{"1": 1, "2": 2, "last": 2} {
		if r, err := s.Run(name); err != nil || r.ID != want {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	for name, want := range map[string]string{"3": "has no run 3", "first": `run "first": want its number, or last`} {
		if _, err := s.Run(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDiff compares two runs.
func TestDiff(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	inPlace := result(0, "a", report.Passed, "known")
	inPlace.Variant = "inplace"
	write(t, s, exampleRun(), true,
		result(0, "a", report.Passed, "aligned"), inPlace, result(1, "a", report.Failed, "misaligned"), result(2, "a", report.Failed, "misaligned"),
		result(3, "a", report.Passed, "aligned"), result(4, "a", report.Unsupported, "unsupported"), result(5, "a", report.Passed, "aligned"), result(6, "a", report.Passed, "aligned"))
	write(t, s, exampleRun(), true,
		result(0, "a", report.Passed, "aligned"), inPlace, result(1, "a", report.Passed, "aligned"), result(2, "a", report.Failed, "crash"),
		result(3, "a", report.Failed, "timeout"), result(4, "a", report.Failed, "misaligned"), result(5, "a", report.Skipped, ""), result(7, "a", report.Passed, "aligned"), result(8, "a", report.Passed, "aligned"))
	got := collect(t, func(each func(*Change) error) error {
		o, err := s.Diff(1, 2, each)
		if o != (Overlap{Common: 7, OnlyBefore: 1, OnlyAfter: 2}) {
			t.Error(o)
		}
		return err
	})
	want := []Change{
		{Test: "a", Subject: "native", Case: "a_3", Number: 3, Kind: NewlyFailing, Before: "aligned", After: "timeout"},
		{Test: "a", Subject: "native", Case: "a_4", Number: 4, Kind: NewlyFailing, Before: "unsupported", After: "misaligned"},
		{Test: "a", Subject: "native", Case: "a_5", Number: 5, Kind: NoLongerJudged, Before: "aligned", After: "skipped"},
		{Test: "a", Subject: "native", Case: "a_1", Number: 1, Kind: NewlyPassing, Before: "misaligned", After: "aligned"},
		{Test: "a", Subject: "native", Case: "a_2", Number: 2, Kind: Changed, Before: "misaligned", After: "crash"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if o, err := s.Diff(1, 99, func(*Change) error { return nil }); err != nil || o != (Overlap{OnlyBefore: 8}) {
		t.Error(o, err)
	}
}

// TestUnfinished: a run goes on only as the same one.
func TestUnfinished(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	write(t, s, exampleRun(), true, result(0, "a", report.Passed, "aligned"))
	if r, err := s.Unfinished(exampleRun()); err != nil || r != nil {
		t.Fatalf("%v, %v: the run is complete", r, err)
	}
	write(t, s, exampleRun(), false, result(0, "a", report.Passed, "aligned"), result(1, "b", report.Failed, "crash"))
	for name, change := range map[string]func(*Run){
		"baseline": func(r *Run) { r.Recording.Baseline = "b1" }, "candidate": func(r *Run) { r.Subjects[1].Name = "torch" },
		"version": func(r *Run) { r.Subjects[1].Version = "2" }, "flags": func(r *Run) { r.Recording.Flags = "{}" }, "plumb": func(r *Run) { r.Plumb = "v2" },
	} {
		r := exampleRun()
		change(r)
		if found, err := s.Unfinished(r); err != nil || found != nil {
			t.Errorf("another %s: %v, %v", name, found, err)
		}
	}
	found, err := s.Unfinished(exampleRun())
	if err != nil || found == nil || found.ID != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	var replayed []string
	w, err := s.Resume(found, func(r *Case) error { replayed = append(replayed, r.Name); return nil })
	if err != nil || len(replayed) != 2 {
		t.Fatalf("%v, %v", replayed, err)
	}
	if err := w.Add(result(2, "b", report.Passed, "aligned")); err != nil {
		t.Fatal(err)
	}
	if err := w.End(true, 0); err != nil {
		t.Fatal(err)
	}
	r, err := s.Run("2")
	if err != nil || !r.Complete || r.Counts != (Counts{Passed: 2, Failed: 1}) || r.Recording.Implemented != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCasesAreWhole: whatever of a run is in the file at any moment, a case has
// all its variants or none.
func TestCasesAreWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open2(t, path)
	reader := open2(t, path)
	w, err := s.Begin(exampleRun())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := range 3*batchCases + 7 {
		r := result((i+1)/2, "f", report.Passed, "aligned") // the first case has one variant
		r.Variant = []string{"", "inplace"}[(i+1)%2]
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			if seen = len(results(t, reader, 1)); seen > 0 && seen%2 == 0 {
				t.Fatalf("%d results are in the file: a case lacks a variant", seen)
			}
		}
	}
	if seen < batchCases || len(w.batch) > batchCases+1 {
		t.Errorf("%d results are in the file, %d wait", seen, len(w.batch))
	}
}

// TestTwoWriters: processes that write one file wait for each other.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			s, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for range 3 {
				w, err := s.Begin(exampleRun())
				for i := 0; err == nil && i < 300; i++ {
					err = w.Add(result(i, "f", report.Passed, "aligned"))
				}
				if err == nil {
					err = w.End(true, 0)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	runs := collect(t, open2(t, path).Runs)
	if len(runs) != 9 || runs[8].Passed != 300 {
		t.Errorf("%d runs", len(runs))
	}
}

// TestReasonsAreBounded: no text grows the file without bound, and none is
// broken within a character.
func TestReasonsAreBounded(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	long := result(0, "f", report.Failed, "misaligned")
	long.Reason = strings.Repeat("ä", maxReason) + "\xff"
	write(t, s, exampleRun(), true, long)
	got := results(t, s, 1)[0].Reason
	if len(got) > maxReason || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-8:])
	}
}

// TestForeignFiles: what is no store of this version is refused with its name,
// and stays as it is.
func TestForeignFiles(t *testing.T) {
	command := func(statements ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, text := range statements {
				if _, err := db.Exec(text); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	stored := func(then func(t *testing.T, path string)) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			s := open2(t, path)
			write(t, s, exampleRun(), true, result(0, "f", report.Passed, "aligned"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			then(t, path)
		}
	}
	for _, tt := range []struct {
		name, want string
		make       func(t *testing.T, path string)
	}{
		{"text", "file is not a database", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("diopi_configs = {}\n", 100)), 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{"another program's", "a database of another program", command(`CREATE TABLE t (x)`)},
		{"newer", "it has version 6 of the tables; this Plumb reads up to 5", stored(command(`PRAGMA user_version = 6`))},
		{"older", "it has version 0 of the tables", stored(command(`PRAGMA user_version = 0`))},
		{"trigger", `its "t" is none of the tables of version 5`, stored(command(`CREATE TRIGGER t AFTER INSERT ON cases BEGIN DELETE FROM runs; END`))},
		{"view", `its "runs" is none of the tables`, stored(command(`DROP TABLE runs`, `CREATE VIEW runs AS SELECT 1`))},
		{"column", `its "runs" is none of the tables`, stored(command(`ALTER TABLE runs ADD COLUMN x TEXT`))},
		{"lacking", "it lacks tables of version 5", stored(command(`DROP TABLE details`))},
		{"cut", "malformed", stored(func(t *testing.T, path string) {
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			tt.make(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, open := range []func(string) (*Store, error){Open, Read} {
				s, err := open(path)
				if err == nil {
					_, err = s.Run("last")
				}
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
			}
			if after, err := os.ReadFile(path); err != nil || string(before) != string(after) {
				t.Errorf("the file has changed, or %v", err)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.db")); err == nil || !strings.Contains(err.Error(), "none.db") {
		t.Errorf("%v", err)
	}
}

// TestHugeValuesAreRefused: a value longer than any that is written is an error.
func TestHugeValuesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open2(t, path)
	write(t, s, exampleRun(), true, result(0, "f", report.Failed, "crash"))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`INSERT INTO details (run, n, kind, lenient, program, reason) SELECT 1, 0, '', '', '', printf('%.*c', ?, 'x')`, 8*maxValue); err != nil {
		t.Fatal(err)
	}
	err = s.Cases(1, func(*Case) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("%v", err)
	}
}

// TestReadOnlyFolder: a store is read where nothing can be written beside it, and who
// would write there is told of the folder.
func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	s := open2(t, path)
	write(t, s, exampleRun(), true, result(0, "f", report.Passed, "aligned"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) == nil {
		t.Skip("this user writes everywhere")
	}
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if runs := collect(t, r.Runs); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
	if _, err := Open(filepath.Join(dir, "new.db")); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// TestDamagedFile: a file that is cut short, or is none of SQLite's, says what to do.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("%v", err)
	}
}

// TestMistakesAreKept: a run that has ended has the mistakes in its tests, bounded, and why
// the cases of its tests have their verdicts.
func TestMistakesAreKept(t *testing.T) {
	s := open2(t, filepath.Join(t.TempDir(), "s.db"))
	w, err := s.Begin(exampleRun())
	if err != nil {
		t.Fatal(err)
	}
	for i, reason := range []string{"rare", "frequent", "frequent"} {
		c := result(i, "f", report.Skipped, "rejected")
		c.Reason = reason
		err = errors.Join(err, w.Add(c))
	}
	wrong := []Mistake{{"t::f", "t:1:1: t::f: stuck"}, {"t::g", strings.Repeat("ä", mostMistake)}}
	if err := errors.Join(err, w.End(true, 2, wrong...)); err != nil {
		t.Fatal(err)
	}
	r, err := s.Run("1")
	if err != nil || len(r.Mistakes) != 2 || r.Mistakes[0] != wrong[0] || len(r.Mistakes[1].Text) > mostMistake || r.Process == "" || r.Environment[mistakes] != "" {
		t.Errorf("%+v, %v", r, err)
	}
	var told []string
	err = s.Reasons(1, "rejected", []string{"none", "f"}, func(test, reason string, cases int) error {
		told = append(told, fmt.Sprint(test, reason, cases))
		return nil
	})
	err = errors.Join(err, s.Reasons(1, "rejected", nil, func(string, string, int) error { return errors.New("of no test") }))
	if want := []string{"ffrequent2", "frare1"}; err != nil || !slices.Equal(told, want) {
		t.Errorf("%v, %v, want %v", told, err, want)
	}
}
