//go:build linux

package worker

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a fake worker can of the world.
const (
	calls      = 1 << iota // it connects to a server
	writes                 // a file beside the test's
	writesTemp             // one in its folder for temporary files
)

func reach() int {
	did := 0
	if c, err := net.Dial("tcp", os.Getenv("PLUMB_FAKE_SERVER")); err == nil {
		c.Close()
		did |= calls
	}
	if os.WriteFile(os.Getenv("PLUMB_FAKE_FILE"), nil, 0o600) == nil {
		did |= writes
	}
	if os.WriteFile(filepath.Join(os.TempDir(), "scratch"), nil, 0o600) == nil {
		did |= writesTemp
	}
	return did
}

// TestSandbox: a worker in a sandbox judges as ever, has no network, and writes to a
// folder of its own alone, which is removed.
func TestSandbox(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	file := filepath.Join(t.TempDir(), "file")
	t.Setenv("TMPDIR", t.TempDir())
	config := Config{Env: []string{"PLUMB_FAKE_WORKER=" + fakeHello, "PLUMB_FAKE_SERVER=" + server.Addr().String(), "PLUMB_FAKE_FILE=" + file}}
	did := func(w *Worker) any {
		out, err := w.Run(t.Context(), fakeJob("reach"))
		if err != nil {
			t.Fatal(err)
		}
		return out.Values[0].Plain
	}
	if got := did(fake(t, config)); got != int64(calls|writes|writesTemp) {
		t.Errorf("without a sandbox it can %b", got)
	}
	config.Sandbox, config.Command = true, []string{os.Args[0]}
	w, err := Open(t.Context(), config)
	if err != nil {
		if strings.Contains(err.Error(), "no sandbox") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	if got := did(w); got != int64(writesTemp) {
		t.Errorf("in a sandbox it can %b", got)
	}
	same(t, "first", runOK(t, w, new(builder).in("x", f32([]int{2}, 1, 2), false).call("y", "first")).Values[0].Tensor, f32([]int{2}, 1, 2))
	folder := w.proc.folder
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
	w.Close()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s: %v", folder, err)
	}
}
