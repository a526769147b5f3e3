package drive

import "context"

// Each calls f for every item, several at a time, and done, which may be nil,
// with what it gave, in the order of the items. The end of the context ends it.
func Each[A, B any](ctx context.Context, jobs int, items []A, f func(A) B, done func(B)) error {
	cfg := Config[*slice[A, B], *item[A, B]]{
		Sources: []*slice[A, B]{{of: items}}, Jobs: jobs,
		Open: func() (Lane[*item[A, B]], error) { return calls[A, B]{f}, nil },
	}
	if done != nil {
		cfg.HandOn = func(i *item[A, B]) { done(i.result) }
	}
	return Run(ctx, cfg)
}

type item[A, B any] struct {
	of     A
	result B
}

// slice is the source of Each.
type slice[A, B any] struct {
	of   []A
	next int
}

// Wants implements Source.
func (s *slice[A, B]) Wants() bool { return s.next < len(s.of) }

// Cost implements Source.
func (s *slice[A, B]) Cost() int64 { return 0 }

// Next implements Source.
func (s *slice[A, B]) Next() *item[A, B] {
	s.next++
	return &item[A, B]{of: s.of[s.next-1]}
}

// calls is a lane of Each.
type calls[A, B any] struct{ f func(A) B }

// Run implements Lane.
func (c calls[A, B]) Run(_ context.Context, i *item[A, B]) error {
	i.result = c.f(i.of)
	return nil
}

// Finish implements Lane.
func (calls[A, B]) Finish(context.Context, *item[A, B]) error { return nil }

// Close implements Lane.
func (calls[A, B]) Close() error { return nil }
