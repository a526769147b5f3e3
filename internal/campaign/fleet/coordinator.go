package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"plumb/internal/campaign/ledger"
)

// Coordinator hands out the units of a ledger and takes in results.
type Coordinator struct {
	Books    *ledger.Ledger
	Key      string            // of the campaign: letters, digits and -
	Plumb    string            // the build that judges it, unless there are Pins
	Pins     *Pins             // nil where workers have to be of this build
	Spec     []byte            // what workers are told
	Files    map[string]string // that workers may ask for: paths, by the SHA-256 of what is in them
	Subjects []string
	// Versions are those of the reference and the subjects; nil where they may differ. Fixed
	// is told of each.
	Versions  *Pins
	Reference string
	Fixed     func(subject, version string)
	Needs     map[string][]string // tags of the machine, by subject
	Lease     time.Duration
	Again     bool // workers may be waiting for it since it was killed
	Log       func(format string, args ...any)
	// Counted is called after results have been written.
	Counted func()
	// Findings are those that workers are to look at once every unit is done, nil for none;
	// Bundled keeps what became of each: take writes the zip file of its bundle, nil for none.
	Findings func() ([]Finding, error)
	Bundled  func(b Bundle, take func(to io.Writer) error) error

	conn    *nats.Conn
	js      jetstream.JetStream
	bucket  jetstream.ObjectStore
	results jetstream.Consumer
	ended   chan struct{}
	looking time.Duration // how long findings are handed out; 0 for lookingAll
	each    time.Duration // how long a worker may look at one; 0 for Looking
	idle    int           // rounds without results
	purged  bool          // of units that no worker has, once the time is over
	unheld  int           // how many these were

	mu      sync.Mutex
	workers map[string]bool    // that have been here: whether they know that it is over
	brought map[[2]string]bool // subjects of workers, with the version that the campaign has
	changed *ChangedError
}

// ChangedError is that of a subject which became another while it was judged.
type ChangedError struct{ Subject, Was, Is string }

// Error says what it was and is.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s has changed while it was judged: it was %s, and is %s now; the verdicts are of both", e.Subject, e.Was, e.Is)
}

// window is how many units of a subject wait in the queue: enough for every worker
// to have some, and few enough for the queue to be small.
const window = 512

// Run serves the campaign at a server until it is over or the context ends.
func (c *Coordinator) Run(ctx context.Context, url string, by Access) (err error) {
	if c.conn, err = connect(url, by, "plumb coordinator"); err != nil {
		return err
	}
	defer c.conn.Close()
	if c.js, err = jetstream.New(c.conn); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	c.ended = make(chan struct{})
	sub, err := c.conn.Subscribe(helloSubject, c.welcome)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection closes
	// What came while nobody was here is counted before anything is handed out again.
	for more := true; more; {
		if more, err = c.take(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	for !c.Books.Over() {
		if err := c.mixed(); err != nil {
			return err
		}
		if err := c.handOut(ctx); err != nil {
			return err
		}
		some, err := c.take(ctx, round)
		if err != nil {
			return err
		}
		if c.idle++; some {
			c.idle = 0
		}
	}
	if err := c.bundles(ctx); err != nil {
		return err
	}
	return cmp.Or(c.farewell(ctx), c.mixed())
}

// mixed is the error of a subject that has changed in the hands of a worker.
func (c *Coordinator) mixed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		return nil
	}
	return c.changed
}

// open makes the streams and their consumers, where they are not there.
func (c *Coordinator) open(ctx context.Context) error {
	work, err := c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: workStream(c.Key), Subjects: []string{fmt.Sprintf("plumb.work.%s.>", c.Key)}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	})
	if err != nil {
		return err
	}
	for i := range c.Subjects {
		if _, err := work.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName(i), FilterSubject: workSubject(c.Key, i, "*"), AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.Lease, MaxAckPending: 1 << 16,
		}); err != nil {
			return err
		}
	}
	stream, err := c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: resultStream(c.Key), Subjects: []string{resultSubject(c.Key)}, Retention: jetstream.WorkQueuePolicy,
		MaxBytes: maxStream, Discard: jetstream.DiscardNew, Duplicates: 10 * time.Minute,
	})
	if err != nil {
		return err
	}
	c.results, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: "ledger", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 5 * time.Minute})
	if err != nil {
		return err
	}
	if err := c.openFindings(ctx); err != nil {
		return err
	}
	if c.bucket, err = c.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: fileBucket(c.Key)}); err != nil {
		return err
	}
	if err := c.keepFiles(ctx); err != nil {
		return err
	}
	_, err = c.bucket.PutBytes(ctx, specName, c.Spec)
	return err
}

