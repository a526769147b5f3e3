// Package ranks runs the ranks of global tensors: goroutines that each hold
// what is theirs and meet in exchanges alone. Nothing depends on which of them
// is faster, so that a run replays to the bit.
package ranks

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"plumb/tensor"
)

// Rank is one of the ranks of a Run, used by its goroutine alone.
type Rank struct {
	ID    int
	world *world
}

// Fault says how the ranks of a run failed: which of them are to blame, and
// where the others wait.
type Fault struct {
	Ranks   []int    // to blame
	What    string   // that they did
	Waiting []string // "rank 1 in all-gather", in the order of the ranks
	Err     error    // of a rank that failed; nil when ranks disagree or are late
}

// Error names the ranks.
func (f *Fault) Error() string {
	text := fmt.Sprintf("%s %s", numbered(f.Ranks), f.What)
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	if len(f.Waiting) > 0 {
		text += "; " + strings.Join(f.Waiting, ", ")
	}
	return text
}

// Unwrap returns the error of the rank that failed.
func (f *Fault) Unwrap() error { return f.Err }

func numbered(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var names []string
	for _, r := range ranks {
		names = append(names, fmt.Sprint(r))
	}
	return "ranks " + strings.Join(names, ", ")
}

// world is what the ranks of a run share: where each of them is.
type world struct {
	mu      sync.Mutex
	changed *sync.Cond
	states  []state
	meeting *meeting
	failure *Fault // of the ranks that failed, until no other is at work
	fault   *Fault
	spoils  Spoils
}

// Spoils is told of each exchange that a rank comes to. It may return an error,
// with which the rank dies, the name of another exchange, or return late.
type Spoils func(rank int, what string) (string, error)

type spoilsKey struct{}

// Spoilt returns a context under which ranks are at fault: so are faults of
// ranks planted that must be found.
func Spoilt(ctx context.Context, s Spoils) context.Context {
	return context.WithValue(ctx, spoilsKey{}, s)
}

// state is where a rank is: at work, waiting in an exchange, or at its end.
type state struct {
	waits string // the exchange; "" at work
	ended bool
}

// meeting is an exchange that not all ranks have come to.
type meeting struct {
	arrived int
	sent    [][]*tensor.Tensor // by sender and receiver
	full    bool
}

// Run has n ranks do body at the same time and waits for them. It fails with a
// *Fault when one of them fails or panics, when they can no longer meet, or
// when ctx ends before they do; a rank that never returns is left behind.
func Run(ctx context.Context, n int, body func(r *Rank) error) error {
	w := &world{states: make([]state, n)}
	w.spoils, _ = ctx.Value(spoilsKey{}).(Spoils)
	w.changed = sync.NewCond(&w.mu)
	var all sync.WaitGroup
	for id := range n {
		all.Go(func() { w.end(id, guarded(&Rank{id, w}, body)) })
	}
	if ctx.Done() == nil {
		all.Wait()
		return w.failed()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		w.late(ctx.Err())
	}
	return w.failed()
}

// guarded runs body; a panic is an error.
func guarded(r *Rank, body func(r *Rank) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return body(r)
}

// Exchange gives each rank what the others send it: send[i] goes to rank i, nil
// where nothing does. All ranks of the run take part and call it by the same
// name. What is sent is the receiver's too and may not be changed afterwards.
func (r *Rank) Exchange(what string, send []*tensor.Tensor) ([]*tensor.Tensor, error) {
	w := r.world
	if w.spoils != nil {
		var err error
		if what, err = w.spoils(r.ID, what); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return nil, w.fault
	}
	m := w.meeting
	if m == nil {
		m = &meeting{sent: make([][]*tensor.Tensor, len(w.states))}
		w.meeting = m
	}
	m.sent[r.ID] = send
	w.states[r.ID].waits = what
	if m.arrived++; m.arrived == len(w.states) && w.agree() {
		m.full, w.meeting = true, nil
		for i := range w.states {
			w.states[i].waits = ""
		}
		w.changed.Broadcast()
	} else {
		w.stuck()
		for !m.full && w.fault == nil {
			w.changed.Wait()
		}
	}
	if !m.full {
		return nil, w.fault
	}
	received := make([]*tensor.Tensor, len(w.states))
	for from, sent := range m.sent {
		received[from] = sent[r.ID]
	}
	return received, nil
}

// agree reports whether all ranks wait in one exchange.
func (w *world) agree() bool {
	return !slices.ContainsFunc(w.states, func(s state) bool { return s.waits != w.states[0].waits })
}

// end notes that a rank has nothing more to do.
func (w *world) end(id int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[id] = state{ended: true}
	if err != nil && w.fault == nil {
		if w.failure == nil {
			w.failure = &Fault{Ranks: []int{id}, What: "failed", Err: err}
		} else if w.failure.Ranks[0] > id {
			w.failure.Ranks[0], w.failure.Err = id, err
		}
	}
	w.stuck()
}

// stuck finds that no rank is at work while some wait or have failed: those that
// ended will not come. Only then is it known where the others wait, whichever of
// them is faster.
func (w *world) stuck() {
	var ended []int
	for id, s := range w.states {
		if !s.ended && s.waits == "" {
			return
		}
		if s.ended {
			ended = append(ended, id)
		}
	}
	switch {
	case w.failure != nil:
		w.blame(w.failure.Ranks, w.failure.What, w.failure.Err)
	case len(ended) == 0:
		what, others := w.odd()
		w.blame(others, "came to "+what, nil)
	case len(ended) < len(w.states):
		w.blame(ended, "ended without it", nil)
	}
}

// odd returns the ranks that wait in another exchange than most do, or than the
// first where as many do, and which that is.
func (w *world) odd() (what string, ranks []int) {
	count := map[string]int{}
	for _, s := range w.states {
		count[s.waits]++
	}
	most := w.states[0].waits
	for _, s := range w.states {
		if count[s.waits] > count[most] {
			most = s.waits
		}
	}
	for id, s := range w.states {
		if s.waits != most && (what == "" || s.waits == what) {
			what, ranks = s.waits, append(ranks, id)
		}
	}
	return what, ranks
}

// late blames the ranks that are at work when time is up.
func (w *world) late(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var working []int
	for id, s := range w.states {
		if !s.ended && s.waits == "" {
			working = append(working, id)
		}
	}
	if w.failure != nil {
		w.blame(w.failure.Ranks, w.failure.What, w.failure.Err)
	}
	w.blame(working, "did not come", err)
}

// blame ends the run, unless it is ended already: the first fault counts.
func (w *world) blame(ranks []int, what string, err error) {
	if w.fault != nil {
		return
	}
	f := &Fault{Ranks: ranks, What: what, Err: err}
	for id, s := range w.states {
		if s.waits != "" && !slices.Contains(ranks, id) {
			f.Waiting = append(f.Waiting, fmt.Sprintf("rank %d waits in %s", id, s.waits))
		}
	}
	w.fault = f
	w.changed.Broadcast()
}

func (w *world) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return w.fault
	}
	return nil
}
