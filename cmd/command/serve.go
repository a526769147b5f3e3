package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"plumb/internal/campaign/pages"
)

// tokenVariable is the environment variable that holds the token of serve.
const tokenVariable = "PLUMB_TOKEN"

// shortestToken is as long as a token that nobody guesses, in bytes.
const shortestToken = 16

// serving is plumb serve.
type serving struct {
	store, address, token string
	cert, key, clients    string
}

func newServe() *cobra.Command {
	s := serving{address: "127.0.0.1:7531"}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show the results store to a browser: runs, findings over runs, trends, two runs compared",
		Long: `Serve answers a browser from the results store: runs and their cases, two runs
compared, findings with the runs and versions in which they were seen and their
bundles, tests and operators over runs, flaky tests, operators by subject; /metrics
is OpenMetrics. It changes nothing, and shows what is written to the store meanwhile.

It listens on the loopback. Another address needs a token, which browsers ask for as
a password (with any name) and programs send as "Authorization: Bearer TOKEN", or
certificates of those who ask (--client-ca). Without --tls-cert nothing that is sent
is encrypted.`,
		Example: `  plumb serve
  plumb serve --listen 127.0.0.1:8080 --store results.db
  PLUMB_TOKEN=$(head -c 18 /dev/urandom | base64) plumb serve --listen 0.0.0.0:7531
  plumb serve --listen 0.0.0.0:7531 --tls-cert c.pem --tls-key k.pem --client-ca team.pem`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.token = cmp.Or(s.token, os.Getenv(tokenVariable))
			return s.run(cmd)
		},
	}
	fl := cmd.Flags()
	fl.Var(inFile(&s.store), "store", "the results store (default: $"+storeVariable+", else plumb/plumb.db of the user's state folder)")
	fl.StringVar(&s.address, "listen", s.address, "the address, with port; 0 is a free one, which is printed")
	fl.StringVar(&s.token, "token", "", "ask requests for this text, of at least 16 bytes (default: $"+tokenVariable+", which other users of the machine do not see)")
	fl.Var(inFile(&s.cert), "tls-cert", "the server's certificate")
	fl.Var(inFile(&s.key), "tls-key", "the key of the certificate")
	fl.Var(inFile(&s.clients), "client-ca", "answer those alone who have a certificate of these authorities")
	needs(cmd, "tls-key", "tls-cert")
	needs(cmd, "tls-cert", "tls-key")
	needs(cmd, "client-ca", "tls-cert")
	return cmd
}

func (s *serving) run(cmd *cobra.Command) error {
	host, _, err := net.SplitHostPort(s.address)
	if err != nil {
		return usage(fmt.Errorf("--listen %s: want HOST:PORT, such as 127.0.0.1:7531", s.address))
	}
	ip := net.ParseIP(host)
	switch loopback := host == "localhost" || ip != nil && ip.IsLoopback(); {
	case s.token == "" && s.clients == "" && !loopback:
		return usage(fmt.Errorf("--listen %s is reached from other machines: give a --token or a --client-ca, or listen at 127.0.0.1", s.address))
	case s.token != "" && len(s.token) < shortestToken:
		return usage(fmt.Errorf("the token has %d bytes: want at least %d", len(s.token), shortestToken))
	}
	encrypted, err := s.tls()
	if err != nil {
		return usage(err)
	}
	db, err := openStore(s.store)
	if err != nil {
		return err
	}
	defer db.Close()
	v, err := pages.New(db, pages.Access{Token: s.token, Certificates: s.clients != ""})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return usage(err)
	}
	scheme := "http"
	if encrypted != nil {
		scheme, listener = "https", tls.NewListener(listener, encrypted)
	}
	server := v.HTTP()
	answered := make(chan struct{})
	going := context.AfterFunc(cmd.Context(), func() {
		defer close(answered)
		soon, stop := context.WithTimeout(context.Background(), grace/2)
		defer stop()
		if server.Shutdown(soon) != nil {
			_ = server.Close()
		}
	})
	fmt.Fprintf(cmd.OutOrStdout(), "%s://%s\n", scheme, listener.Addr())
	err = server.Serve(listener)
	if !going() {
		<-answered
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return &exitError{exitFault, err}
	}
	return nil
}

// tls is how connections are encrypted, and whose certificates are asked for; nil
// where they are not.
func (s *serving) tls() (*tls.Config, error) {
	if s.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.clients == "" {
		return cfg, nil
	}
	authorities, err := os.ReadFile(s.clients)
	if err != nil {
		return nil, fmt.Errorf("--client-ca: %w", err)
	}
	cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !cfg.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("--client-ca %s has no certificates", s.clients)
	}
	return cfg, nil
}
