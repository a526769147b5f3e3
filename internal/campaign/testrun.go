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
		return t.N - t.next
	case t.rejected >= RejectFactor*t.N:
		return 0
	}
	return t.N - t.judged - (t.next - t.back)
}

// Wants reports whether more cases are to be drawn.
func (t *testRun) Wants() bool { return t.want() > 0 }

// Cost is how many cases the next batch has.
func (t *testRun) Cost() int64 { return int64(min(t.want(), max(t.cfg.Batch, 1))) }

// Next returns the next batch, whose cases are not drawn yet.
func (t *testRun) Next() *batch {
	b := &batch{test: t, first: t.next, cases: make([]caseRun, t.Cost())}
	t.next += len(b.cases)
	return b
}

// count counts what became of a batch's cases.
func (b *batch) count() {
	t := b.test
	t.back += len(b.cases)
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
		t.ended = c.unsupported() != nil
		for _, r := range c.records {
			t.cfg.OnRecord(r)
		}
	}
}

// end tells that all of a test's cases are done.
func (t *testRun) end() {
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
	t.cfg.OnEnd(e)
}
