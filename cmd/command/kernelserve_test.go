package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"plumb/backend/worker"
)

// served asks a server for judgements of functions of outward.py, one after the other.
func served(t *testing.T, requests string) map[string]map[string]any {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("workers are forked on Linux alone")
	}
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	cmd := newKernelServe()
	var out bytes.Buffer
	cmd.SetArgs([]string{"--jobs", "1"})
	cmd.SetIn(strings.NewReader(requests))
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	answers := map[string]map[string]any{}
	for line := range strings.Lines(out.String()) {
		var a map[string]any
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		answers[fmt.Sprint(a["id"])] = a
	}
	return answers
}

func TestKernelServe(t *testing.T) {
	file, err := filepath.Abs("../../internal/onekernel/testdata/outward.py")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id, name string) string {
		return fmt.Sprintf(`{"id": %q, "kernel": %q, "against": "torch.relu", "dtypes": ["float32"], "seed": 1, "number": 2}`+"\n", id, file+"::"+name)
	}
	answers := served(t, ask("first", "fine")+ask("dies", "dies")+ask("again", "fine")+
		`{"id": "own", "source": "def f(input):\n    return input.abs()\n", "function": "f", "against": "torch.relu", "seed": 1, "number": 2}`+"\n"+
		`{"id": "flag", "bundle": "/tmp/x"}`+"\n"+`{"id": "none", "kernal": "x"}`+"\n"+"no JSON\n"+
		`{"id": "long", "source": "`+strings.Repeat("x", largestRequest)+"\"}\n"+ask("last", "fine"))
	for id, want := range map[string]string{"first": "right", "dies": "unsafe", "again": "right", "own": "wrong", "last": "right"} {
		if got := answers[id]["verdict"]; got != want {
			t.Errorf("%s: %v, want %s: %v", id, got, want, answers[id])
		}
	}
	for _, id := range []string{"flag", "none"} {
		if answers[id]["error"] == nil {
			t.Errorf("%s: no error, but %v", id, answers[id])
		}
	}
	if answers["first"]["score"] != 1.0 || answers["dies"]["score"] != 0.0 {
		t.Errorf("scores %v and %v, want 1 and 0", answers["first"]["score"], answers["dies"]["score"])
	}
	for _, a := range answers {
		delete(a, "seconds")
		delete(a, "id")
	}
	if first, last := fmt.Sprint(answers["first"]), fmt.Sprint(answers["last"]); first != last {
		t.Errorf("the same request is answered by\n%s\nand by\n%s", first, last)
	}
}

// TestKernelServeOutlivesItsParent: a judgement whose process was a fork of one that has
// ended meanwhile is made again, and tells nothing of it.
func TestKernelServeOutlivesItsParent(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	source := fmt.Sprintf(`import os, signal, time, torch
if not os.path.exists(%[1]q):
    open(%[1]q, "w").close()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(5)
def f(input):
    return torch.where(input <= 0, torch.zeros_like(input), input)
`, seen)
	text, err := json.Marshal(source)
	if err != nil {
		t.Fatal(err)
	}
	a := served(t, fmt.Sprintf(`{"id": 1, "source": %s, "function": "f", "against": "torch.relu", "dtypes": ["float32"], "no-sandbox": true, "seed": 1, "number": 2}`+"\n", text))["1"]
	if _, err := os.Stat(seen); err != nil || a["verdict"] != "right" {
		t.Errorf("%v, %v", err, a)
	}
}

// TestKernelServeCompiles: what is launched in Triton is compiled, by a fork of the process
// that has imported its interpreter.
func TestKernelServeCompiles(t *testing.T) {
	slow(t)
	python := kernelPythons(t)["triton"]
	if python == "" {
		t.Skip("no Python here has Triton: PLUMB_KERNELS_PYTHON lists more")
	}
	file, err := filepath.Abs("testdata/kernels/functions/triton_add.py")
	if err != nil {
		t.Fatal(err)
	}
	a := served(t, fmt.Sprintf(`{"id": 1, "kernel": %q, "against": "torch.add", "inputs": "input: f32[N], other: f32[N]", "no-grad": true, "python": %q, "seed": 1, "number": 2}`+"\n", file+"::add", python))["1"]
	if a["verdict"] != "right" || !strings.Contains(fmt.Sprint(a["notes"]), "compiled for sm_80") {
		t.Errorf("%v", a)
	}
}

func TestKernelServeOnLoopbackAlone(t *testing.T) {
	for address, ok := range map[string]bool{"127.0.0.1:80": true, "localhost:1": true, "[::1]:80": true, ":80": false, "0.0.0.0:80": false, "10.0.0.1:80": false, "example.org:80": false} {
		if err := loopback(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	s := &kernelServer{slots: make(chan struct{}, 1), deadline: 1}
	for _, test := range []struct {
		host, origin string
		status       int
	}{{"127.0.0.1:80", "", http.StatusOK}, {"evil.example", "", http.StatusForbidden}, {"127.0.0.1:80", "http://evil.example", http.StatusForbidden}} {
		r := httptest.NewRequest("POST", "/kernel", strings.NewReader("{}"))
		r.Host = test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%+v: status %d", test, w.Code)
		}
	}
}
