package campaign

import (
	"maps"
	"slices"
	"sync"

	"plumb/internal/judge/verdict"
)

// schedule hands out batches and puts their results back in order. The
// indices that a test runs through are those of a run one by one: as many are
// under way as are still wanted, so the last one drawn is always accepted.
type schedule struct {
	mu      sync.Mutex
	changed *sync.Cond
	cfg     *Config
	tests   []*testState
	emitted int // tests whose records have all been handed on
	ahead   int // cases handed out whose records have not been handed on
	stopped bool
}

type testState struct {
	*Test
	next     int // first index not yet handed out
	judged   int // cases that count
	rejected int
	flight   int            // indices handed out and not yet back
	back     map[int]*batch // results by first index
	position int            // first index not yet handed on
	reasons  map[string]int
	ended    bool
	lacks    bool // it needs what test files lack: its first such case is its last
	err      error
}

func newSchedule(cfg Config) *schedule {
	s := &schedule{cfg: &cfg}
	s.changed = sync.NewCond(&s.mu)
	for i := range cfg.Tests {
		s.tests = append(s.tests, &testState{Test: &cfg.Tests[i], back: map[int]*batch{}, reasons: map[string]int{}})
	}
	s.mu.Lock()
	s.flush()
	s.mu.Unlock()
	return s
}

// next returns a batch to run, waiting until one is wanted; nil at the end.
func (s *schedule) next() *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.stopped || s.emitted == len(s.tests) {
			return nil
		}
		for _, t := range s.tests[s.emitted:] {
			if n := min(t.want(), max(s.cfg.Batch, 1)); n > 0 && s.admits(t) {
				b := &batch{test: t, first: t.next, cases: make([]caseRun, n)}
				t.next += n
				t.flight += n
				s.ahead += n
				return b
			}
		}
		s.changed.Wait()
	}
}

// runAhead times a lane's batch is how many cases may wait, with all their
// tensors, for a slow one before them.
const runAhead = 16

// admits reports whether a batch of the test may begin. At the bound only the
// next test goes on, and only when it waits for nothing else.
func (s *schedule) admits(t *testState) bool {
	bound := runAhead * max(s.cfg.Jobs, 1) * max(s.cfg.Batch, 1)
	return s.ahead < bound || t == s.tests[s.emitted] && t.flight == 0
}

// want returns how many more cases are to be handed out.
func (t *testState) want() int {
	if t.ended || t.lacks || t.err != nil {
		return 0
	}
	if t.Fixed {
		return t.N - t.next
	}
	if t.rejected >= RejectFactor*t.N {
		return 0
	}
	return t.N - t.judged - t.flight
}

// stop makes next return nil to every lane.
func (s *schedule) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.changed.Broadcast()
}

// done takes a batch's results and hands on what is now in order.
func (s *schedule) done(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := b.test
	t.flight -= len(b.cases)
	for i := range b.cases {
		c := &b.cases[i]
		switch {
		case c.rejected():
			t.rejected++
		case c.unsupported() != nil:
			t.lacks = true
		case c.err == nil:
			t.judged++
		case t.err == nil:
			t.err = c.err
		}
	}
	t.back[b.first] = b
	s.flush()
	s.changed.Broadcast()
}

// flush hands on, in order, the records that are there.
func (s *schedule) flush() {
	for s.emitted < len(s.tests) {
		t := s.tests[s.emitted]
		s.ahead -= t.handOn(s.cfg)
		if t.flight > 0 || t.want() > 0 {
			return
		}
		t.ended = true
		s.cfg.OnEnd(t.end())
		s.emitted++
	}
}

// handOn hands on the test's records that are next in order, and returns of
// how many cases.
func (t *testState) handOn(cfg *Config) int {
	first := t.position
	for {
		b := t.back[t.position]
		if b == nil {
			return t.position - first
		}
		delete(t.back, t.position)
		t.position += len(b.cases)
		for i := range b.cases {
			c := &b.cases[i]
			if t.ended {
				continue
			}
			if c.rejected() {
				t.reasons[c.reason()]++
			}
			t.ended = c.unsupported() != nil
			for _, r := range c.records {
				cfg.OnRecord(r)
			}
		}
	}
}

func (t *testState) end() *verdict.End {
	e := &verdict.End{Test: t.Name, Judged: t.judged, Rejected: t.rejected, Err: t.err}
	if e.Err == nil && !t.Fixed && !t.lacks && t.judged < t.N {
		messages := slices.Sorted(maps.Keys(t.reasons))
		stuck := &StuckError{Test: t.Name, Rejected: t.rejected, Accepted: t.judged}
		for _, m := range messages {
			if t.reasons[m] > stuck.Times {
				stuck.Message, stuck.Times = m, t.reasons[m]
			}
		}
		e.Err = stuck
	}
	return e
}
