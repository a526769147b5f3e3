package onekernel

import (
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/backend"
)

// measured are batches of 10 calls for which a process says so much and the judge sees
// so much, beside exchanges without calls.
func measured(own, wall, empty time.Duration) []*batch {
	var all []*batch
	for range warmRounds {
		all = append(all, &batch{calls: 10, own: own, wall: wall, empty: empty})
	}
	return all
}

// TestTheJudgesClockBoundsThatOfTheProcess: what a process says counts while the judge's
// clock does not say more.
func TestTheJudgesClockBoundsThatOfTheProcess(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		own, wall, empty time.Duration
		want             float64 // µs a call
		lies             bool
	}{
		{10 * ms, 10*ms + 200*time.Microsecond, 200 * time.Microsecond, 1000, false},
		{10 * ms, 13 * ms, 2 * ms, 1100, false},       // the exchange was slow
		{1 * ms, 11 * ms, 1 * ms, 1000, true},         // a clock that is ten times too slow
		{0, 11 * ms, 1 * ms, 1000, true},              // one that stands
		{0, 500 * time.Microsecond, 1 * ms, 0, false}, // nothing that the judge could see
	} {
		all := measured(c.own, c.wall, c.empty)
		got := perCall(all)
		if got[0] < c.want || got[0] > c.want+0.001 {
			t.Errorf("%s within %s, %s of them empty: %g µs, want %g", c.own, c.wall, c.empty, got[0], c.want)
		}
		if clockLies(all) != c.lies {
			t.Errorf("%s within %s: lies %v, want %v", c.own, c.wall, !c.lies, c.lies)
		}
	}
}

// TestWhatMemoryCannotGiveIsRefused: unless the reference does it too.
func TestWhatMemoryCannotGiveIsRefused(t *testing.T) {
	at := func(us float64) Span { return Span{us, us, us} }
	point := func(kernel, reference float64) *Point {
		return &Point{Bytes: 1e6, Warm: &Pair{Kernel: at(kernel), Reference: at(reference)}}
	}
	const rate = 1e9 // bytes a second, which make 500 µs for twice as fast
	for _, c := range []struct {
		kernel, reference float64
		refused           bool
	}{{499, 501, true}, {501, 600, false}, {499, 499, false}, {501, 10, false}} {
		p := point(c.kernel, c.reference)
		p.hold(rate)
		if refused := p.Refused != ""; refused != c.refused || (p.Warm == nil) != c.refused {
			t.Errorf("%g and %g µs: %q", c.kernel, c.reference, p.Refused)
		}
	}
	if rate := copyRate(1 << 20); rate < 1e8 {
		t.Errorf("memory is copied at %g bytes a second", rate)
	}
}

// TestSweepsEndAtWhatIsGiven: sizes grow to the ends that are promised, and where there
// are none to a million elements.
func TestSweepsEndAtWhatIsGiven(t *testing.T) {
	s := judged(t, 6)
	sizesOf := func() (all []map[string]int) {
		for _, c := range s.sweep() {
			all = append(all, c.Sizes)
			if c.Grad || c.Layout != Contiguous {
				t.Errorf("%s is timed", c)
			}
		}
		return all
	}
	free := sizesOf()
	if n := len(free); n < 3 || n > mostPoints || free[n-1]["B"]*free[n-1]["N"] != lastPoint {
		t.Errorf("sizes %v", free)
	}
	s.maker.promises.Ranges = map[string][2]int{"B": {4, 4}, "N": {16, 1000}}
	bound := sizesOf()
	if n := len(bound); bound[0]["N"] != 16 || bound[n-1]["N"] != 1000 || slices.ContainsFunc(bound, func(m map[string]int) bool { return m["B"] != 4 }) {
		t.Errorf("sizes %v", bound)
	}
	for _, r := range s.outcomes {
		r.kernel.Status = backend.Raised
	}
	if got := s.sweep(); got != nil {
		t.Errorf("no call is right, and %d are timed", len(got))
	}
}

func TestTimesInWords(t *testing.T) {
	for x, want := range map[float64]string{0.1234: "0.123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234.5: "1234", 0: "0.00000"} {
		if got := digits(x); got != want {
			t.Errorf("%g is %s, want %s", x, got, want)
		}
	}
	r := &Report{Verdict: Right, Time: &Timing{Points: []Point{{Case: "float32 N=8", Refused: "too fast"}}}}
	if text := r.Text(); !strings.Contains(text, "time: float32 N=8: too fast\n") {
		t.Error(text)
	}
}
