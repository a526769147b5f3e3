package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"plumb/internal/campaign/ledger"
)

// Worker takes units from a coordinator and sends results.
type Worker struct {
	Name     string
	Plumb    string
	Subjects []string // that it has
	Tags     []string
	Versions map[string]string // of its subjects, once they are known
	// GiveUp is how long it waits for a coordinator that is away.
	GiveUp time.Duration
	Log    func(format string, args ...any)

	conn   *nats.Conn
	js     jetstream.JetStream
	bucket jetstream.ObjectStore // of the coordinator's files
	hello  welcome
	key    string       // of the campaign
	seen   atomic.Int64 // nanoseconds from began to the coordinator's last answer

	mu   sync.Mutex
	held map[claim]jetstream.Msg // what it has to answer for

	results chan ledger.Result
	sent    chan struct{} // closed when all results are
	count   int           // of messages, for their ids
	began   time.Time
	lease   time.Duration
}

// claim is a unit, or a finding, that a worker has taken.
type claim struct {
	finding bool
	n       int64
}

// hold keeps a message until it is answered for.
func (w *Worker) hold(c claim, m jetstream.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[c] = m
}

// release lets go of what is answered for.
func (w *Worker) release(c claim) {
	w.mu.Lock()
	m := w.held[c]
	delete(w.held, c)
	w.mu.Unlock()
	if m != nil {
		_ = m.Ack() // else it comes again, and is counted once
	}
}

// Join connects and returns what the campaign judges.
func (w *Worker) Join(ctx context.Context, url string, by Access) (spec []byte, err error) {
	w.began = time.Now()
	w.heard()
	for {
		if w.conn, err = connect(url, by, w.Name); err == nil {
			break
		}
		if no := (*RefusedError)(nil); errors.As(err, &no) {
			return nil, err
		}
		if lasting(err) || w.silence() > w.GiveUp {
			return nil, fmt.Errorf("%s: %w", url, err)
		}
		if err := wait(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	if w.js, err = jetstream.New(w.conn); err != nil {
		return nil, err
	}
	if _, err := w.Ended(ctx); err != nil {
		return nil, err
	}
	if w.bucket, err = w.js.ObjectStore(ctx, fileBucket(w.hello.Key)); err != nil {
		return nil, err
	}
	info, err := w.bucket.GetInfo(ctx, specName)
	if err != nil {
		return nil, err
	}
	if info.Size > maxSpec {
		return nil, fmt.Errorf("what the campaign judges takes %d MB", info.Size>>20)
	}
	w.key, w.lease = w.hello.Key, max(w.hello.Lease, time.Second)
	w.held, w.results, w.sent = map[claim]jetstream.Msg{}, make(chan ledger.Result, 256), make(chan struct{})
	go w.send(ctx)
	go w.beat(ctx)
	return w.bucket.GetBytes(ctx, specName)
}

// lasting reports whether an error of connecting is none that passes: a server that is
// away may be behind something that takes connections and ends them.
func lasting(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrSecureConnRequired) || errors.Is(err, nats.ErrSecureConnWanted) ||
		errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(*net.DNSError))
}

// Serves are the candidates that it may judge: of those that it has, whatever else the
// coordinator names.
func (w *Worker) Serves() []string {
	var names []string
	for _, l := range w.lanes() {
		names = append(names, l.Subject)
	}
	return names
}

func (w *Worker) lanes() []lane {
	return slices.DeleteFunc(slices.Clone(w.hello.Serve), func(l lane) bool { return !slices.Contains(w.Subjects, l.Subject) })
}

// Ended asks the coordinator whether the campaign is over, and waits for one that
// is away. A refusal is an error.
func (w *Worker) Ended(ctx context.Context) (bool, error) {
	text, err := json.Marshal(hello{protocol, w.Plumb, w.Name, w.Subjects, w.Tags, w.Versions})
	if err != nil {
		return false, err
	}
	for {
		asked, cancel := context.WithTimeout(ctx, 3*time.Second)
		m, err := w.conn.RequestWithContext(asked, helloSubject, text)
		cancel()
		if err == nil {
			w.heard()
			var got welcome
			if err := json.Unmarshal(m.Data, &got); err != nil {
				return false, fmt.Errorf("the coordinator's answer: %w", err)
			}
			if got.Refused != "" {
				return false, &RefusedError{got.Refused}
			}
			if w.hello.Key != "" && w.hello.Key != got.Key {
				return true, nil // another campaign is served there
			}
			w.hello = got
			return got.Ended, nil
		}
		if w.silence() > w.GiveUp {
			return false, fmt.Errorf("no coordinator has answered for %s", w.GiveUp)
		}
		if err := wait(ctx, time.Second); err != nil {
			return false, err
		}
	}
}

