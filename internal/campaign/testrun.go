package campaign

import (
	"maps"
	"slices"

	"plumb/internal/judge/verdict"
)

// testRun is a test in a run, the source of its batches. The indices that it runs
// through are those of a run one by one: as many are under way as are still
// wanted, so the last one drawn is always accepted.
type testRun struct {
	*Test
	cfg      *Config
	next     int // first index not yet handed out
	back     int // indices handed out whose results are back
	judged   int // cases that count
	rejected int
	largest  int64 // of the cases that are back, the bytes of the outcomes of one
	reasons  map[string]int
	ended    bool // nothing after its first case that needs what test files lack is handed on
	lacks    bool // it has such a case
	err      error
}

// want is how many more cases are to be handed out.
func (t *testRun) want() int {
	switch {
	case t.lacks || t.err != nil:
		return 0
	case t.Fixed:
		return t.First + t.N - t.next
	}
	out := t.next - t.First - t.back
	return min(t.N-t.judged-out, t.mostRejected()-t.rejected-out)
}

// mostRejected is how many rejected draws give the test up.
func (t *testRun) mostRejected() int {
	if t.Sharing == nil {
		return RejectFactor * t.N
	}
	return RejectFactor * t.N * t.Sharing()
}

// Wants reports whether more cases are to be drawn now: the first one is awaited,
// since it tells how large they are.
func (t *testRun) Wants() bool {
	return t.want() > 0 && (t.next == t.First || t.back > 0 || t.cfg.Memory == 0)
}

// size is how many cases the next batch has.
func (t *testRun) size() int {
	n := min(t.want(), t.cfg.Batch)
	if t.cfg.Memory == 0 {
		return n
	}
	if t.back == 0 {
		return min(n, 1)
	}
	return min(n, int(max(t.cfg.limit()/int64(4*t.cfg.Jobs)/t.cost(), 1)))
}

// cost is that of one case: in bytes, or one where their number alone is bounded.
func (t *testRun) cost() int64 {
	if t.cfg.Memory == 0 {
		return 1
	}
	return max(t.cfg.least(), t.largest)
}

// Cost is that of the next batch.
func (t *testRun) Cost() int64 { return int64(t.size()) * t.cost() }

// Next returns the next batch, whose cases are not drawn yet.
func (t *testRun) Next() *batch {
	b := &batch{test: t, first: t.next, cases: make([]caseRun, t.size())}
	t.next += len(b.cases)
	return b
}

// count counts what became of a batch's cases.
func (b *batch) count() {
	t := b.test
	t.back += len(b.cases)
	for i := range b.cases {
		c := &b.cases[i]
		t.largest = max(t.largest, c.bytes*int64(1+len(t.cfg.Candidates)))
		switch {
		case c.rejected():
			t.rejected++
		case c.unsupported():
			t.lacks = true
		case c.err == nil, len(c.records) > 0:
			t.judged++
		case t.err == nil:
			t.err = c.err
		}
	}
}

// handOn hands on a batch's records.
func (b *batch) handOn() {
	t := b.test
	for i := range b.cases {
		c := &b.cases[i]
		if t.ended {
			return
		}
		if c.rejected() {
			t.reasons[c.reason()]++
		}
		t.ended = c.unsupported()
		for _, r := range c.records {
			t.cfg.OnRecord(r)
		}
	}
}

// end tells that all of a test's cases are done.
func (t *testRun) end() {
	e := &verdict.End{Test: t.Name, Judged: t.judged, Rejected: t.rejected, Next: t.next, Err: t.err}
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
	t.cfg.OnEnd(e)
}
