package drive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// piece is a batch of the tests: the n-th one of a list.
type piece struct {
	of *list
	n  int
}

// list wants so many pieces, and one more for each of its first ones that is to
// be replaced.
type list struct {
	name           string
	size, replaced int
	next           int
	cost           int64
}

func (l *list) Wants() bool { return l.next < l.size }
func (l *list) Cost() int64 { return l.cost }
func (l *list) Next() piece { l.next++; return piece{l, l.next - 1} }
func (l *list) done(p piece) {
	if p.n < l.replaced {
		l.size++
	}
}

// steps is a lane of the tests.
type steps struct {
	run, finish func(ctx context.Context, p piece) error
	closed      *atomic.Int32
}

func (s *steps) Run(ctx context.Context, p piece) error    { return s.run(ctx, p) }
func (s *steps) Finish(ctx context.Context, p piece) error { return s.finish(ctx, p) }
func (s *steps) Close() error                              { s.closed.Add(1); return nil }

func nothing(context.Context, piece) error { return nil }

// play drives lists through lanes of two steps, and returns what was handed on.
func play(t *testing.T, cfg Config[*list, piece], run, finish func(ctx context.Context, p piece) error) ([]string, error) {
	t.Helper()
	var opened, closed atomic.Int32
	var got []string
	cfg.Open = func() (Lane[piece], error) {
		opened.Add(1)
		return &steps{run, finish, &closed}, nil
	}
	finished := map[piece]bool{}
	cfg.Done = func(p piece) {
		finished[p] = true
		p.of.done(p)
	}
	cfg.HandOn = func(p piece) {
		if !finished[p] {
			t.Errorf("%s%d is handed on before it is finished", p.of.name, p.n)
		}
		got = append(got, fmt.Sprint(p.of.name, p.n))
	}
	cfg.End = func(l *list) { got = append(got, l.name+" ended") }
	err := Run(t.Context(), cfg)
	if n := opened.Load() - closed.Load(); n != 0 {
		t.Errorf("%d lanes were left open", n)
	}
	return got, err
}

func lists() []*list {
	return []*list{{name: "a", size: 7, replaced: 2, cost: 1}, {name: "b"}, {name: "c", size: 30, cost: 3}, {name: "d", size: 2, cost: 9}}
}

func wait(_ context.Context, p piece) error {
	time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
	return nil
}

// TestOrder: whatever the lanes do, the order is that of one lane.
func TestOrder(t *testing.T) {
	want, err := play(t, Config[*list, piece]{Sources: lists(), Jobs: 1}, nothing, nothing)
	if err != nil || len(want) != 9+30+2+4 || want[9] != "a ended" || want[10] != "b ended" || want[11] != "c0" {
		t.Fatal(want, err)
	}
	for _, jobs := range []int{1, 3, 8} {
		for _, exclusive := range []bool{false, true} {
			for _, retain := range []bool{false, true} {
				cfg := Config[*list, piece]{Sources: lists(), Jobs: jobs, Exclusive: exclusive, Retain: retain, Limit: 8}
				if got, err := play(t, cfg, wait, wait); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d lanes, exclusive %v, retain %v: %v\n%v\nwant\n%v", jobs, exclusive, retain, err, got, want)
				}
			}
		}
	}
}

// TestLimit: batches under way cost no more than the limit, unless one costs
// more alone.
func TestLimit(t *testing.T) {
	var held, most, alone atomic.Int64
	run := func(ctx context.Context, p piece) error {
		n := held.Add(p.of.cost)
		if p.of.cost > 8 {
			alone.Store(max(alone.Load(), n))
		}
		most.Store(max(most.Load(), n))
		return wait(ctx, p)
	}
	finish := func(_ context.Context, p piece) error { held.Add(-p.of.cost); return nil }
	if _, err := play(t, Config[*list, piece]{Sources: lists(), Jobs: 6, Limit: 8}, run, finish); err != nil || most.Load() != 9 || alone.Load() != 9 {
		t.Errorf("error %v, %d held at most, want 9; with the large one %d", err, most.Load(), alone.Load())
	}
}

