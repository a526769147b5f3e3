package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"plumb/backend"
)

// Lost says how a worker ended while it was asked: by a signal, its own exit, a
// time-out, or a reply that breaks the protocol.
type Lost struct{ Class, Message string }

// Error returns what happened.
func (l *Lost) Error() string { return l.Message }

// ErrOrphaned says that a process which was asked has ended with the one that it was a fork
// of, by no fault of its own; the next is no fork.
var ErrOrphaned = errors.New("the process that PyTorch's workers are forks of has ended")

// Ask sends a request of a kind beside that of running cases, as
// {"KIND": request}, and reads the answer to it. An answer {"error": …} is
// returned as an error of that text, a worker that ends as a *Lost; the next
// request starts another.
func (w *Worker) Ask(ctx context.Context, kind string, request, answer any) error {
	if err := w.start(ctx); err != nil {
		return err
	}
	w.encode.number = w.encode.next()
	asked, err := json.Marshal(map[string]any{"id": w.encode.number, kind: request})
	if err != nil {
		return err
	}
	e := encoder{buf: []byte("....")}
	e.raw(string(asked))
	reply, lost, err := w.roundTrip(ctx, e.frame())
	switch {
	case err != nil:
		return err
	case lost != nil && lost.orphaned:
		return ErrOrphaned
	case lost != nil:
		return &Lost{lost.class, lost.message}
	}
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(reply, &envelope); err != nil {
		w.drop(true)
		return &Lost{"garbage", fmt.Sprintf("its answer is no JSON: %v", err)}
	}
	var id int
	if w.encode.secret && (json.Unmarshal(envelope["id"], &id) != nil || id != w.encode.number) {
		w.drop(true)
		return &Lost{"garbage", "it answers what it was not asked"}
	}
	var refusal struct{ Error string }
	if json.Unmarshal(envelope[kind], &refusal) == nil && refusal.Error != "" {
		return errors.New(backend.Printable(refusal.Error, maxMessage))
	}
	if err := json.Unmarshal(envelope[kind], answer); err != nil {
		return fmt.Errorf("%s: its answer to %s: %w", w.info.Name, kind, err)
	}
	return nil
}

// Restart ends the process; the next request starts another.
func (w *Worker) Restart() {
	if w.proc != nil {
		w.drop(true)
	}
}

// Wait bounds each exchange from now on.
func (w *Worker) Wait(most time.Duration) { w.config.CaseTimeout = most }

// Hung sets after how long each exchange from now on has hung.
func (w *Worker) Hung(asleep, busy time.Duration) { w.config.Asleep, w.config.Busy = asleep, busy }
