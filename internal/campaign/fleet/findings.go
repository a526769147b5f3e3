package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Finding is a case that fails, to be judged again where its subject is, once every
// unit is done.
type Finding struct {
	N       int64  `json:"n"` // of the store
	Subject string `json:"subject"`
	Strict  bool   `json:"strict,omitempty"` // what both sides raise is to be of one class
	Program string `json:"program"`
}

// Bundle is what became of a finding.
type Bundle struct {
	Finding int64  `json:"finding"`
	Worker  string `json:"worker"`
	Zip     string `json:"zip,omitempty"` // the SHA-256 of the bundle, a zip file
	Proof   string `json:"proof,omitempty"`
	Why     string `json:"why,omitempty"` // there is none
}

// tries is how many workers may take a finding: it may be one that ends them.
const tries = 3

// Looking is how long a worker may look at a finding, and lookingAll how long findings are
// handed out.
const (
	Looking    = 5 * time.Minute
	lookingAll = 15 * time.Minute
)

// openFindings makes the queue of findings, where it is not there.
func (c *Coordinator) openFindings(ctx context.Context) error {
	stream, err := c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: findingStream(c.Key), Subjects: []string{findingSubject(c.Key, "*", "*")}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	})
	if err != nil {
		return err
	}
	for i := range c.Subjects {
		if _, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName(i), FilterSubject: findingSubject(c.Key, i, "*"), AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.Lease, MaxDeliver: tries,
		}); err != nil {
			return err
		}
	}
	return nil
}

// bundles has workers judge the findings again, and keeps what they make of them. It waits
// for as long as one of them may be at work, and then for a lease.
func (c *Coordinator) bundles(ctx context.Context) error {
	if c.Findings == nil {
		return nil
	}
	all, err := c.Findings()
	if err != nil || len(all) == 0 {
		return err
	}
	answers := make(chan *nats.Msg, 64)
	sub, err := c.conn.ChanSubscribe(bundleSubject(c.Key), answers)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection closes
	left, waits := map[string][]Finding{}, map[int64]bool{}
	for _, f := range all {
		left[f.Subject] = append(left[f.Subject], f)
		waits[f.N] = true
	}
	span := cmp.Or(c.looking, lookingAll)
	over := time.After(span)
	taken, took := uint64(0), time.Now()
	for since := time.Now(); len(waits) > 0; {
		now, held, err := c.ask(ctx, left)
		if now != taken {
			taken, took = now, time.Now()
		}
		switch {
		case err != nil:
			return err
		case held && time.Since(took) < cmp.Or(c.each, Looking)+c.Lease: // what a worker vanished with is held until another asks
			since = time.Now()
		case time.Since(since) > c.Lease:
			c.Log("no bundle of %d of %d findings: no worker looks at them", len(waits), len(all))
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-answers:
			if err := c.answered(ctx, m, waits); err != nil {
				return err
			}
			since = time.Now()
		case <-over:
			late := slices.Concat(slices.Collect(maps.Values(left))...)
			for _, f := range late {
				delete(waits, f.N)
			}
			c.Log("no bundle of %d of %d findings: workers have looked for %s", len(late), len(all), span)
			clear(left)
		case <-time.After(round):
		}
	}
	return nil
}

// ask has two findings of each subject wait for workers, while some are left. It says how
// often one was taken, and whether one is held.
func (c *Coordinator) ask(ctx context.Context, left map[string][]Finding) (taken uint64, held bool, err error) {
	for lane, subject := range c.Subjects {
		consumer, err := c.js.Consumer(ctx, findingStream(c.Key), consumerName(lane))
		if err != nil {
			return taken, held, passing(ctx, err)
		}
		info := consumer.CachedInfo()
		taken, held = taken+info.Delivered.Consumer, held || info.NumAckPending > 0
		for n := info.NumPending; n < 2 && len(left[subject]) > 0; n++ {
			f := left[subject][0]
			text, err := json.Marshal(f)
			if err != nil {
				return taken, held, err
			}
			if err := c.put(ctx, findingSubject(c.Key, lane, f.N), text); err != nil {
				return taken, held, passing(ctx, err)
			}
			left[subject] = left[subject][1:]
		}
	}
	return taken, held, nil
}

// answered keeps what a worker made of a finding, and tells it so: what cannot be a bundle
// is none.
func (c *Coordinator) answered(ctx context.Context, m *nats.Msg, waits map[int64]bool) error {
	var b Bundle
	if err := json.Unmarshal(m.Data, &b); err != nil {
		c.Log("what became of a finding cannot be read: %v", err)
		return m.Respond(nil)
	}
	if waits[b.Finding] {
		if err := c.keepBundle(ctx, b); err != nil {
			return err
		}
		delete(waits, b.Finding)
	}
	return m.Respond(nil)
}

func (c *Coordinator) keepBundle(ctx context.Context, b Bundle) error {
	if b.Zip == "" {
		return c.Bundled(b, nil)
	}
	if err := c.Bundled(b, func(to io.Writer) error { return takeFile(ctx, c.bucket, b.Zip, to, maxBundle) }); err != nil {
		return err
	}
	_ = c.bucket.Delete(ctx, b.Zip) // the end of the campaign removes it
	return nil
}

// Finding takes a finding of the candidates that the worker may judge; nil where none waits.
func (w *Worker) Finding(ctx context.Context) (*Finding, error) {
	for _, l := range w.lanes() {
		consumer, err := w.js.Consumer(ctx, findingStream(w.key), consumerName(l.Index))
		if err != nil {
			return nil, w.away(ctx, err)
		}
		batch, err := consumer.FetchNoWait(1)
		if err != nil {
			return nil, w.away(ctx, err)
		}
		for m := range batch.Messages() {
			var f Finding
			if err := json.Unmarshal(m.Data(), &f); err != nil {
				return nil, fmt.Errorf("a finding that cannot be read: %w", err)
			}
			if f.Subject != l.Subject {
				return nil, fmt.Errorf("a finding of %q among those of %s", f.Subject, l.Subject)
			}
			w.hold(claim{finding: true, n: f.N}, m)
			return &f, nil
		}
	}
	return nil, nil
}

// Bundle hands on what became of a finding, with the bundle as a zip file; "" for none. It
// waits for a coordinator that is away.
func (w *Worker) Bundle(ctx context.Context, b Bundle, zip string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	for {
		err := w.tryBundle(ctx, b.Zip, zip, text)
		if err == nil {
			w.heard()
			w.release(claim{finding: true, n: b.Finding})
			return nil
		}
		if w.conn.IsConnected() && !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if w.silence() > w.GiveUp {
			return fmt.Errorf("no coordinator has answered for %s", w.GiveUp)
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

func (w *Worker) tryBundle(ctx context.Context, digest, zip string, text []byte) error {
	if zip != "" {
		sending, cancel := context.WithTimeout(ctx, Looking)
		defer cancel()
		if err := keepFile(sending, w.bucket, digest, zip); err != nil {
			return err
		}
	}
	// One that dies while it is asked never answers; one that answers twice has kept it once.
	asked, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := w.conn.RequestWithContext(asked, bundleSubject(w.key), text)
	return err
}
