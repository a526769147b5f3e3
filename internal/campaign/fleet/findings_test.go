package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/internal/campaign/ledger"
)

// finishAll judges every unit.
func finishAll(t *testing.T, w *Worker) {
	t.Helper()
	for _, subject := range w.Serves() {
		for range 20 {
			units, err := w.Take(t.Context(), subject, 8, time.Second/2)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range units {
				if err := w.Done(t.Context(), judged(u, w.Name)); err != nil {
					t.Fatal(err)
				}
			}
			if len(units) > 0 {
				break
			}
		}
	}
}

// TestFindingsAreLookedAt: once every unit is done, each finding is judged again by a worker
// that has its subject, and by another where that one vanishes; what it made of it is kept as
// it was sent, also where the coordinator was away meanwhile.
func TestFindingsAreLookedAt(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	by := Access{Token: token}
	server, err := Listen("127.0.0.1:0", dir, by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	_, _, books := booked(t, dir, 8, ledger.Budget{})
	kept := map[int64]string{}
	log := func(format string, args ...any) { t.Errorf(format, args...) }
	serve := func() (ended chan error, stop func()) {
		co := &Coordinator{
			Books: books, Key: "k", Plumb: "v1", Spec: []byte("the spec"), Subjects: []string{"a", "b"}, Lease: time.Second, Log: log,
			Findings: func() (all []Finding, err error) {
				for n := range int64(4) {
					if kept[n] == "" {
						all = append(all, Finding{N: n, Subject: []string{"a", "b"}[n%2], Program: fmt.Sprint("program ", n)})
					}
				}
				return all, nil
			},
			Bundled: func(b Bundle, take func(io.Writer) error) error {
				kept[b.Finding] = b.Why
				if take == nil {
					return nil
				}
				var zip strings.Builder
				if err := take(&zip); err != nil {
					kept[b.Finding] = err.Error()
				} else {
					kept[b.Finding] = zip.String() + b.Proof
				}
				return nil
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		ended = make(chan error, 1)
		go func() { ended <- co.Run(ctx, server.URL, by) }()
		return ended, stop
	}
	join := func(name string) *Worker {
		w := worker(name)
		if _, err := w.Join(t.Context(), server.URL, by); err != nil {
			t.Fatal(err)
		}
		return w
	}
	take := func(w *Worker) *Finding {
		for range 100 {
			if f, err := w.Finding(t.Context()); f != nil || err != nil {
				if err != nil || f.Program != fmt.Sprint("program ", f.N) {
					t.Errorf("%v, %v", f, err)
				}
				return f
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatal("no finding waits")
		return nil
	}
	send := func(w *Worker, n int64, content, digest string) error {
		path := filepath.Join(dir, fmt.Sprint("zip", n))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
		return w.Bundle(t.Context(), Bundle{Finding: n, Worker: w.Name, Zip: digest, Proof: ", proved"}, path)
	}
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

	ended, stop := serve()
	w := join("first")
	if f, err := w.Finding(t.Context()); f != nil || err != nil {
		t.Fatalf("before the units are done: %v, %v", f, err)
	}
	finishAll(t, w)
	gone := take(w)
	w.Leave()

	w = join("second")
	defer w.Leave()
	large := strings.Repeat("bundle ", 1<<18)
	seen := map[int64]bool{}
	for range 2 {
		f := take(w)
		seen[f.N] = true
		time.Sleep(3 * time.Second / 2) // longer than the lease
		if err := send(w, f.N, large, sum(large)); err != nil {
			t.Fatal(err)
		}
	}
	f := take(w)
	seen[f.N] = true
	if err := send(w, f.N, large, sum("another")); err == nil || !strings.Contains(err.Error(), "its SHA-256 is "+sum(large)) {
		t.Errorf("a file of another digest: %v", err)
	}
	if err := w.Bundle(t.Context(), Bundle{Finding: f.N, Zip: sum("not there")}, ""); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the coordinator: %v", err)
	}

	f = take(w)
	seen[f.N] = true
	dying, err := connect(server.URL, by, "one that dies while it is asked")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := dying.SubscribeSync(bundleSubject("k"))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- w.Bundle(t.Context(), Bundle{Finding: f.N, Why: "it does not fail again"}, "") }()
	if _, err := asked.NextMsg(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	dying.Close()
	ended, stop = serve()
	defer stop()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("the coordinator: %v", err)
	}
	if len(w.held) > 0 {
		t.Errorf("the worker still answers for %v", w.held)
	}
	counts := map[string]int{}
	for _, what := range kept {
		counts[what]++
	}
	if !seen[gone.N] || len(kept) != 4 || counts[large+", proved"] != 2 || counts["it does not fail again"] != 1 {
		t.Errorf("the finding of the worker that vanished was seen: %v; %d kept, %d bundles", seen[gone.N], len(kept), counts[large+", proved"])
	}
}

// endsWithoutBundle holds that the coordinator ends, and says that nobody looks at its finding.
func (s *served) endsWithoutBundle(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.ended:
		if err != nil || s.logged() != "no bundle of 1 of 1 findings: no worker looks at them" {
			t.Errorf("%q, %v", s.logged(), err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits")
	}
}

// TestFindingsThatNobodyLooksAt: a coordinator whose workers have gone does not wait for ever.
func TestFindingsThatNobodyLooksAt(t *testing.T) {
	t.Parallel() // it waits
	s := serveAs(t, 8, ledger.Budget{}, func(c *Coordinator) {
		c.Lease = time.Second
		c.Findings = func() ([]Finding, error) { return []Finding{{N: 1, Subject: "a"}}, nil }
	})
	w := worker("w")
	if _, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil {
		t.Fatal(err)
	}
	finishAll(t, w)
	w.Leave()
	s.endsWithoutBundle(t)
}

// TestFindingsTakeSoLong: once the time is over, what waits for no worker has no bundle, and
// what workers have, or wait for, is kept.
func TestFindingsTakeSoLong(t *testing.T) {
	t.Parallel() // it waits
	kept := 0
	s := serveAs(t, 8, ledger.Budget{}, func(c *Coordinator) {
		c.looking = time.Second
		c.Findings = func() (all []Finding, err error) {
			for n := range int64(5) {
				all = append(all, Finding{N: n, Subject: "b"})
			}
			return all, nil
		}
		c.Bundled = func(Bundle, func(io.Writer) error) error { kept++; return nil }
	})
	w := worker("w")
	if _, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	finishAll(t, w)
	for ended := false; !ended; {
		f, err := w.Finding(t.Context())
		switch {
		case err != nil:
			t.Fatal(err)
		case f == nil:
			if ended, err = w.Ended(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			time.Sleep(2 * time.Second)
			if err := w.Bundle(t.Context(), Bundle{Finding: f.N}, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-s.ended; err != nil || kept == 0 || kept == 5 || !strings.Contains(s.logged(), fmt.Sprintf("no bundle of %d of 5 findings: workers have looked for 1s", 5-kept)) {
		t.Errorf("%d kept, %v, %s", kept, err, s.logged())
	}
}

// TestFindingsThatEndWorkers: a finding that three workers took and vanished with is for no
// fourth.
func TestFindingsThatEndWorkers(t *testing.T) {
	t.Parallel() // it waits
	s := serveAs(t, 8, ledger.Budget{}, func(c *Coordinator) {
		c.Lease = 500 * time.Millisecond
		c.Findings = func() ([]Finding, error) { return []Finding{{N: 1, Subject: "a"}}, nil }
	})
	took := 0
	for n := range tries + 1 {
		w := worker(fmt.Sprint("w", n))
		if _, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			finishAll(t, w)
		}
		for ended := false; !ended; {
			f, err := w.Finding(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f != nil {
				took++
				break
			}
			if ended, err = w.Ended(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		w.Leave()
	}
	if s.endsWithoutBundle(t); took != tries {
		t.Errorf("%d took it", took)
	}
}

// TestFindingOfTheLastWorker: a coordinator whose only worker vanishes with a finding waits
// for as long as that may take, and then ends.
func TestFindingOfTheLastWorker(t *testing.T) {
	t.Parallel() // it waits
	s := serveAs(t, 8, ledger.Budget{}, func(c *Coordinator) {
		c.Lease, c.each = time.Second, time.Second
		c.Findings = func() ([]Finding, error) { return []Finding{{N: 1, Subject: "a"}}, nil }
	})
	w := worker("w")
	if _, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil {
		t.Fatal(err)
	}
	finishAll(t, w)
	for f := (*Finding)(nil); f == nil; time.Sleep(20 * time.Millisecond) {
		var err error
		if f, err = w.Finding(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.Leave()
	s.endsWithoutBundle(t)
}