// welcome answers a worker.
func (c *Coordinator) welcome(m *nats.Msg) {
	var h hello
	w := welcome{Key: c.Key, Lease: c.Lease}
	select {
	case <-c.ended:
		w.Ended = true
	default:
	}
	switch err := json.Unmarshal(m.Data, &h); {
	case err != nil:
		w.Refused = "a greeting that cannot be read"
	case h.Protocol != protocol:
		w.Refused = fmt.Sprintf("the coordinator is Plumb %s, and this worker is Plumb %s, which talks to coordinators otherwise", c.Plumb, h.Plumb)
	case h.Plumb != c.Plumb && c.Pins == nil:
		w.Refused = fmt.Sprintf("the campaign is judged by Plumb %s, and this worker is Plumb %s: two versions may judge differently; use the same program, or serve with --mixed", c.Plumb, h.Plumb)
	default:
		w.Serve, w.Refused = c.serves(&h)
		if err := c.mixed(); err != nil {
			w.Refused = err.Error()
		}
	}
	if w.Refused != "" {
		c.Log("worker %q is refused: %s", h.Worker, w.Refused)
	}
	if text, err := json.Marshal(w); err == nil {
		defer c.greet(h.Worker, w.Ended || w.Refused != "")
		_ = m.Respond(text) // the worker asks again
	}
}

// serves are the queues of which a worker may take, or why there are none.
func (c *Coordinator) serves(h *hello) (serve []lane, refused string) {
	pinned, other := false, ""
	if refused = c.another(h, c.Reference); refused != "" {
		return nil, refused
	}
	for i, s := range c.Subjects {
		if !slices.Contains(h.Subjects, s) || slices.ContainsFunc(c.Needs[s], func(tag string) bool { return !slices.Contains(h.Tags, tag) }) {
			continue
		}
		if c.Pins != nil {
			is, fresh, err := c.Pins.may(s, h.Plumb)
			switch {
			case err != nil:
				c.Log("%s cannot be pinned to a build: %v", s, err)
			case fresh:
				c.Log("%s is judged by Plumb %s from now on", s, h.Plumb)
			}
			if !is {
				pinned = true
				continue
			}
		}
		if why := c.another(h, s); why != "" {
			other = why
			continue
		}
		serve = append(serve, lane{i, s})
	}
	switch {
	case serve != nil:
	case other != "":
		refused = other
	case pinned:
		refused = fmt.Sprintf("each subject is judged by one build of Plumb: %s; this worker is Plumb %s", c.Pins, h.Plumb)
	default:
		refused = fmt.Sprintf("the campaign judges %v, needing the tags %v; this worker has %v and the tags %v", c.Subjects, c.Needs, h.Subjects, h.Tags)
	}
	return serve, refused
}

// another says that a worker's subject is of another version than the campaign's; "" where
// it is not, or is not known.
func (c *Coordinator) another(h *hello, subject string) string {
	version := h.Versions[subject]
	if c.Versions == nil || version == "" {
		return ""
	}
	is, fresh, err := c.Versions.may(subject, version)
	c.mu.Lock()
	defer c.mu.Unlock()
	at := [2]string{h.Worker, subject}
	if c.brought == nil {
		c.brought = map[[2]string]bool{}
	}
	c.brought[at] = c.brought[at] || is
	switch {
	case err != nil: // such as a full disk: it is asked again
		c.Log("the version of %s cannot be kept: %v", subject, err)
		return ""
	case fresh:
		c.Log("%s is %s", subject, version)
		c.Fixed(subject, version)
		return ""
	case is:
		return ""
	case c.brought[at]:
		c.changed = &ChangedError{subject, c.Versions.of(subject), version}
		return c.changed.Error()
	}
	return fmt.Sprintf("the campaign's %s is %s, and this worker's is %s: two versions may compute differently", subject, c.Versions.of(subject), version)
}

// handOut fills the queues while there is time. Once it is over, the units that workers
// have are waited for, until all of them are silent for as long as a worker may be.
func (c *Coordinator) handOut(ctx context.Context) error {
	if !c.Books.Spent() {
		return c.publish(ctx)
	}
	if !c.purged {
		held, err := c.purge(ctx)
		if err != nil {
			return passing(ctx, err)
		}
		c.purged, c.idle, c.unheld = true, 0, c.Books.Standing().Open-held
	}
	if c.Books.Standing().Open > c.unheld && time.Duration(c.idle)*round < c.Lease {
		return nil
	}
	return c.Books.Abandon()
}

