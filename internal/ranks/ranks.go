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
	fault   *Fault
}

// state is where a rank is: at work, waiting in an exchange, or at its end.
type state struct {
	waits string // the exchange; "" at work
	ended bool
}

// meeting is an exchange that not all ranks have come to.
type meeting struct {
	what    string
	arrived int
	sent    [][]*tensor.Tensor // by sender and receiver
	full    bool
}

// Run has n ranks do body at the same time and waits for them. It fails with a
// *Fault when one of them fails or panics, when they can no longer meet, or
// when ctx ends before they do; a rank that never returns is left behind.
func Run(ctx context.Context, n int, body func(r *Rank) error) error {
	w := &world{states: make([]state, n)}
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return nil, w.fault
	}
	m := w.meeting
	if m == nil {
		m = &meeting{what: what, sent: make([][]*tensor.Tensor, len(w.states))}
		w.meeting = m
	}
	if m.what != what {
		w.states[r.ID].waits = what
		w.blame([]int{r.ID}, fmt.Sprintf("came to %s when others were in %s", what, m.what), nil)
		return nil, w.fault
	}
	m.sent[r.ID] = send
	if m.arrived++; m.arrived == len(w.states) {
		m.full, w.meeting = true, nil
		for i := range w.states {
			w.states[i].waits = ""
		}
		w.changed.Broadcast()
	} else {
		w.states[r.ID].waits = what
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

// end notes that a rank has nothing more to do.
func (w *world) end(id int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[id] = state{ended: true}
	if err != nil {
		w.blame([]int{id}, "failed", err)
	}
	w.stuck()
}

// stuck finds that no rank is at work while some wait: the ended ones will not come.
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
	if len(ended) < len(w.states) {
		w.blame(ended, "ended without it", nil)
	}
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
