package worker

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"plumb/backend"
)

// TestGrowthIsLimited: a worker that has grown is followed by another, and no
// case is lost; one that grows beyond its limit in a case costs that case.
func TestGrowthIsLimited(t *testing.T) {
	w := fake(t, Config{GrowthLimit: 100 << 20})
	if w.proc.own() == 0 {
		t.Skip("needs /proc")
	}
	pids := map[any]bool{}
	for i := range 6 {
		out, err := w.Run(t.Context(), fakeJob("grow"))
		if err != nil || out.Status != backend.OK {
			t.Fatal(i, out, err)
		}
		pids[out.Values[0].Plain] = true
	}
	if len(pids) != 2 {
		t.Errorf("%d processes for 6 cases of 24 MB each, want 2", len(pids))
	}
	outs, err := w.RunBatch(t.Context(), []*backend.Job{fakeJob("slow"), fakeJob("swell"), fakeJob("slow")})
	if err != nil || outs[0].Status != backend.OK || outs[2].Status != backend.OK {
		t.Fatal(outs, err)
	}
	if o := outs[1]; o.Status != backend.OutOfMemory || !strings.Contains(o.Message, "it grew by more than 100 MB in swell") {
		t.Errorf("%+v", o)
	}
}

// TestHangsAreToldByWhatTheyUse: one that sleeps hangs before one that may wait for a
// processor, and one that computes hangs by what it has used.
func TestHangsAreToldByWhatTheyUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time of processors is read from /proc")
	}
	for _, of := range []struct {
		target              string
		limit, asleep, busy time.Duration
		want                string
	}{
		{"hang", time.Minute, 200 * time.Millisecond, 0, "no answer within 200ms"}, // later on a machine that is busy
		{"hang", 1500 * time.Millisecond, 0, 200 * time.Millisecond, "no answer within 1.5s"},
		{"spin", 1500 * time.Millisecond, 200 * time.Millisecond, 0, "no answer within "},
	} {
		w := fake(t, Config{CaseTimeout: of.limit})
		w.Hung(of.asleep, of.busy)
		out, err := w.Run(t.Context(), fakeJob(of.target))
		if err != nil || out.Status != backend.TimedOut || !strings.Contains(out.Message, of.want) {
			t.Errorf("%+v: %+v, %v", of, out, err)
		}
	}
}

// TestHangsOfWhatComputesLate: what has had little of a processor by the time that it may
// compute is looked at again.
func TestHangsOfWhatComputesLate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time of processors is read from /proc")
	}
	w := fake(t, Config{CaseTimeout: 20 * time.Second})
	w.Hung(0, 200*time.Millisecond)
	out, err := w.Run(t.Context(), fakeJob("spins late"))
	if err != nil || out.Status != backend.TimedOut || strings.Contains(out.Message, "20s") {
		t.Errorf("%+v, %v", out, err)
	}
}
