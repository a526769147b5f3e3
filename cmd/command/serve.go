package command

import (
	"cmp"
	"context"
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

func newServe() *cobra.Command {
	var path, token string
	address := "127.0.0.1:7531"
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show the results store to a browser: runs, findings over runs, trends, two runs compared",
		Long: `Serve answers a browser from the results store: runs and their cases, two runs
compared, findings with the runs and versions in which they were seen, tests and
operators over runs, flaky tests, operators by subject; /metrics is OpenMetrics. It
changes nothing, and what is written to the store meanwhile is shown.

It listens on the loopback. Another address needs a token, which browsers ask for as
a password (with any name) and programs send as "Authorization: Bearer TOKEN". What
is sent is not encrypted: put a proxy with TLS before it.`,
		Example: `  plumb serve
  plumb serve --listen 127.0.0.1:8080 --store results.db
  PLUMB_TOKEN=$(head -c 18 /dev/urandom | base64) plumb serve --listen 0.0.0.0:7531`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd, path, address, cmp.Or(token, os.Getenv(tokenVariable)))
		},
	}
	fl := cmd.Flags()
	fl.Var(inFile(&path), "store", "the results store (default: $"+storeVariable+", else plumb/plumb.db of the user's state folder)")
	fl.StringVar(&address, "listen", address, "the address, with port; 0 is a free one, which is printed")
	fl.StringVar(&token, "token", "", "ask requests for this text, of at least 16 bytes (default: $"+tokenVariable+", which other users of the machine do not see)")
	return cmd
}

func serve(cmd *cobra.Command, path, address, token string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usage(fmt.Errorf("--listen %s: want HOST:PORT, such as 127.0.0.1:7531", address))
	}
	ip := net.ParseIP(host)
	switch loopback := host == "localhost" || ip != nil && ip.IsLoopback(); {
	case token == "" && !loopback:
		return usage(fmt.Errorf("--listen %s is reached from other machines: give a --token, or listen at 127.0.0.1", address))
	case token != "" && len(token) < shortestToken:
		return usage(fmt.Errorf("the token has %d bytes: want at least %d", len(token), shortestToken))
	}
	s, err := openStore(path)
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := pages.New(s, token)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return usage(err)
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
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s\n", listener.Addr())
	err = server.Serve(listener)
	if !going() {
		<-answered
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return &exitError{exitFault, err}
	}
	return nil
}
