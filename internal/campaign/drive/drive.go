// Package drive works through cases in parallel lanes: batches of cases come
// from sources, go through lanes that have backends of their own, and are handed
// on in an order that does not depend on the lanes.
package drive

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
)

// Source is where batches come from: a test that draws cases, a shard that
// holds them. One of its methods is called at a time; those of an exclusive one
// are not called while its lane runs a batch.
type Source[B any] interface {
	// Wants reports whether another batch is to be run now. What is done with
	// those under way may change that; with none under way, the source ends when
	// it wants no more.
	Wants() bool
	// Cost is what the batch that is wanted takes of Config.Limit.
	Cost() int64
	// Next returns the batch that is wanted.
	Next() B
}

// Lane has backends of its own and takes batches one after the other, in two
// steps: while it finishes a batch, it runs the next one.
type Lane[B any] interface {
	Run(ctx context.Context, batch B) error
	Finish(ctx context.Context, batch B) error
	Close() error
}

// Config says what to do. Its callbacks are called one at a time.
type Config[S Source[B], B any] struct {
	Sources []S
	Jobs    int // the number of lanes
	// Open opens a lane. It is called once there is a batch for it.
	Open func() (Lane[B], error)
	// Exclusive keeps all batches of a source in the lane that took its first.
	Exclusive bool
	// Limit bounds the cost of the batches under way, 0 does not. One that costs
	// more is run when no other is.
	Limit int64
	// Retain lets a batch count until it has been handed on, since what it holds
	// is kept until then; otherwise it counts until it is finished.
	Retain bool
	// Done, which may be nil, is told of a batch when it is finished.
	Done func(B)
	// HandOn, which may be nil, receives the finished batches source by source, and
	// those of a source in the order in which Next returned them.
	HandOn func(B)
	// End, which may be nil, is called for each source after its last batch.
	End func(S)
}

// Run runs all batches of the sources. The first error of a lane ends it, as the
// end of the context does: batches under way are dropped then, since what they
// say may have been cut short.
func Run[S Source[B], B any](ctx context.Context, cfg Config[S, B]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := newRun(cfg)
	defer context.AfterFunc(ctx, r.stop)()
	var lanes sync.WaitGroup
	for range max(cfg.Jobs, 1) {
		lanes.Go(func() {
			if err := r.lane(ctx); err != nil {
				cancel(err)
			}
		})
	}
	lanes.Wait()
	return context.Cause(ctx)
}

// run is the state that the lanes share.
type run[S Source[B], B any] struct {
	cfg Config[S, B]

	mu      sync.Mutex
	changed *sync.Cond
	sources []*source[S, B]
	ended   int   // how many sources have ended
	working int   // batches that are not finished
	held    int64 // the cost of those that count
	stopped bool
}

type source[S Source[B], B any] struct {
	own     S
	taken   bool           // by a lane, where sources are exclusive
	order   []*batch[S, B] // not handed on yet
	working int            // of these, how many are not finished
}

type batch[S Source[B], B any] struct {
	own      B
	of       *source[S, B]
	cost     int64
	finished bool
}

func newRun[S Source[B], B any](cfg Config[S, B]) *run[S, B] {
	r := &run[S, B]{cfg: cfg}
	r.changed = sync.NewCond(&r.mu)
	for _, s := range cfg.Sources {
		r.sources = append(r.sources, &source[S, B]{own: s})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handOn()
	return r
}

// lane takes batches until there are no more.
func (r *run[S, B]) lane(ctx context.Context) (err error) {
	b := r.take(nil)
	if b == nil {
		return nil
	}
	l, err := r.cfg.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	ran := make(chan *batch[S, B])
	finished := make(chan error, 1)
	go func() { finished <- r.finish(ctx, l, ran) }()
	for ; b != nil && ctx.Err() == nil; b = r.take(b.of) {
		if r.cfg.Limit > 0 && b.cost/2 >= r.cfg.Limit {
			debug.FreeOSMemory() // a batch this large needs what the others left
		}
		if err = l.Run(ctx, b.own); err != nil {
			r.stop()
			break
		}
		ran <- b
	}
	close(ran)
	return errors.Join(err, <-finished)
}

func (r *run[S, B]) finish(ctx context.Context, l Lane[B], ran <-chan *batch[S, B]) (err error) {
	for b := range ran {
		if err == nil && ctx.Err() == nil {
			err = l.Finish(ctx, b.own)
		}
		if err != nil || ctx.Err() != nil {
			r.stop()
			continue
		}
		r.done(b)
	}
	return err
}

// take returns the next batch for a lane whose last one was of a source, and
// waits while none is wanted or the limit is reached; nil at the end.
func (r *run[S, B]) take(last *source[S, B]) *batch[S, B] {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.stopped {
		s, more := r.choose(last)
		if s != nil {
			if cost := s.own.Cost(); r.fits(cost) {
				return r.begin(s, cost)
			}
		}
		if !more {
			return nil
		}
		r.changed.Wait()
	}
	return nil
}

// choose returns the first source that wants a batch, nil where none does, and
// whether a lane may get one, now or later. The lane of an exclusive source does
// not leave it before its end.
func (r *run[S, B]) choose(last *source[S, B]) (s *source[S, B], more bool) {
	if r.cfg.Exclusive && last != nil {
		switch {
		case last.own.Wants():
			return last, true
		case last.working > 0:
			return nil, true
		}
	}
	for _, s := range r.sources[r.ended:] {
		if !s.taken && s.own.Wants() {
			return s, true
		}
	}
	return nil, !r.cfg.Exclusive && r.ended < len(r.sources)
}

func (r *run[S, B]) fits(cost int64) bool {
	return r.cfg.Limit == 0 || r.working == 0 || r.held+cost <= r.cfg.Limit
}

func (r *run[S, B]) begin(s *source[S, B], cost int64) *batch[S, B] {
	b := &batch[S, B]{own: s.own.Next(), of: s, cost: cost}
	s.taken = r.cfg.Exclusive
	s.order = append(s.order, b)
	s.working++
	r.working++
	r.held += cost
	return b
}

// done takes note of a finished batch, and hands on what is now in order.
func (r *run[S, B]) done(b *batch[S, B]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.finished = true
	b.of.working--
	r.working--
	if r.cfg.Done != nil {
		r.cfg.Done(b.own)
	}
	if !r.cfg.Retain {
		r.held -= b.cost
	}
	r.handOn()
	r.changed.Broadcast()
}

// handOn hands on what is in order.
func (r *run[S, B]) handOn() {
	for r.ended < len(r.sources) {
		s := r.sources[r.ended]
		for len(s.order) > 0 && s.order[0].finished {
			b := s.order[0]
			s.order = slices.Delete(s.order, 0, 1)
			if r.cfg.HandOn != nil {
				r.cfg.HandOn(b.own)
			}
			if r.cfg.Retain {
				r.held -= b.cost
			}
		}
		if s.working > 0 || s.own.Wants() {
			return
		}
		if r.cfg.End != nil {
			r.cfg.End(s.own)
		}
		r.ended++
	}
}

// stop lets no lane take another batch.
func (r *run[S, B]) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.changed.Broadcast()
}
