// Package conform judges a backend by recorded conformance cases under go test,
// as plumb conform run does:
//
//	func TestConformance(t *testing.T) { conform.Run(t, device{}, "baseline") }
//
// A directory holds what PyTorch did with the cases of a config, which plumb
// conform gen recorded; "" is the one that Plumb ships.
package conform

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/baselines"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/judge/verdict"
)

// Open opens the baseline in a directory; the one that Plumb ships for "".
func Open(dir string) (*baseline.Baseline, error) {
	if dir == "" {
		return baseline.OpenFS(baselines.Conformance(), "baselines/conformance")
	}
	return baseline.Open(dir)
}

type (
	// Modes choose cases and change how a candidate runs them.
	Modes = config.Modes
	// Model is a network by the operators that it is made of.
	Model = config.Model
	// Device has the rules of a device config: cases to skip and tolerances.
	Device = config.Device
)

// LoadDevice reads a device config, in the language of configs. The name is
// that of the file, for messages.
func LoadDevice(name string, src []byte) (*Device, error) { return config.LoadDevice(name, src) }

// Option changes what Run does.
type Option func(*options)

type options struct {
	functions []string
	modes     Modes
	forward   bool
	jobs      int
	open      func() (backend.Backend, error)
}

// Functions judges these functions only.
func Functions(names ...string) Option {
	return func(o *options) { o.functions = append(o.functions, names...) }
}

// Under judges under modes.
func Under(m Modes) Option { return func(o *options) { o.modes = m } }

// Forward asks for no gradient.
func Forward() Option { return func(o *options) { o.forward = true } }

// Instances judges with up to so many instances of the backend at the same
// time; 0 is one for each processor. Those beside the one that Run has are
// opened and closed by it.
func Instances(n int, open func() (backend.Backend, error)) Option {
	return func(o *options) { o.jobs, o.open = n, open }
}

// runMemory bounds what the cases under way take in Run, in bytes.
const runMemory = 1 << 30

// Run judges a backend by the baseline in a directory, or by the one that Plumb
// ships for "", as plumb conform run does: every case forward and backward and
// in place. Each function is a subtest; what is misaligned, crashes or cannot be
// judged is an error of it with the reason, what the backend does not support is
// logged and counted. A function of which nothing is supported is skipped; where
// that is so of all, the test fails.
//
// The backend is run from one goroutine at a time, and left open. A panic in its
// Run is a crash of the case; the rest runs.
func Run(t testing.TB, b backend.Backend, dir string, opts ...Option) {
	t.Helper()
	o := options{jobs: 1}
	for _, opt := range opts {
		opt(&o)
	}
	base, err := Open(dir)
	if err != nil {
		t.Fatalf("conform: %v", err)
	}
	for _, f := range o.functions {
		if !slices.Contains(base.Manifest.Functions(), f) {
			t.Fatalf("conform: the baseline has no function %s", f)
		}
	}
	kit, err := NewKit(base, o.modes)
	if err != nil {
		t.Fatalf("conform: %v", err)
	}
	kit.Forward = o.forward
	results := newResults()
	cfg := o.config(b, results)
	kit.Apply(&cfg)
	if err := base.Run(t.Context(), cfg); err != nil {
		t.Fatalf("conform: %v", err)
	}
	results.report(t)
}

func (o *options) config(b backend.Backend, results *results) baseline.RunConfig {
	first := make(chan backend.Backend, 1)
	first <- borrowed{b}
	cfg := baseline.RunConfig{
		Candidate: b.Info().Name, Jobs: o.jobs, Memory: runMemory, Predict: Predictor, OnRecord: results.add,
		Select: func(e *baseline.Entry) bool {
			return len(o.functions) == 0 || slices.Contains(o.functions, e.Function)
		},
		Open: func() (backend.Backend, error) {
			select {
			case b := <-first:
				return b, nil
			default:
				return o.open()
			}
		},
	}
	if o.open == nil {
		cfg.Jobs = 1
	} else if o.jobs < 1 {
		cfg.Jobs = runtime.NumCPU()
	}
	return cfg
}

// borrowed is a backend that its owner closes.
type borrowed struct{ backend.Backend }

func (borrowed) Close() error { return nil }

// Run takes a panic for a crash.
func (b borrowed) Run(ctx context.Context, job *backend.Job) (o *backend.Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			o, err = &backend.Outcome{Status: backend.Crashed, Class: "panic", Message: fmt.Sprint(r)}, nil
		}
	}()
	return b.Backend.Run(ctx, job)
}

// RunBatch runs the jobs in one exchange where the backend can.
func (b borrowed) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	if batcher, ok := b.Backend.(backend.Batcher); ok {
		return batcher.RunBatch(ctx, jobs)
	}
	return backend.RunEach(ctx, b, jobs)
}

// results are what was found, by function.
type results struct {
	order []string
	by    map[string]*result
	words map[verdict.Word]int
}

type result struct {
	wrong, beyond []string
	judged        int
}

func newResults() *results {
	return &results{by: map[string]*result{}, words: map[verdict.Word]int{}}
}

// add is called from one goroutine at a time.
func (r *results) add(rec *baseline.Record) {
	if rec.Skipped {
		return
	}
	f := rec.Entry.Function
	one := r.by[f]
	if one == nil {
		one = &result{}
		r.by[f], r.order = one, append(r.order, f)
	}
	name := rec.Entry.Name
	if rec.Variant != "" {
		name += " (" + rec.Variant + ")"
	}
	r.words[rec.Verdict.Word]++
	switch w := rec.Verdict.Word; {
	case w.IsFinding():
		one.wrong = append(one.wrong, fmt.Sprintf("%s: %s%s", name, rec.Verdict.Text(), rec.Program))
	case w == verdict.Unsupported:
		one.beyond = append(one.beyond, name+": "+rec.Verdict.Reason)
	default:
		one.judged++
	}
}

// report tells of each function in a subtest, where the test can have one.
func (r *results) report(t testing.TB) {
	t.Helper()
	if len(r.order) == 0 {
		t.Fatalf("conform: no case was judged")
	}
	parent, nests := t.(interface {
		Run(name string, f func(*testing.T)) bool
	})
	for _, f := range r.order {
		if one := r.by[f]; nests {
			parent.Run(f, func(t *testing.T) { one.report(t) })
		} else {
			one.report(t)
		}
	}
	if judged := slices.ContainsFunc(r.order, func(f string) bool { return r.by[f].judged+len(r.by[f].wrong) > 0 }); !judged {
		t.Error("conform: no case was judged: " + r.counts())
	}
	t.Log(r.counts())
}

func (r *result) report(t testing.TB) {
	t.Helper()
	for _, w := range r.wrong {
		t.Error(w)
	}
	if len(r.beyond) == 0 {
		return
	}
	text := fmt.Sprintf("%d unsupported, the first %s", len(r.beyond), r.beyond[0])
	if _, nested := t.(*testing.T); nested && r.judged == 0 && len(r.wrong) == 0 {
		t.Skip(text)
	}
	t.Log(text)
}

func (r *results) counts() string {
	text := ""
	for _, w := range verdict.Words {
		if n := r.words[w]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, w)
		}
	}
	return text[2:]
}
