package onekernel

import (
	"testing"
	"time"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/tensor"
)

// TestWhatTheReferenceIsToldToRecord: it records no operators while it answers the judge in
// several calls, and does again in the next call of a case, whose delegation hangs on them; a
// process that takes the place of its own has it loaded.
func TestWhatTheReferenceIsToldToRecord(t *testing.T) {
	python, _, err := worker.FindPython("")
	if err != nil {
		t.Skip(err)
	}
	cfg := &Config{Against: "torch.relu", Python: python, Timeout: time.Minute}
	of := Source{Form: "operator", Name: cfg.Against}
	h, err := openHost(t.Context(), cfg, of.spec("reference", cfg.target()), "")
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{cfg: cfg, reference: h}
	defer h.Close()
	var told described
	if err := h.ask(t.Context(), map[string]any{"describe": nil}, &told); err != nil || told.Failed != "" {
		t.Fatal(err, told.Failed)
	}
	m := makerOf(t, "x: float[N]", tensor.F32)
	m.target = cfg.target()
	var jobs []*backend.Job
	for _, c := range cases(t, m, several+1) {
		withoutBackward := c.program.Clone()
		forward(withoutBackward)
		jobs = append(jobs, backend.NewJob(withoutBackward))
	}
	recorded := func(after string, elements int) {
		t.Helper()
		var seen observed
		if err := h.ask(t.Context(), map[string]any{"observe": nil}, &seen); err != nil {
			t.Fatal(err)
		}
		if seen.Elements != elements {
			t.Errorf("%s, the last call that was recorded gave %d elements, want %d", after, seen.Elements, elements)
		}
	}
	answer := func(jobs []*backend.Job) {
		t.Helper()
		all, err := s.asks(t.Context(), jobs)
		if err != nil || len(all) != len(jobs) || all[len(all)-1].Status != backend.OK {
			t.Fatalf("%v: %v", all, err)
		}
	}
	const call = 256 // what counts beside the elements
	size := func(i int) int { return call + jobs[i].Program.Inputs[0].Shape[0] }
	answer(jobs[:1])
	recorded("after one question", size(0))
	answer(jobs[1 : 1+several])
	recorded("after several", size(0))
	o, seen, err := s.tryReference(t.Context(), jobs[several])
	if err != nil || o.Status != backend.OK || seen.Elements != size(several) || len(seen.Operators) == 0 {
		t.Errorf("a case after them: %v, %+v, want %d elements", err, seen, size(several))
	}
	if size(0) == size(several) {
		t.Fatal("the calls are alike, and tell nothing")
	}
	h.Restart() // as after a call that gave no answer in time
	if o, _, err := s.tryReference(t.Context(), jobs[0]); err != nil || o.Status != backend.OK {
		t.Errorf("in a new process: %v, %s", err, o.Message)
	}
}
