package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/worker"
	"plumb/internal/campaign/fleet"
	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// plumbProgram is this test's program under the name by which it is plumb.
func plumbProgram(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plumb := filepath.Join(t.TempDir(), "plumb")
	if err := os.Symlink(exe, plumb); err != nil {
		t.Skip(err)
	}
	return plumb
}

// TestKilledCampaignsLoseNothing: the short form of plumb bench campaign.
func TestKilledCampaignsLoseNothing(t *testing.T) {
	slow(t)
	k := killings{plumb: plumbProgram(t), dir: t.TempDir(), kills: 3, seed: 1, log: testLog{t}}
	k.args = []string{"ops:rel*", "--reference", "native", "-n", "300", "--seed", "3", "--candidate", "native,native:graph"}
	if err := k.run(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLanesAreTimed: the short form of plumb bench campaign --lanes; a run that fails is no
// time.
func TestLanesAreTimed(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("one core")
	}
	var told bytes.Buffer
	k := lanes{killings: killings{plumb: plumbProgram(t), dir: t.TempDir(), args: []string{"relu"}, seed: 1, log: &told}, count: 2, each: 1}
	if err := k.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1 lane on 1 core: ", "1 lane on 2 cores: ", "2 lanes on 2 cores: "} {
		if line := strings.Split(told.String(), "\n")[i]; !strings.HasPrefix(line, want) || !strings.HasSuffix(line, " × one lane on one core") {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if k.args = []string{"nosuchoperator"}; k.run(t.Context()) == nil {
		t.Error("a run that fails is timed")
	}
}

// TestStoreIsMeasured asks a store of many cases all that bench campaign asks one of ten
// million.
func TestStoreIsMeasured(t *testing.T) {
	var told bytes.Buffer
	if err := benchStore(t.Context(), &told, filepath.Join(t.TempDir(), "rows.db"), 4000); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4000 cases written in ", "status of 2000 cases: ", "two runs compared by tests: ", "two runs compared by cases: ", "one of them deleted: "} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is not in\n%s", want, told.String())
		}
	}
}

