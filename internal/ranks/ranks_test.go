package ranks

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"plumb/tensor"
)

// told sends every rank the sender's number.
func told(r *Rank, n int, what string) ([]*tensor.Tensor, error) {
	send := make([]*tensor.Tensor, n)
	for i := range send {
		send[i] = tensor.Scalar(tensor.F64, complex(float64(10*r.ID+i), 0))
	}
	return r.Exchange(what, send)
}

func TestExchange(t *testing.T) {
	const n, rounds = 4, 100
	err := Run(context.Background(), n, func(r *Rank) error {
		for range rounds {
			got, err := told(r, n, "all-to-all")
			if err != nil {
				return err
			}
			for from, x := range got {
				if want := float64(10*from + r.ID); x.Float(0) != want {
					t.Errorf("rank %d has %v of rank %d, want %v", r.ID, x.Float(0), from, want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFaults(t *testing.T) {
	late, cancel := context.WithCancel(context.Background())
	var coming sync.WaitGroup
	coming.Add(2)
	defer cancel()
	hang := make(chan struct{})
	defer close(hang)
	for name, c := range map[string]struct {
		ctx  context.Context
		body func(r *Rank) error
		want []string
	}{
		"a rank fails": {context.Background(), func(r *Rank) error {
			if r.ID == 1 {
				return errors.New("no memory")
			}
			_, err := told(r, 3, "all-reduce")
			return err
		}, []string{"rank 1 failed: no memory; rank 0 waits in all-reduce, rank 2 waits in all-reduce"}},
		"a rank panics": {context.Background(), func(r *Rank) error {
			if r.ID == 2 {
				panic("index out of range")
			}
			return nil
		}, []string{"rank 2 failed: panic: index out of range"}},
		"a rank ends early": {context.Background(), func(r *Rank) error {
			if r.ID == 0 {
				return nil
			}
			_, err := told(r, 3, "all-gather")
			return err
		}, []string{"rank 0 ended without it", "rank 1 waits in all-gather, rank 2 waits in all-gather"}},
		"ranks disagree": {context.Background(), func(r *Rank) error {
			what := "all-reduce"
			if r.ID == 1 {
				what = "broadcast"
			}
			_, err := told(r, 3, what)
			return err
		}, []string{"rank 1 came to broadcast; rank 0 waits in all-reduce, rank 2 waits in all-reduce"}},
		"a rank hangs": {late, func(r *Rank) error {
			if r.ID == 2 {
				coming.Wait()
				time.Sleep(100 * time.Millisecond) // for them to wait
				cancel()
				<-hang
			}
			coming.Done()
			_, err := told(r, 3, "reduce-scatter")
			return err
		}, []string{"rank 2 did not come", "rank 0 waits in reduce-scatter, rank 1 waits in reduce-scatter"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(c.ctx, 3, c.body)
			var f *Fault
			if !errors.As(err, &f) {
				t.Fatalf("%v is no fault of ranks", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
