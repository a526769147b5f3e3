package campaign

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"plumb/backend"
)

// TestPool: an idle instance serves whoever comes next, another is started while
// all are busy, and beyond the most one waits.
func TestPool(t *testing.T) {
	var opened, closed atomic.Int32
	p := newPool(func() (backend.Backend, error) { opened.Add(1); return &fake{closed: &closed}, nil }, 2)
	take := func(ctx context.Context) subject {
		s, err := p.take(ctx, nil)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		return s
	}
	for range 3 {
		p.give(take(t.Context()))
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d instances for one after the other", n)
	}
	a, b := take(t.Context()), take(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if s := take(ctx); s != nil || opened.Load() != 2 {
		t.Errorf("a third one of two: %d opened", opened.Load())
	}
	p.give(a)
	if s := take(t.Context()); s[0] != a[0] {
		t.Error("not the one that was given back")
	}
	p.give(b)
	if err := p.close(); err != nil || closed.Load() != 2 {
		t.Errorf("%d closed, %v", closed.Load(), err)
	}
}

// TestPoolsStartTogether: the reference and the candidates start at the same time.
func TestPoolsStartTogether(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	open := func() (backend.Backend, error) {
		all.Done()
		all.Wait() // for the others
		return &fake{closed: new(atomic.Int32)}, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	started := make(chan error, 1)
	go func() {
		_, err := openPools(&Config{Reference: open, Candidates: []Candidate{{"a", open}, {"b", open}}, Jobs: 1})
		started <- err
	}()
	select {
	case err := <-started:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("they start one after the other")
	}
}