// TestFleetLosesNothing: a worker is killed, one is stopped, the network is cut, and the
// coordinator is killed.
func TestFleetLosesNothing(t *testing.T) {
	slow(t)
	k := siege{killings: killings{plumb: plumbProgram(t), dir: t.TempDir(), kills: 4, seed: 4, log: testLog{t}}, workers: 2, stopped: 3 * time.Second, cut: 3 * time.Second}
	k.args = []string{"ops:rel*", "--reference", "native", "-n", "300", "--seed", "3", "--candidate", "native,native:graph"}
	if err := k.run(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTortureHasRightVerdicts: a subject that does everything wrong has the verdict that
// each of its cases has to have, and its findings are judged again and have bundles.
func TestTortureHasRightVerdicts(t *testing.T) {
	slow(t)
	t.Parallel() // it waits for what hangs
	if _, _, err := worker.Find("numpy", ""); err != nil {
		t.Skip(err)
	}
	k := torture{siege: siege{killings: killings{plumb: plumbProgram(t), dir: t.TempDir(), seed: 7, log: testLog{t}}, workers: 1}, cases: 2, every: 2, span: 4 * time.Second}
	if err := k.run(t.Context()); err != nil {
		t.Error(err)
	}
	k.env = []string{"PLUMB_UNRULY=tell", "XDG_CACHE_HOME=" + t.TempDir()}
	cmd, out, err := k.start(t.Context(), "calm.db", "campaign", "findings", "last", "--", "--set", "shrink.runs=20")
	if err == nil {
		err = cmd.Wait()
	}
	if cmd.ProcessState.ExitCode() != exitFindings || !strings.Contains(out.String(), "plumb repro") {
		t.Errorf("campaign findings: %v\n%s", err, out)
	}
}

// TestResumeHasTheSameSubjects: a campaign that has cases left goes on with the subjects
// that it was begun with.
func TestResumeHasTheSameSubjects(t *testing.T) {
	for _, one := range []struct {
		version  string
		complete bool
		want     string
	}{
		{subjectOf("native", (&native.Backend{}).Info()).Version, false, ""},
		{"native 0", false, "campaign 3 was begun with native as native 0, which now is native"},
		{"native 0", true, ""},
		{"", false, ""}, // that of workers
	} {
		c := &store.Campaign{Run: store.Run{ID: 3, Complete: one.complete, Subjects: []store.Subject{{Name: "native", Version: one.version}}}}
		err := newPlan().sameSubjects(t.Context(), c, &spec{})
		if (err == nil) != (one.want == "") || err != nil && !strings.Contains(err.Error(), one.want) {
			t.Errorf("%+v: %v", one, err)
		}
	}
}

// TestPublicVersions: how a version was built does not tell it from another.
func TestPublicVersions(t *testing.T) {
	for version, want := range map[string]string{
		"torch 2.15.0+cu128": "torch 2.15.0", "torch 1.13.0a0": "torch 1.13.0a0", "mine 1+local.2 (code 1f3a)": "mine 1 (code 1f3a)",
	} {
		if got := publicVersion(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

// TestCrashesAreToldApart: of one operator, cases that end by different signals are
// findings of their own.
func TestCrashesAreToldApart(t *testing.T) {
	kinds := map[string]bool{}
	for _, class := range []string{"SIGSEGV", "processes"} {
		kinds[storedCase(&verdict.Record{Test: "t", Program: &program.Program{Name: "t"}, Candidate: "c", Verdict: &verdict.Verdict{Word: verdict.Crash}, Outcome: &backend.Outcome{Class: class}}).Kind] = true
	}
	if len(kinds) != 2 {
		t.Errorf("kinds %v", kinds)
	}
}

// TestRunsHaveFilesOfTheirOwn: the second run of plumb campaign findings does not write over the first's.
func TestRunsHaveFilesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	run := newRun()
	if err := run.ParseFlags([]string{"--html", dir + "/p.html", "--report", "markdown=" + dir + "/r.md", "--junit=" + dir + "/j.xml"}); err != nil {
		t.Fatal(err)
	}
	if err := ownFiles(run, 2); err != nil {
		t.Fatal(err)
	}
	got := []string{run.Flag("html").Value.String(), run.Flag("junit").Value.String(), run.Flag("report").Value.(*reportFiles).all[0].path, run.Flag("record").Value.String()}
	if want := []string{dir + "/p-2.html", dir + "/j-2.xml", dir + "/r-2.md", ""}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// testLog prints into a test's log.
type testLog struct{ testing.TB }

// Write logs.
func (l testLog) Write(p []byte) (int, error) {
	l.Logf("%s", p)
	return len(p), nil
}

// judgedCampaign is one of one test on native, whose two cases crash, each in another operator.
func judgedCampaign(t *testing.T) (*store.Store, *store.Campaign, *ledger.Ledger) {
	t.Helper()
	db, err := store.Open(filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c := &store.Campaign{Name: "x", Run: store.Run{Started: time.Now(), Subjects: []store.Subject{{Name: "native", Version: "native 1"}}}}
	if err := db.NewCampaign(c, []store.Part{{Test: "t", Subject: "native", Depends: []byte("1"), Wanted: 2, Fixed: true}}); err != nil {
		t.Fatal(err)
	}
	books, err := ledger.Open(db, c, 2, ledger.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	units, err := books.Take("native", 1)
	if err != nil || len(units) != 1 {
		t.Fatalf("%v, %v", units, err)
	}
	r := ledger.Result{Unit: units[0].N, Judged: 2}
	for i := range 2 {
		r.Cases = append(r.Cases, store.Case{Test: "t", Number: i, Subject: "native", Outcome: report.Failed, Word: "crash", Operators: []string{fmt.Sprint("operator ", i)}, Text: "program"})
	}
	if err := books.Finish([]ledger.Result{r}); err != nil {
		t.Fatal(err)
	}
	return db, c, books
}

// TestSightedOnce: a process that was killed after it had written the findings, and before
// the end, leaves no finding that counts its cases twice; and a bundle is that of its finding.
func TestSightedOnce(t *testing.T) {
	db, c, books := judgedCampaign(t)
	for range 2 {
		if err := sightAll(db, books, c.ID); err != nil {
			t.Fatal(err)
		}
	}
	seen, last := 0, int64(0)
	if err := db.Sightings(c.ID, func(s *store.Sighting) error { seen, last = seen+s.Cases, s.Finding; return nil }); err != nil || seen != 2 {
		t.Errorf("%d cases in findings, %v", seen, err)
	}
	if err := books.Bundle(last, "folder", "proved"); err != nil {
		t.Fatal(err)
	}
	if err := db.Sightings(c.ID, func(s *store.Sighting) error {
		if want := s.Finding == last; want != (s.Bundle == "folder") || want != (s.Proof == "proved") {
			t.Errorf("finding %d of %d: bundle %q, proof %q", s.Finding, last, s.Bundle, s.Proof)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestChangedSubjects: a subject that becomes another while it is judged ends its campaign,
// whose verdicts no other takes and which nobody goes on with.
func TestChangedSubjects(t *testing.T) {
	for was, want := range map[string]bool{"native 0": false, "native 0" + codeMark + "1)": true} {
		got, err := newPlan().changed(t.Context(), map[string]string{"native": was})
		if err != nil || (got != nil) != want {
			t.Errorf("%s: %v, %v", was, got, err)
		}
	}
	db, c, books := judgedCampaign(t)
	earlier := func() int {
		_, units, err := db.Earlier(c.ID+1, []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		return len(units)
	}
	if earlier() == 0 {
		t.Fatal("there is nothing to take")
	}
	r := &campaignRun{plan: newPlan()}
	var exit *exitError
	if err := r.endMixed(books, c, &fleet.ChangedError{Subject: "native", Was: "native 1", Is: "native 2"}); !errors.As(err, &exit) || exit.code != exitFault ||
		exit.err.Error() != "campaign 1: native has changed while it was judged: it was native 1, and is native 2 now; the verdicts are of both: begin a new one" {
		t.Errorf("%v", err)
	}
	if n := earlier(); n != 0 {
		t.Errorf("%d units are taken from it", n)
	}
	c, err := db.Campaign("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := newPlan().sameSubjects(t.Context(), c, &spec{}); err == nil || !strings.Contains(err.Error(), "was begun with native as native 1, then native 2") {
		t.Errorf("%+v: %v", c.Subjects, err)
	}
}

// TestFleetKeyStays: workers know a campaign whose coordinator was started again.
func TestFleetKeyStays(t *testing.T) {
	db, c, _ := judgedCampaign(t)
	again, err := db.Campaign("x")
	if err != nil || fleetKey(again) != fleetKey(c) {
		t.Errorf("%s, then %s, %v", fleetKey(c), fleetKey(again), err)
	}
	if c.Started = c.Started.Add(time.Millisecond); fleetKey(again) == fleetKey(c) {
		t.Error("another campaign has the same key")
	}
}
