package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// lastRun is the last run of a store, with its results.
func lastRun(t *testing.T, path string) (*store.Run, []store.Case) {
	t.Helper()
	s, err := store.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run("last")
	if err != nil {
		t.Fatal(err)
	}
	var results []store.Case
	if err := s.Cases(r.ID, func(one *store.Case) error { results = append(results, *one); return nil }); err != nil {
		t.Fatal(err)
	}
	return r, results
}

// stopper ends a command after so many lines.
type stopper struct {
	bytes.Buffer
	lines int
	stop  context.CancelFunc
}

func (s *stopper) Write(b []byte) (int, error) {
	if s.lines -= bytes.Count(b, []byte("\n")); s.lines <= 0 {
		s.stop()
	}
	return s.Buffer.Write(b)
}

// interrupted runs a conform command until it has printed so many lines.
func interrupted(t *testing.T, lines int, args ...string) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := newRoot()
	cmd.SetArgs(append([]string{"conform"}, args...))
	cmd.SetOut(&stopper{lines: lines, stop: stop})
	cmd.SetErr(&bytes.Buffer{})
	return cmd.ExecuteContext(ctx)
}

var untimed = cmp.Options{
	cmpopts.IgnoreFields(store.Case{}, "Elapsed"), cmpopts.IgnoreFields(store.Run{}, "ID", "Started", "Ended", "Elapsed", "Written"), cmpopts.EquateNaNs(),
}

// TestConformResume interrupts a run twice: what it ends with is what a run has
// that was not interrupted, and no case is judged twice.
func TestConformResume(t *testing.T) { resumes(t, "") }

// TestConformResumeWithoutStore: the same holds without --store.
func TestConformResumeWithoutStore(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv(storeVariable, "")
	resumes(t, filepath.Join(state, "plumb", "plumb.db"))
}

