// Package pages shows a results store to a browser: runs, findings, trends, two
// runs compared. The pages are made on the server and change nothing; the one script
// renews what they show of runs under way.
package pages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/campaign/store"
)

// The limits of a request.
const (
	deadline   = 20 * time.Second // of an answer
	atATime    = 16               // requests that wait for the store
	maxURL     = 4 << 10
	maxHeaders = 16 << 10
	maxPage    = 16 << 20 // bytes of an answer
)

//go:embed pages.css
var style []byte

//go:embed live.js
var script []byte

//go:embed pages.html
var texts string

// Server answers requests for pages.
type Server struct {
	store *store.Store
	Access
	pages *template.Template
	mux   *http.ServeMux
	room  chan struct{} // requests under way
	turn  chan struct{} // the one that reads the store

	downloads chan struct{} // under way
}

// Access is who is answered. Where nothing is asked for, requests to names of the
// loopback are answered alone, so that no page of another site can read the store by a
// name that it makes point here.
type Access struct {
	Token        string // of every request; "" asks for none
	Certificates bool   // TLS has asked every client for one
}

// New returns a server of a store.
func New(s *store.Store, a Access) (*Server, error) {
	v := &Server{store: s, Access: a, mux: http.NewServeMux(), room: make(chan struct{}, atATime), turn: make(chan struct{}, 1), downloads: make(chan struct{}, downloads)}
	var err error
	if v.pages, err = template.New("pages").Funcs(functions).Parse(texts); err != nil {
		return nil, err
	}
	for pattern, answer := range map[string]func(*request) error{
		"/{$}": (*request).runs, "/runs/{run}": (*request).run, "/runs/{run}/cases": (*request).cases, "/runs/{run}/cases/{n}": (*request).one,
		"/compare": (*request).compare, "/findings": (*request).findings, "/findings/{id}": (*request).finding, "/flaky": (*request).flaky,
		"/tests": (*request).tests, "/tests/one": (*request).test, "/operators": (*request).operators, "/operators/one": (*request).operator,
		"/matrix": (*request).matrix, "/metrics": (*request).metrics, "/badge.svg": (*request).badge, "/now": (*request).now, "/runs/{run}/now": (*request).runNow,
		"/runs/{run}/tests": (*request).runTests, "/runs/{run}/operators": (*request).runOperators,
	} {
		v.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { v.answer(w, r, answer) })
	}
	v.mux.HandleFunc("/findings/{id}/runs/{run}/bundle.zip", v.download)
	for path, file := range map[string]struct {
		kind string
		text []byte
	}{"/style.css": {"text/css; charset=utf-8", style}, "/live.js": {"text/javascript; charset=utf-8", script}} {
		v.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file.kind)
			_, _ = w.Write(file.text)
		})
	}
	return v, nil
}

// HTTP returns what listens, with its limits.
func (v *Server) HTTP() *http.Server {
	return &http.Server{Handler: v, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * deadline, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeaders}
}

// ServeHTTP answers a request, where it may be asked.
func (v *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "these pages are read only", http.StatusMethodNotAllowed)
	case len(r.RequestURI) > maxURL:
		http.Error(w, "the address is too long", http.StatusRequestURITooLong)
	case v.Token == "" && !v.Certificates && !local(r.Host):
		http.Error(w, "without --token this machine's own names are answered alone: localhost, 127.0.0.1", http.StatusForbidden)
	case v.Token != "" && !v.knows(r):
		h.Set("WWW-Authenticate", `Basic realm="plumb: any name, and the token as password", charset="UTF-8"`)
		http.Error(w, "the token is asked for: Authorization: Bearer TOKEN, or as the password", http.StatusUnauthorized)
	default:
		v.mux.ServeHTTP(w, r)
	}
}

// local reports whether a host is a name of the loopback.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// knows reports whether a request has the token.
func (v *Server) knows(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, given, ok = r.BasicAuth()
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(v.Token))
	return ok && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// request is a request under way.
type request struct {
	*http.Request
	v     *Server
	store *store.Store
	body  bytes.Buffer
	kind  string // Content-Type
}

// missing is what a request asks for and the store has not.
type missing string

// Error says what is not there.
func (m missing) Error() string { return string(m) }

// answer lets a request read the store, when its turn comes, and writes what it
// made: the whole page or an error.
func (v *Server) answer(w http.ResponseWriter, r *http.Request, make func(*request) error) {
	select {
	case v.room <- struct{}{}:
		defer func() { <-v.room }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), deadline)
	defer stop()
	select {
	case v.turn <- struct{}{}:
	case <-ctx.Done():
		http.Error(w, "the store is busy", http.StatusServiceUnavailable)
		return
	}
	one := &request{Request: r, v: v, store: v.store.Within(ctx), kind: "text/html; charset=utf-8"}
	err := make(one)
	<-v.turn
	code := http.StatusOK
	if err != nil {
		code = http.StatusInternalServerError
		if errors.As(err, new(missing)) {
			code = http.StatusNotFound
		}
		one.body.Reset()
		one.kind = "text/html; charset=utf-8"
		_ = one.page("error", map[string]any{"Title": http.StatusText(code), "Message": err.Error()})
	}
	w.Header().Set("Content-Type", one.kind)
	w.WriteHeader(code)
	_, _ = w.Write(one.body.Bytes())
}

// page makes the body from a template. What would command a terminal or hide
// text, from whatever name it came, is shown as an escape.
func (r *request) page(name string, data any) error {
	var b bytes.Buffer
	if err := r.v.pages.ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	r.body.WriteString(backend.Printable(b.String(), maxPage))
	return nil
}
