package command

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/internal/campaign/store"
)

// authority is a certificate that signs others.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string // a file
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key, a.pem, _ = a.issue(t, name)
	return a
}

// issue makes a certificate of a name and its key, as files; the first of an authority
// is its own.
func (a *authority) issue(t *testing.T, name string) (cert *x509.Certificate, key *ecdsa.PrivateKey, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	like := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: a.cert == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = like, key
	}
	der, err := x509.CreateCertificate(rand.Reader, like, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, certFile, keyFile
}

// serveUntil runs plumb serve and returns its address.
func serveUntil(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	cmd := newRoot()
	cmd.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	cmd.SetOut(in)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx); in.Close() }()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-ended)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSpace(address)
}

// TestServe: who listens on this machine is answered, with a token those who know it,
// with --client-ca those who have a certificate of it.
func TestServe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(&store.Run{Command: "plumb run"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	team, others := newAuthority(t, "team"), newAuthority(t, "others")
	_, _, cert, key := team.issue(t, "server")
	plain := serveUntil(t, "--store", path)
	token := serveUntil(t, "--store", path, "--token", "a token of many bytes")
	mutual := serveUntil(t, "--store", path, "--tls-cert", cert, "--tls-key", key, "--client-ca", team.pem)
	trusted := x509.NewCertPool()
	trusted.AddCert(team.cert)
	client := func(of *authority) *http.Client {
		cfg := &tls.Config{RootCAs: trusted}
		if of != nil {
			_, _, certFile, keyFile := of.issue(t, "client")
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Certificates = []tls.Certificate{pair}
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
	}
	for _, tt := range []struct {
		name, url, bearer, host string
		client                  *http.Client
		code                    int // 0 where no connection is made
	}{
		{"plain", plain, "", "", http.DefaultClient, 200},
		{"another name", plain, "", "evil.example", http.DefaultClient, 403},
		{"no token", token, "", "", http.DefaultClient, 401},
		{"a wrong token", token, "a token of many byteS", "", http.DefaultClient, 401},
		{"the token", token, "a token of many bytes", "", http.DefaultClient, 200},
		{"a certificate", mutual, "", "server", client(team), 200},
		{"another's certificate", mutual, "", "", client(others), 0},
		{"no certificate", mutual, "", "", client(nil), 0},
		{"no TLS", strings.Replace(mutual, "https", "http", 1), "", "", http.DefaultClient, 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url+"/runs/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.bearer != "" {
			r.Header.Set("Authorization", "Bearer "+tt.bearer)
		}
		r.Host = tt.host
		answer, err := tt.client.Do(r)
		code := 0
		if err == nil {
			code = answer.StatusCode
			answer.Body.Close()
		}
		if code != tt.code {
			t.Errorf("%s: %d, %v; want %d", tt.name, code, err, tt.code)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestServeRefuses: nobody listens for other machines without asking who they are.
func TestServeRefuses(t *testing.T) {
	_, _, cert, key := newAuthority(t, "a").issue(t, "server")
	for args, want := range map[string]string{
		"--listen 0.0.0.0:0": "give a --token or a --client-ca",
		"--listen 0.0.0.0:0 --tls-cert " + cert + " --tls-key " + key: "give a --token or a --client-ca",
		"--token short":       "want at least 16",
		"--client-ca " + cert: "--client-ca needs --tls-cert",
		"--tls-cert " + cert:  "--tls-cert needs --tls-key",
		"--tls-cert " + cert + " --tls-key " + key + " --client-ca " + key: "has no certificates",
		"--tls-cert " + key + " --tls-key " + key:                          "--tls-cert: ",
	} {
		if message := refusal(t, append([]string{"serve"}, strings.Fields(args)...)...); !strings.Contains(message, want) {
			t.Errorf("%s: %s, want %q", args, message, want)
		}
	}
}
