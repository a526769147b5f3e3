// Package fleet judges one campaign by many processes: a coordinator, which has the
// ledger, and workers, over NATS JetStream. Units wait in a work queue; who takes
// one has it for a time that heartbeats prolong, and then it is another's. Results
// come in batches as a stream that keeps them until the ledger has them. Delivery is
// at least once; the ledger makes it exactly once.
package fleet

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"plumb/internal/campaign/ledger"
)

// Bounds of what is on the wire.
const (
	maxPayload = 8 << 20
	maxBatch   = 256 << 20 // of results, as text
	maxStream  = 4 << 30   // of results that the ledger does not have yet
	maxSpec    = 1 << 30
	maxBundle  = 1 << 30
)

// DefaultLease is how long a worker that says nothing keeps its units.
const DefaultLease = 30 * time.Second

// Access says how a connection is kept to those who may have it.
type Access struct {
	Token string // "" for none
	Cert  string // file of the server's certificate
	Key   string // file of its key
	CA    string // file of what a client trusts
}

// Server is an embedded NATS server.
type Server struct {
	nats *server.Server
	URL  string
}

// Listen starts a server at an address, HOST:PORT, with its state in a folder. Any
// address but loopback needs a token and TLS.
func Listen(address, dir string, by Access) (*Server, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.LookupPort("tcp", text)
	if err != nil {
		return nil, err
	}
	if err := May(address, by); err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	o := &server.Options{
		ServerName: "plumb", Host: host, Port: port, NoSigs: true, NoLog: true, MaxPayload: maxPayload, Authorization: by.Token,
		JetStream: true, StoreDir: filepath.Join(dir, "nats"), JetStreamMaxStore: 4 * maxStream, JetStreamMaxMemory: 64 << 20, SyncInterval: 5 * time.Second,
	}
	scheme := "nats"
	if by.Cert != "" {
		pair, err := tls.LoadX509KeyPair(by.Cert, by.Key)
		if err != nil {
			return nil, err
		}
		o.TLS, o.TLSConfig, scheme = true, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, "tls"
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("the server does not listen at %s: is the port taken?", address)
	}
	u := url.URL{Scheme: scheme, Host: s.Addr().String()}
	return &Server{s, u.String()}, nil
}

// May says why a server is not to listen at an address.
func May(address string, by Access) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if !loopback(host) && (by.Token == "" || by.Cert == "") {
		return fmt.Errorf("%s is not loopback: others than this machine need a token and TLS", address)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close ends the server; what it holds is kept in its folder.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// connect connects to a server, for as long as it takes, once it has been there.
func connect(to string, by Access, name string) (*nats.Conn, error) {
	o := []nats.Option{nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 200*time.Millisecond), nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2), nats.ReconnectBufSize(-1)}
	if by.Token != "" {
		o = append(o, nats.Token(by.Token))
	}
	if by.CA != "" {
		o = append(o, nats.RootCAs(by.CA))
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" {
		return nil, &RefusedError{to + ": want a URL such as nats://127.0.0.1:4222 or tls://host:4222"}
	}
	if !loopback(u.Hostname()) && u.Scheme != "tls" {
		return nil, &RefusedError{to + " is not loopback: it needs tls://, a token and --ca"}
	}
	return nats.Connect(to, o...)
}

// ReadToken reads a token from a file that others may not read.
func ReadToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s: others may read it; chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	token := strings.TrimSpace(string(text))
	if err == nil && len(token) < 16 {
		err = fmt.Errorf("%s: want a token of at least 16 characters", path)
	}
	return token, err
}

// protocol is the version of what workers and coordinators say to each other.
const protocol = 3

// hello is what a worker says of itself, and what it asks.
type hello struct {
	Protocol int      `json:"protocol"`
	Plumb    string   `json:"plumb"`
	Worker   string   `json:"worker"`
	Subjects []string `json:"subjects"`
	Tags     []string `json:"tags"`
	// Versions are those of the subjects that it is to start, once it knows them.
	Versions map[string]string `json:"versions,omitempty"`
}

// welcome is the coordinator's answer.
type welcome struct {
	Refused string        `json:"refused,omitempty"`
	Key     string        `json:"key"`   // of the campaign
	Serve   []lane        `json:"serve"` // what the worker may judge
	Lease   time.Duration `json:"lease"`
	Ended   bool          `json:"ended"`
}

// lane is the queue of a candidate.
type lane struct {
	Index   int    `json:"index"`
	Subject string `json:"subject"`
}

// The names on the wire.
const (
	helloSubject = "plumb.hello"
	specName     = "spec"
)

func workStream(key string) string    { return "PLUMB_WORK_" + key }
func resultStream(key string) string  { return "PLUMB_RESULTS_" + key }
func resultSubject(key string) string { return "plumb.results." + key }
func findingStream(key string) string { return "PLUMB_FINDINGS_" + key }
func bundleSubject(key string) string { return "plumb.bundles." + key }
func fileBucket(key string) string    { return "PLUMB_FILES_" + key }
func consumerName(lane int) string    { return fmt.Sprint("lane", lane) }

func findingSubject(key string, lane, finding any) string {
	return fmt.Sprintf("plumb.findings.%s.%v.%v", key, lane, finding)
}

func workSubject(key string, lane int, unit any) string {
	return fmt.Sprintf("plumb.work.%s.%d.%v", key, lane, unit)
}

// encodeResults makes a message of results.
func encodeResults(results []ledger.Result) ([]byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.EncodeAll(ledger.Pack(results), nil), nil
}

// unpacker reads messages, one after the other or several at a time.
var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBatch))
})

// decodeResults reads one, of whom ever.
func decodeResults(data []byte) ([]ledger.Result, error) {
	r, err := unpacker()
	if err != nil {
		return nil, err
	}
	text, err := r.DecodeAll(data, nil)
	if err != nil {
		return nil, err
	}
	return ledger.Unpack(text)
}
