package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/internal/campaign/ledger"
)

// TestFilesAreSent: a worker has the coordinator's files by what is in them; a file that
// has changed is refused, and one that was sent before a restart need not be there.
func TestFilesAreSent(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	by := Access{Token: token}
	server, err := Listen("127.0.0.1:0", dir, by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	_, _, books := booked(t, dir, 8, ledger.Budget{})
	content := bytes.Repeat([]byte("results "), 1<<17) // of several messages
	digest, path := fmt.Sprintf("%x", sha256.Sum256(content)), filepath.Join(dir, "base")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(digest string) (ended chan error, stop func()) {
		co := &Coordinator{Books: books, Key: "k", Plumb: "v1", Spec: []byte("the spec"), Files: map[string]string{digest: path}, Subjects: []string{"a"}, Lease: time.Second, Log: func(string, ...any) {}}
		ctx, stop := context.WithCancel(t.Context())
		ended = make(chan error, 1)
		go func() { ended <- co.Run(ctx, server.URL, by) }()
		return ended, stop
	}

	other := strings.Repeat("0", len(digest))
	ended, stop := serve(other)
	defer stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), path+" has changed since the campaign was begun") {
		t.Errorf("a file that has changed: %v", err)
	}

	ended, stop = serve(digest)
	w := worker("w")
	if _, err := w.Join(t.Context(), server.URL, by); err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	var got bytes.Buffer
	if err := w.File(t.Context(), digest, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d of %d bytes, %v", got.Len(), len(content), err)
	}
	if err := w.File(t.Context(), other, &got); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("a file that is not there: %v", err)
	}
	stop()
	<-ended

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	ended, stop = serve(digest)
	select {
	case err := <-ended:
		t.Errorf("without the file, which it had sent: %v", err)
	case <-time.After(2 * time.Second):
		stop()
		<-ended
	}
}