// heard notes that the coordinator has answered.
func (w *Worker) heard() { w.seen.Store(int64(time.Since(w.began))) }

// silence is how long it has not.
func (w *Worker) silence() time.Duration { return time.Since(w.began) - time.Duration(w.seen.Load()) }

// RefusedError is that of a worker that the campaign does not take.
type RefusedError struct{ Why string }

// Error says why.
func (e *RefusedError) Error() string { return e.Why }

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Take takes units of a candidate, at most so many, and waits for the first.
func (w *Worker) Take(ctx context.Context, subject string, most int, patience time.Duration) ([]ledger.Unit, error) {
	for _, l := range w.lanes() {
		if l.Subject == subject {
			return w.take(ctx, l.Index, most, patience)
		}
	}
	return nil, fmt.Errorf("the campaign does not judge %s", subject)
}

func (w *Worker) take(ctx context.Context, lane, most int, patience time.Duration) ([]ledger.Unit, error) {
	consumer, err := w.js.Consumer(ctx, workStream(w.hello.Key), consumerName(lane))
	if err != nil {
		return nil, w.away(ctx, err)
	}
	batch, err := consumer.Fetch(most, jetstream.FetchMaxWait(patience))
	if err != nil {
		return nil, w.away(ctx, err)
	}
	var units []ledger.Unit
	for m := range batch.Messages() {
		var u ledger.Unit
		if err := json.Unmarshal(m.Data(), &u); err != nil {
			return nil, fmt.Errorf("a unit that cannot be read: %w", err)
		}
		w.hold(claim{n: u.N}, m)
		units = append(units, u)
	}
	return units, nil
}

// away lets an error pass that a server which is away makes.
func (w *Worker) away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_ = err
	return wait(ctx, time.Second/2)
}

// Done hands a result on; it waits while the coordinator is behind.
func (w *Worker) Done(ctx context.Context, r ledger.Result) error {
	select {
	case w.results <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave sends what is left and closes the connection.
func (w *Worker) Leave() {
	if w.results == nil {
		return
	}
	close(w.results)
	<-w.sent
	w.mu.Lock()
	for _, m := range w.held {
		_ = m.Nak() // for others, at once
	}
	w.mu.Unlock()
	_ = w.conn.Flush()
	w.conn.Close()
}

// beat says that the units are being judged.
func (w *Worker) beat(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.sent:
			return
		case <-time.After(w.lease / 4):
		}
		w.mu.Lock()
		for _, m := range w.held {
			_ = m.InProgress() // the next beat says it again
		}
		w.mu.Unlock()
	}
}

// A message has the results of so many cases, or those of so long.
const (
	batchCases = 512
	batchAge   = time.Second
)

// send sends results in batches.
func (w *Worker) send(ctx context.Context) {
	defer close(w.sent)
	for r := range w.results {
		batch, cases := []ledger.Result{r}, len(r.Cases)
		late := time.After(batchAge)
		for more := true; more && cases < batchCases; {
			select {
			case another, ok := <-w.results:
				if more = ok; ok {
					batch, cases = append(batch, another), cases+len(another.Cases)
				}
			case <-late:
				more = false
			}
		}
		w.publish(ctx, batch)
	}
}

// publish sends a batch until the stream has it, then lets go of its units.
func (w *Worker) publish(ctx context.Context, batch []ledger.Result) {
	data, err := encodeResults(batch)
	if err == nil && len(data) > maxPayload-4096 {
		err = fmt.Errorf("results of %d units take %d MB", len(batch), len(data)>>20)
	}
	if err != nil {
		w.Log("%v", err)
		return // their time runs out, and another worker has them
	}
	w.count++
	id := fmt.Sprintf("%s-%d-%d", w.Name, w.began.UnixNano(), w.count)
	for {
		asked, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := w.js.Publish(asked, resultSubject(w.key), data, jetstream.WithMsgID(id))
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil || w.silence() > w.GiveUp && !w.conn.IsConnected() {
			return
		}
		if wait(ctx, time.Second/2) != nil {
			return
		}
	}
	for i := range batch {
		w.release(claim{n: batch[i].Unit})
	}
}