func resumes(t *testing.T, usual string) {
	_, dir := generated(t)
	path := filepath.Join(t.TempDir(), "results.db")
	files := func(name string) []string {
		return []string{"--summary", filepath.Join(t.TempDir(), name+".json"), "--junit", filepath.Join(t.TempDir(), name+".xml")}
	}
	run := []string{"run", "--baseline", dir, "--json", "--jobs", "1", "--store"}
	whole, parts := files("whole"), files("parts")
	if _, _, err := conformed(t, slices.Concat(run, []string{path}, whole)...); err != nil {
		t.Fatal(err)
	}
	wantRun, want := lastRun(t, path)
	if !wantRun.Complete || len(want) != 36+520+2 || wantRun.Passed != 556 {
		t.Fatalf("%+v, %d results", wantRun, len(want))
	}

	other := filepath.Join(t.TempDir(), "other.db")
	again := slices.Concat(run, []string{other, "--resume"}, parts)
	if usual != "" { // the store is the usual one
		other = usual
		again = slices.Concat(run[:len(run)-1], []string{"--resume"}, parts)
	}
	judgedCases := 0
	for i, lines := range []int{40, 300} {
		err := interrupted(t, lines, again...)
		if exitCode(err) != exitFault || !strings.Contains(err.Error(), "interrupted; the same command with --resume goes on from here") {
			t.Fatalf("interruption %d: %v", i, err)
		}
		r, results := lastRun(t, other)
		if r.Complete || len(results) <= judgedCases || len(results) >= len(want) {
			t.Fatalf("interruption %d: %d results after %d, complete: %v", i, len(results), judgedCases, r.Complete)
		}
		judgedCases = len(results)
	}
	out, errs, err := conformed(t, again...)
	if err != nil || !strings.Contains(errs, "plumb: going on with run 1: ") {
		t.Fatalf("%v\n%s", err, errs)
	}
	gotRun, got := lastRun(t, other)
	if diff := cmp.Diff(wantRun, gotRun, untimed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, got, untimed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := strings.Count(out, `"verdict":`); n != len(want)-judgedCases {
		t.Errorf("%d cases were judged, want the %d that were left", n, len(want)-judgedCases)
	}
	sameReports(t, whole, parts)

	if _, errs, err := conformed(t, slices.Concat(again, []string{"--fname", "relu"})...); err != nil || !strings.Contains(errs, "has no interrupted run of this baseline") {
		t.Errorf("%v\n%s", err, errs)
	}
}

// sameReports compares the reports of two runs: --summary FILE --junit FILE.
func sameReports(t *testing.T, a, b []string) {
	t.Helper()
	var summaries [2]report.Conformance
	var cases [2]int
	for i, files := range [][]string{a, b} {
		data, err := os.ReadFile(files[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &summaries[i]); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(files[3])
		if err != nil {
			t.Fatal(err)
		}
		cases[i] = strings.Count(string(page), "<testcase ")
	}
	if diff := cmp.Diff(summaries[0], summaries[1], cmpopts.IgnoreUnexported(report.Conformance{}, report.Details{}), cmpopts.IgnoreFields(report.Details{}, "About", "Slowest")); diff != "" || cases[0] != cases[1] || cases[0] != 558 {
		t.Errorf("%d and %d test cases; -whole +parts:\n%s", cases[0], cases[1], diff)
	}
}

// TestConformHistory keeps a good run, one of a spoilt baseline and one under a
// device config, and looks at them.
func TestConformHistory(t *testing.T) {
	_, dir := generated(t)
	path := filepath.Join(t.TempDir(), "results.db")
	t.Setenv(storeVariable, path)
	if _, _, err := conformed(t, "run", "--baseline", dir); err != nil {
		t.Fatal(err)
	}
	device := save(t, "device.py", `device_configs = {'act': dict(name=['relu'], tensor_para=dict(args=[dict(ins=['input'], dtype=[Skip(np.float64)])]))}`)
	if _, _, err := conformed(t, "run", "--baseline", dir, "--device-config", device); err != nil {
		t.Fatal(err)
	}
	shard := filepath.Join(dir, "cases-00001.safetensors.zst")
	if err := os.Truncate(shard, 10); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conformed(t, "run", "--baseline", dir, "--store", path); exitCode(err) != exitFault {
		t.Fatal(err)
	}
	for _, function := range []string{"relu", "tanh"} {
		if _, _, err := conformed(t, "run", "--baseline", dir, "--fname", function); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		args []string
		code int
		want []string
	}{
		{nil, 0, []string{"run  started ", "1    20", "conform run  native      native ", "558    556     0       0 ", "558    534     22 ", "with 3"}},
		{[]string{"--json"}, 0, []string{`{"id":1,"command":"plumb conform run","arguments":[`, `"functions":3,"implemented":3},"passed":556,"failed":0,"unsupported":0,"skipped":0,"unrecorded":2}`}},
		{[]string{"3"}, 0, []string{"run        3, 20", "ended: with 3", `flags      {"timeout":"2m0s"}`, "tanh      18       0  100.0%", "neg     498      22   95.8%", "functions   3 of 3 implemented", "fault many::neg_519.pth (float32)\n  "}},
		{[]string{"2", "--json"}, 0, []string{`{"run":{"id":2,`, `"device-config\":\"`, `"outcome":"skipped"`, `"dtypes":"float32","outcome":"passed","verdict":"aligned","compared":`}},
		{[]string{"--diff", "1", "3"}, 1, []string{"newly failing:\n  many::neg_498.pth: fault, was aligned\n    ", "from run 1 to 3: 22 newly failing, 0 no longer judged, 0 newly passing, 0 changed otherwise\n"}},
		{[]string{"--diff", "3", "1"}, 0, []string{"newly passing:\n  many::neg_498.pth: aligned, was fault\n", "from run 3 to 1: 0 newly failing, 0 no longer judged, 22 newly passing,"}},
		{[]string{"--diff", "1", "2"}, exitNothing, []string{"no longer judged:\n  act::relu_3.pth: skipped, was aligned\n", "only in run 1: 6\n", "3 no longer judged"}},
		{[]string{"--diff", "2", "1"}, 0, []string{"newly passing:\n  act::relu_3.pth: aligned, was skipped\n"}},
		{[]string{"--diff", "4", "5"}, exitNothing, []string{"from run 4 to 5: 0 newly failing"}},
		{[]string{"--diff", "1", "3", "--json"}, 1, []string{`{"test":"neg","case":"many::neg_498.pth","number":`, `"subject":"native","change":"newly failing","before":"aligned","after":"fault","reason":"`}},
	}
	for _, tt := range tests {
		out, _, err := conformed(t, append([]string{"history"}, tt.args...)...)
		if exitCode(err) != tt.code {
			t.Errorf("history %v: %v", tt.args, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("history %v lacks %q:\n%.2000s", tt.args, want, out)
			}
		}
	}
}

// TestConformStoreMistakes are mistakes with --store and history.
func TestConformStoreMistakes(t *testing.T) {
	_, dir := generated(t)
	text := save(t, "results.db", strings.Repeat("no database\n", 200))
	empty := filepath.Join(t.TempDir(), "empty.db")
	s, err := store.Open(empty)
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"results.db: open: file is not a database", []string{"run", "--baseline", dir, "--store", text}},
		{"there is no directory ", []string{"run", "--baseline", dir, "--junit", filepath.Join(dir, "none", "j.xml")}},
		{"results.db: open: file is not a database", []string{"history", "--store", text}},
		{"none.db: no such file", []string{"history", "--store", filepath.Join(dir, "none.db")}},
		{"there is no results store: $PLUMB_STORE is none", []string{"history"}},
		{"has no runs", []string{"history", "last", "--store", empty}},
		{"--diff compares two runs, not 1", []string{"history", "--diff", "1", "--store", empty}},
		{"--diff compares two", []string{"history", "1", "2", "--store", empty}},
	} {
		if _, _, err := conformed(t, tt.args...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
	if out, _, err := conformed(t, "history", "--store", empty); err != nil || !strings.HasPrefix(out, "no runs; ") {
		t.Errorf("%v\n%s", err, out)
	}
}
