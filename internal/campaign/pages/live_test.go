package pages

import (
	"bufio"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// underway is a run that is being written, and a server of its store.
func underway(t *testing.T) (*Server, *store.Writer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w, err := s.Begin(&store.Run{Command: "plumb run", Wanted: 8, Subjects: []store.Subject{{Name: "torch"}, {Name: "native"}}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := store.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close() })
	return served(t, read, ""), w
}

// judged adds cases to a run, of which one fails, and what the run does then.
func judged(w *store.Writer, cases int, doing string) error {
	for i := range cases {
		c := store.Case{Test: "t.py::test_x", Number: i, Subject: "native", Operators: []string{"x"}, Outcome: report.Passed, Word: "aligned"}
		if i == 0 {
			c.Outcome, c.Word = report.Failed, "misaligned"
		}
		if err := w.Add(c); err != nil {
			return err
		}
	}
	return w.Does(doing)
}

// TestRunsUnderWay: what the pages say of a run is renewed while another process writes
// it, and ends with it.
func TestRunsUnderWay(t *testing.T) {
	v, w := underway(t)
	says := func(path string, want ...string) {
		t.Helper()
		page := get(v, path).Body.String()
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s lacks %q\n%s", path, text, page)
			}
		}
	}
	says("/runs/1", `src="/live.js"`, `data-from="/runs/1/now"`, "under way", "no verdicts yet")
	says("/now", "under way: starting")
	if err := judged(w, 3, "making failure 1 of 1 smaller"); err != nil {
		t.Fatal(err)
	}
	says("/now", `<td class="n">3</td><td class="n">2</td>`, "under way: making failure 1 of 1 smaller")
	says("/runs/1/now", "data-going", "3 verdicts", `max="8" value="3"`, "Failing so far", "t.py::test_x", "making failure 1 of 1 smaller")
	if err := w.Does(store.Judging); err != nil {
		t.Fatal(err)
	}
	says("/runs/1/now", "3 of about 8 verdicts, ")
	if strings.Contains(get(v, "/runs/1/now").Body.String(), "<html") {
		t.Error("what is renewed is a whole page")
	}
	if err := errors.Join(w.Sight(&store.Sighting{Subject: "native", Operator: "x", What: "misaligned value of x", Test: "t.py::test_x", Cases: 1}), w.End(true, 1)); err != nil {
		t.Fatal(err)
	}
	says("/runs/1/now", "with 1", "misaligned value of x")
	for _, path := range []string{"/runs/1", "/runs/1/now"} {
		if page := get(v, path).Body.String(); strings.Contains(page, "data-going") || strings.Contains(page, "live.js") {
			t.Errorf("%s of a run that has ended is renewed", path)
		}
	}
}

// TestRenewed: a browser shows what is written meanwhile, without loading the page
// again and under the policy of its pages, until the run ends.
func TestRenewed(t *testing.T) {
	node := chromium(t)
	v, w := underway(t)
	server := httptest.NewServer(v)
	defer server.Close()
	cmd := node("renewed.js", server.URL)
	steps := map[string]func() error{
		"3 of about 8":          func() error { return judged(w, 3, "judging") },
		"making failure 1 of 1": func() error { return w.Does("making failure 1 of 1 smaller") },
		"misaligned value of x": func() error {
			return w.Sight(&store.Sighting{Subject: "native", Operator: "x", What: "misaligned value of x", Test: "t.py::test_x", Cases: 1})
		},
		"with 1": func() error { return w.End(true, 1) },
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		step, ok := strings.CutPrefix(lines.Text(), "waits for ")
		if !ok {
			t.Error(lines.Text())
			continue
		}
		if err := steps[step](); err != nil {
			t.Fatal(err)
		}
		delete(steps, step)
		fmt.Fprintln(in)
	}
	if err := cmd.Wait(); err != nil || len(steps) > 0 {
		t.Errorf("%v, %d steps are left", err, len(steps))
	}
}
