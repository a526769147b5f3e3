package fleet

import (
	"testing"
	"time"

	"plumb/internal/campaign/ledger"
)

// TestTimeByTheClock: once it is over, what workers have is judged to its end, what nobody
// has is left out, and a worker that says nothing is not waited for beyond its lease.
func TestTimeByTheClock(t *testing.T) {
	t.Parallel() // it waits
	const budget = 2 * time.Second
	for silent, lease := range map[bool]time.Duration{false: time.Minute, true: 3 * time.Second} {
		s := serveAs(t, 0, ledger.Budget{Time: budget, Clock: true}, func(c *Coordinator) { c.Lease = lease })
		began := time.Now()
		w := worker("w")
		if _, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil {
			t.Fatal(err)
		}
		judgedCases, last := 0, []ledger.Unit(nil)
		for time.Since(began) < budget-time.Second/2 {
			units, err := w.Take(t.Context(), "a", 1, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range last { // one round behind
				judgedCases += u.Size
				if err := w.Done(t.Context(), judged(u, "w")); err != nil {
					t.Fatal(err)
				}
			}
			last = units
			time.Sleep(20 * time.Millisecond)
		}
		for time.Since(began) < budget+time.Second/2 { // still has them when the time is over
			time.Sleep(50 * time.Millisecond)
		}
		for _, u := range last {
			if !silent {
				judgedCases += u.Size
				if err := w.Done(t.Context(), judged(u, "w")); err != nil {
					t.Fatal(err)
				}
			}
		}
		for ended := false; !ended; time.Sleep(50 * time.Millisecond) {
			var err error
			if ended, err = w.Ended(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); silent != (took > budget+lease) && len(last) > 0 {
			t.Errorf("silent %v: it took %s", silent, took)
		}
		w.Leave()
		if err := <-s.ended; err != nil {
			t.Fatal(err)
		}
		if got := s.books.Standing(); got.Cases != judgedCases || got.Open != 0 || judgedCases == 0 || !s.books.Over() {
			t.Errorf("silent %v: %+v, judged %d, %s", silent, got, judgedCases, s.logged())
		}
		if err := s.db.Check(); err != nil {
			t.Error(err)
		}
	}
}