// TestRetain: what waits to be handed on counts.
func TestRetain(t *testing.T) {
	for _, retain := range []bool{false, true} {
		var ran, before atomic.Int64
		run := func(_ context.Context, p piece) error {
			if p.of.name == "slow" {
				time.Sleep(50 * time.Millisecond)
				before.Store(ran.Load())
			}
			ran.Add(1)
			return nil
		}
		all := []*list{{name: "slow", size: 1, cost: 1}, {name: "x", size: 100, cost: 1}}
		if _, err := play(t, Config[*list, piece]{Sources: all, Jobs: 2, Limit: 5, Retain: retain}, run, nothing); err != nil {
			t.Fatal(err)
		}
		if n := before.Load(); retain && n != 4 || !retain && n != 100 {
			t.Errorf("retain %v: %d batches ran while one was slow", retain, n)
		}
	}
}

// TestExclusive: all batches of a source go through one lane, the next one
// while one is finished.
func TestExclusive(t *testing.T) {
	var mu sync.Mutex
	lanes := map[*list]map[*owned]bool{}
	var opened atomic.Int32
	cfg := Config[*list, piece]{Sources: []*list{{name: "a", size: 9}, {name: "b", size: 9}, {name: "c", size: 9}}, Jobs: 8, Exclusive: true}
	cfg.Open = func() (Lane[piece], error) {
		opened.Add(1)
		o := &owned{}
		o.run = func(ctx context.Context, p piece) error {
			_ = wait(ctx, p)
			mu.Lock()
			defer mu.Unlock()
			if lanes[p.of] == nil {
				lanes[p.of] = map[*owned]bool{}
			}
			lanes[p.of][o] = true
			return nil
		}
		return o, nil
	}
	if err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for l, by := range lanes {
		if len(by) != 1 {
			t.Errorf("%d lanes for %s", len(by), l.name)
		}
	}
	if n := opened.Load(); n > 3 {
		t.Errorf("%d lanes were opened for 3 sources", n)
	}
}

type owned struct {
	run func(context.Context, piece) error
}

func (o *owned) Run(ctx context.Context, p piece) error { return o.run(ctx, p) }
func (*owned) Finish(context.Context, piece) error      { return nil }
func (*owned) Close() error                             { return nil }

// TestPipeline: a lane runs a batch while it finishes the one before.
func TestPipeline(t *testing.T) {
	begun := make(chan int, 3)
	run := func(_ context.Context, p piece) error { begun <- p.n; return nil }
	finish := func(_ context.Context, p piece) error {
		for n := range 2 {
			if p.n == 0 && <-begun != n {
				return errors.New("out of order")
			}
		}
		return nil
	}
	if _, err := play(t, Config[*list, piece]{Sources: []*list{{name: "a", size: 2}}}, run, finish); err != nil {
		t.Error(err)
	}
}

// TestErrorEndsTheRun: of either step, and of a lane that does not open.
func TestErrorEndsTheRun(t *testing.T) {
	broken := errors.New("broken")
	fail := func(_ context.Context, p piece) error {
		if p.n == 3 {
			return broken
		}
		return nil
	}
	long := func() []*list { return []*list{{name: "a", size: 1 << 40}} }
	for _, step := range [][2]func(context.Context, piece) error{{fail, nothing}, {nothing, fail}} {
		got, err := play(t, Config[*list, piece]{Sources: long(), Jobs: 3}, step[0], step[1])
		if before := []string{"a0", "a1", "a2"}; !errors.Is(err, broken) || len(got) > 3 || !slices.Equal(got, before[:len(got)]) {
			t.Error(got, err)
		}
	}
	closed := Config[*list, piece]{Sources: long(), Jobs: 2, Open: func() (Lane[piece], error) { return nil, broken }}
	if err := Run(t.Context(), closed); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestCancelDropsWhatIsUnderWay: a lane that waits for its turn ends, too.
func TestCancelDropsWhatIsUnderWay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var closed atomic.Int32
	var got []int
	cfg := Config[*list, piece]{
		Sources: []*list{{name: "a", size: 100, cost: 1}}, Jobs: 4, Limit: 1,
		HandOn: func(p piece) { got = append(got, p.n) },
		Open: func() (Lane[piece], error) {
			return &steps{func(_ context.Context, p piece) error {
				if p.n == 5 {
					cancel()
				}
				return nil
			}, nothing, &closed}, nil
		},
	}
	if err := Run(ctx, cfg); !errors.Is(err, context.Canceled) || len(got) != 5 {
		t.Error(got, err)
	}
}
