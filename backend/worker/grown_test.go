package worker

import (
	"strings"
	"testing"

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