// purge empties the queues, and returns how many units workers have.
func (c *Coordinator) purge(ctx context.Context) (held int, err error) {
	stream, err := c.js.Stream(ctx, workStream(c.Key))
	if err != nil {
		return 0, err
	}
	for i := range c.Subjects {
		consumer, err := stream.Consumer(ctx, consumerName(i))
		if err != nil {
			return 0, err
		}
		held += consumer.CachedInfo().NumAckPending
	}
	return held, stream.Purge(ctx)
}

// round is how long the coordinator waits for results before it looks after the queues.
const round = time.Second / 2

// publish fills the queues up to the window.
func (c *Coordinator) publish(ctx context.Context) error {
	stream, err := c.js.Stream(ctx, workStream(c.Key))
	if err != nil {
		return passing(ctx, err)
	}
	for i, subject := range c.Subjects {
		consumer, err := stream.Consumer(ctx, consumerName(i))
		if err != nil {
			return passing(ctx, err)
		}
		info := consumer.CachedInfo()
		queued := int(info.NumPending) + info.NumAckPending
		if queued == 0 && c.idle > 2 {
			c.Books.Recall(subject) // what nobody has and nobody answered for
		}
		units, err := c.Books.Take(subject, max(window-queued, 0))
		if err != nil {
			return err
		}
		for at, u := range units {
			if err := c.offer(ctx, i, u); err != nil {
				c.Books.Return(units[at:])
				return passing(ctx, err)
			}
		}
	}
	return nil
}

// offer puts a unit into the queue, unless it is there.
func (c *Coordinator) offer(ctx context.Context, lane int, u ledger.Unit) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return c.put(ctx, workSubject(c.Key, lane, u.N), text)
}

// put publishes a message, unless its subject has one.
func (c *Coordinator) put(ctx context.Context, subject string, text []byte) error {
	_, err := c.js.Publish(ctx, subject, text)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == maxPerSubject {
		return nil
	}
	return err
}

// maxPerSubject is the code of a message whose subject has one already.
const maxPerSubject = 10077

// passing waits after an error that may pass, such as that of a server that is away.
func passing(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(200 * time.Millisecond):
		_ = err
		return nil
	}
}

// take counts the results that are there, and says whether there were any.
func (c *Coordinator) take(ctx context.Context, wait time.Duration) (some bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	batch, err := c.results.Fetch(64, jetstream.FetchMaxWait(wait))
	if err != nil {
		return false, passing(ctx, err)
	}
	var results []ledger.Result
	var messages []jetstream.Msg
	for m := range batch.Messages() {
		messages = append(messages, m)
		got, err := decodeResults(m.Data())
		if err != nil {
			c.Log("%v; its units are judged again", err)
			continue
		}
		results = append(results, got...)
	}
	if err := c.count(results); err != nil {
		return false, err
	}
	for _, m := range messages {
		if err := m.Ack(); err != nil {
			return true, passing(ctx, err) // they come again, and are known
		}
	}
	return len(messages) > 0, nil
}

// count has results written: all of them, or each that can be one.
func (c *Coordinator) count(results []ledger.Result) error {
	if len(results) == 0 {
		return nil
	}
	err := c.Books.Finish(results)
	var wrong *ledger.WrongError
	if errors.As(err, &wrong) {
		for i := range results {
			if err = c.Books.Finish(results[i : i+1]); errors.As(err, &wrong) {
				c.Log("%v", err)
				c.Books.Again(results[i].Unit)
				err = nil
			}
			if err != nil {
				return err
			}
		}
	}
	if err == nil && c.Counted != nil {
		c.Counted()
	}
	return err
}

// linger is how long the coordinator waits at most for workers to ask whether the
// campaign has ended.
const linger = 5 * time.Second

// untold reports whether a worker that has been here does not know of the end.
func (c *Coordinator) untold() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, told := range c.workers {
		if !told {
			return true
		}
	}
	return false
}

// greet keeps that a worker was here, and what it was told.
func (c *Coordinator) greet(worker string, told bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers == nil {
		c.workers = map[string]bool{}
	}
	c.workers[worker] = told
}

// farewell tells workers that it is over, and removes the streams.
func (c *Coordinator) farewell(ctx context.Context) error {
	close(c.ended)
	for began := time.Now(); (c.untold() || c.Again && time.Since(began) < linger/2) && time.Since(began) < linger && ctx.Err() == nil; {
		time.Sleep(50 * time.Millisecond)
	}
	_ = c.conn.Flush() // the last answers
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(c.js.DeleteStream(done, workStream(c.Key)), c.js.DeleteStream(done, resultStream(c.Key)), c.js.DeleteStream(done, findingStream(c.Key)), c.js.DeleteObjectStore(done, fileBucket(c.Key)))
}
