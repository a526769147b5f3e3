package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// served is a campaign of one test on two candidates, served at a server.
type served struct {
	url   string
	db    *store.Store
	run   int64
	books *ledger.Ledger
	ended chan error
	mu    sync.Mutex
	said  []string
}

func (s *served) log(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *served) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, "\n")
}

const token = "a token of some length"

func serve(t *testing.T, cases int) *served {
	return serveAs(t, cases, ledger.Budget{}, func(*Coordinator) {})
}

// booked is a campaign of one test on two candidates in a store of its own.
func booked(t *testing.T, dir string, cases int, budget ledger.Budget) (*store.Store, *store.Campaign, *ledger.Ledger) {
	t.Helper()
	db, err := store.Open(filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c := &store.Campaign{Name: "x"}
	fixed := !budget.Is()
	parts := []store.Part{{Test: "t", Subject: "a", Depends: []byte("1"), Wanted: cases, Fixed: fixed, Most: 20}, {Test: "t", Subject: "b", Depends: []byte("2"), Wanted: cases, Fixed: fixed, Most: 20}}
	if err := db.NewCampaign(c, parts); err != nil {
		t.Fatal(err)
	}
	books, err := ledger.Open(db, c, 8, budget)
	if err != nil {
		t.Fatal(err)
	}
	return db, c, books
}

// serveAs serves one as a coordinator that is changed.
func serveAs(t *testing.T, cases int, budget ledger.Budget, change func(*Coordinator)) *served {
	t.Helper()
	dir := t.TempDir()
	s := &served{ended: make(chan error, 1)}
	server, err := Listen("127.0.0.1:0", dir, Access{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.url = server.URL
	db, c, books := booked(t, dir, cases, budget)
	s.db, s.run, s.books = db, c.ID, books
	co := &Coordinator{Books: s.books, Key: "k", Plumb: "v1", Spec: []byte("the spec"), Subjects: []string{"a", "b"}, Needs: map[string][]string{"b": {"cuda"}}, Lease: 2 * time.Second, Log: s.log}
	change(co)
	ctx, stop := context.WithCancel(context.Background())
	go func() { s.ended <- co.Run(ctx, s.url, Access{Token: token}) }()
	t.Cleanup(stop)
	return s
}

func worker(name string) *Worker {
	return &Worker{Name: name, Plumb: "v1", Subjects: []string{"a", "b"}, Tags: []string{"cuda"}, GiveUp: 20 * time.Second, Log: func(string, ...any) {}}
}

// judged is a result as a worker makes it.
func judged(u ledger.Unit, worker string) ledger.Result {
	r := ledger.Result{Unit: u.N, Judged: u.Size, Worker: worker}
	for i := u.First; i < u.First+u.Size; i++ {
		r.Cases = append(r.Cases, store.Case{Test: u.Test, Number: i, Subject: u.Subject, Word: "aligned", Outcome: report.Passed})
	}
	return r
}

// TestCoordinatorRefuses: another build, a worker that has none of the subjects, one
// without the tag, and one without the token.
func TestCoordinatorRefuses(t *testing.T) {
	s := serve(t, 8)
	for name, c := range map[string]struct {
		spoil func(*Worker)
		token string
		want  string
	}{
		"build":   {func(w *Worker) { w.Plumb = "v2" }, token, "the campaign is judged by Plumb v1, and this worker is Plumb v2"},
		"subject": {func(w *Worker) { w.Subjects = []string{"c"} }, token, "the campaign judges [a b]"},
		"tag":     {func(w *Worker) { w.Subjects, w.Tags = []string{"b"}, nil }, token, "the tags map[b:[cuda]]"},
		"token":   {func(*Worker) {}, "another token", "Authorization"},
	} {
		w := worker(name)
		c.spoil(w)
		if _, err := w.Join(t.Context(), s.url, Access{Token: c.token}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := worker("right")
	if spec, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil || string(spec) != "the spec" {
		t.Errorf("%q, %v", spec, err)
	}
	w.Leave()
}

// TestWorkersServeWhatTheyHave: a coordinator that names other subjects has none of them
// judged.
func TestWorkersServeWhatTheyHave(t *testing.T) {
	w := &Worker{Subjects: []string{"a"}, hello: welcome{Serve: []lane{{0, "a"}, {1, "./evil"}}}}
	if got := w.Serves(); len(got) != 1 || got[0] != "a" {
		t.Errorf("it serves %q", got)
	}
	if _, err := w.Take(t.Context(), "./evil", 1, time.Second); err == nil {
		t.Error("it takes units of what it does not have")
	}
}

// TestBadWorkersChangeNoCount: one takes units and vanishes, one sends garbage and
// lies, one sends all of its results twice; the last one is right.
func TestBadWorkersChangeNoCount(t *testing.T) {
	t.Parallel() // it waits
	s := serve(t, 100)
	ctx := t.Context()
	join := func(name string) *Worker {
		w := worker(name)
		if _, err := w.Join(ctx, s.url, Access{Token: token}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	take := func(w *Worker, subject string, n int) []ledger.Unit {
		units, err := w.Take(ctx, subject, n, 5*time.Second)
		if err != nil || len(units) == 0 {
			t.Fatal(units, err)
		}
		return units
	}
	vanishes := join("vanishes")
	take(vanishes, "a", 3)
	vanishes.conn.Close()

	lies := join("lies")
	u := take(lies, "a", 1)[0]
	lie := judged(u, "lies")
	lie.Cases[0].Test = "another"
	if err := lies.Done(ctx, lie); err != nil {
		t.Fatal(err)
	}
	for _, garbage := range []string{"", "garbage", "\x28\xb5\x2f\xfd\x04"} {
		if _, err := lies.js.Publish(ctx, resultSubject("k"), []byte(garbage), jetstream.WithMsgID("g"+garbage)); err != nil {
			t.Fatal(err)
		}
	}
	lies.Leave()

	again := join("again")
	for _, u := range take(again, "b", 4) {
		for range 2 {
			if err := again.Done(ctx, judged(u, "again")); err != nil {
				t.Fatal(err)
			}
		}
	}
	again.Leave()

	right := join("right")
	for over := false; !over; {
		for _, subject := range right.Serves() {
			units, err := right.Take(ctx, subject, 10, time.Second/2)
			for _, u := range units {
				err = errors.Join(err, right.Done(ctx, judged(u, "right")))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if over, err = right.Ended(ctx); err != nil {
			t.Fatal(err)
		}
	}
	right.Leave()
	if err := <-s.ended; err != nil {
		t.Fatal(err)
	}
	cases := map[string]int{}
	if err := s.db.Cases(s.run, func(c *store.Case) error { cases[fmt.Sprint(c.Subject, c.Test, c.Number)]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for key, n := range cases {
		if n != 1 {
			t.Errorf("%s is there %d times", key, n)
		}
	}
	said := s.logged()
	if len(cases) != 200 || !strings.Contains(said, "worker lies: the result of unit") || !strings.Contains(said, "cannot be read") {
		t.Errorf("%d cases; %s", len(cases), said)
	}
}

// TestListenRefuses: what is not loopback without a token and TLS; a worker that
// would send its token in the clear.
func TestListenRefuses(t *testing.T) {
	for _, by := range []Access{{}, {Token: token}} {
		if s, err := Listen("0.0.0.0:0", t.TempDir(), by); err == nil || !strings.Contains(err.Error(), "need a token and TLS") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := connect("nats://192.0.2.1:4222", Access{Token: token}, "x"); err == nil || !strings.Contains(err.Error(), "it needs tls://") {
		t.Error(err)
	}
}

// TestTokenFile: one that others may read is refused, and a short one.
func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{{token, 0o644, "others may read it"}, {"short", 0o600, "at least 16 characters"}, {token + "\n", 0o600, ""}} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadToken(path)
		if c.want == "" && (err != nil || got != token) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func FuzzDecodeResults(f *testing.F) {
	data, err := encodeResults([]ledger.Result{judged(ledger.Unit{N: 1, Test: "t", Subject: "a", Size: 3}, "w")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		results, err := decodeResults(data)
		if err == nil && len(data) == 0 && results != nil {
			t.Error("results of nothing")
		}
	})
}

// certificate writes a certificate of localhost and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTLS: beyond loopback a server takes who trusts its certificate and has the
// token, and nobody else.
func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	server, err := Listen("0.0.0.0:0", t.TempDir(), Access{Token: token, Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "tls://"))
	for name, c := range map[string]struct {
		url string
		by  Access
		ok  bool
	}{
		"right":    {"tls://127.0.0.1:" + port, Access{Token: token, CA: cert}, true},
		"no trust": {"tls://127.0.0.1:" + port, Access{Token: token}, false},
		"no token": {"tls://127.0.0.1:" + port, Access{CA: cert}, false},
		"clear":    {"nats://127.0.0.1:" + port, Access{Token: token}, false},
	} {
		conn, err := connect(c.url, c.by, name)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
}
