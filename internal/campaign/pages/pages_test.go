package pages

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// hostile is a name that would run, hide or command something.
const hostile = "</script><script>window.hacked=1</script>\"'><img src=x onerror=window.hacked=1>\u202e\x1b[31m\x00{{.}}`javascript:window.hacked=1`"

// filled is a store of runs that have whatever there is, under a name.
func filled(t testing.TB, name string, cases int) *store.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		w, err := s.Begin(&store.Run{
			Command: "plumb run", Args: []string{"run", name}, Started: time.Unix(1_800_000_000+int64(run), 0), Seed: 7, Plumb: name,
			Environment: map[string]string{name: name}, Subjects: []store.Subject{{Name: "torch", Version: name}, {Name: name, Version: name}},
		})
		for i := 0; i < cases && err == nil; i++ {
			c := store.Case{Test: name, Number: i, Subject: name, Mode: name, Operators: []string{name, "relu"}, DTypes: "float32 int64", Outcome: report.Passed, Word: "aligned", Compared: 1, Worst: 0.5, WorstAt: name, Elapsed: time.Millisecond}
			if run == 1 && i == 0 {
				c.Outcome, c.Word, c.Kind, c.Reason, c.Text, c.Worst = report.Failed, "misaligned", name, name+"\n"+name, name, 3
			}
			err = w.Add(c)
		}
		if err == nil && run == 1 {
			err = w.Sight(&store.Sighting{Subject: name, Operator: name, What: name, Test: name, Cases: 1, Reason: name, Program: name, Bundle: name, Proof: name})
		}
		if err = errors.Join(err, w.End(true, run)); err != nil {
			t.Fatal(err)
		}
	}
	return reread(t, s, path)
}

// reread closes a store that was written and opens it to be read.
func reread(t testing.TB, s *store.Store, path string) *store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// everyPage are the addresses of all pages.
func everyPage(name string) []string {
	q := url.QueryEscape(name)
	return []string{
		"/", "/runs/1", "/runs/2", "/runs/last", "/runs/2/cases", "/runs/2/cases?outcome=failed&test=" + q, "/runs/2/cases/0", "/compare?a=1&b=2", "/compare?a=2&b=last",
		"/findings", "/findings?run=2&q=" + q, "/findings/1", "/runs/2/tests", "/runs/2/operators?after=1", "/now", "/runs/2/now", "/tests", "/tests?q=" + q, "/tests/one?name=" + q, "/operators", "/operators/one?name=relu", "/operators/one?name=" + q, "/matrix", "/matrix?q=" + q, "/flaky",
	}
}

func served(t testing.TB, s *store.Store, token string) *Server {
	t.Helper()
	v, err := New(s, Access{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func get(v *Server, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost:1"+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w
}

// elements are the names of a page's elements, read as XML; the page is such
// that it can be.
func elements(page string) (map[string]int, error) {
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	all := map[string]int{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if e, ok := token.(xml.StartElement); ok {
			all[e.Name.Local]++
			for _, a := range e.Attr {
				if name := strings.ToLower(a.Name.Local); strings.HasPrefix(name, "on") || name == "style" || strings.Contains(strings.ToLower(a.Value), "javascript:") && name == "href" && !strings.HasPrefix(a.Value, "/") {
					all["!"+name]++
				}
			}
		}
	}
}

// plainOf says what of a page is not what a plain name would make.
func plainOf(page string, want map[string]int) error {
	if !utf8.ValidString(page) {
		return errors.New("is no UTF-8")
	}
	if at := strings.IndexFunc(page, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	}); at >= 0 {
		return fmt.Errorf("holds %q", page[at:min(len(page), at+4)])
	}
	got, err := elements(page)
	if err != nil {
		return err
	}
	for name, n := range got {
		if want[name] != n {
			return fmt.Errorf("has %d <%s>, with a plain name %d", n, name, want[name])
		}
	}
	return nil
}

// FuzzNames: whatever a name holds, the pages have the elements that they have
// with a plain one, and nothing that would command or hide.
func FuzzNames(f *testing.F) {
	plain := map[string]map[string]int{}
	v := served(f, filled(f, "plain", 2), "")
	for i, path := range everyPage("plain") {
		all, err := elements(get(v, path).Body.String())
		if err != nil {
			f.Fatal(path, err)
		}
		plain[fmt.Sprint(i)] = all
	}
	for _, name := range []string{"plain", hostile, "a&b=c#d?e%2f", "\xff\xfe", "</pre></dd></table>", "{{template \"runs\"}}", "\u2066x\u2069"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name = strings.TrimSpace(name); name == "" || name == "relu" || len(name) > 200 {
			return
		}
		v := served(t, filled(t, name, 2), "")
		for i, path := range everyPage(name) {
			w := get(v, path)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d", path, w.Code)
			}
			// a name that is no UTF-8 is another one in the store
			if err := plainOf(w.Body.String(), plain[fmt.Sprint(i)]); err != nil && utf8.ValidString(name) {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// TestRequestsAreLimited: what may not be asked is refused, and nothing is written.
func TestRequestsAreLimited(t *testing.T) {
	s := filled(t, "x", 2)
	open, closed := served(t, s, ""), served(t, s, "a token of many bytes")
	basic := httptest.NewRequest(http.MethodGet, "/", nil)
	basic.SetBasicAuth("any", "a token of many bytes")
	for _, tt := range []struct {
		v      *Server
		method string
		path   string
		code   int
		header []string
	}{
		{open, "POST", "/", 405, nil}, {open, "DELETE", "/runs/1", 405, nil}, {open, "HEAD", "/", 200, nil},
		{open, "GET", "/?before=" + strings.Repeat("1", 5000), 414, nil}, {open, "GET", "/?before=x", 404, nil}, {open, "GET", "/runs/-1", 404, nil},
		{open, "GET", "/runs/99", 404, nil}, {open, "GET", "/runs/1/cases/77", 404, nil}, {open, "GET", "/compare?a=1", 404, nil}, {open, "GET", "/findings/9", 404, nil},
		{open, "GET", "/runs/1'--", 404, nil}, {open, "GET", "/runs/1/cases?outcome=lost", 404, nil}, {open, "GET", "/runs/1/tests?after=99", 200, nil}, {open, "GET", "/nothing", 404, nil},
		{closed, "GET", "/", 401, nil}, {closed, "GET", "/metrics", 401, []string{"Authorization", "Bearer a token of many byteS"}}, {closed, "GET", "/style.css", 401, nil},
		{closed, "GET", "/", 200, []string{"Authorization", "Bearer a token of many bytes"}}, {closed, "GET", "/", 200, []string{"Authorization", basic.Header.Get("Authorization")}},
	} {
		r := httptest.NewRequest(tt.method, "http://127.0.0.1:7"+tt.path, nil)
		if tt.header != nil {
			r.Header.Set(tt.header[0], tt.header[1])
		}
		w := httptest.NewRecorder()
		tt.v.ServeHTTP(w, r)
		if w.Code != tt.code {
			t.Errorf("%s %.40s: %d, want %d", tt.method, tt.path, w.Code, tt.code)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src") {
			t.Errorf("%s: policy %q", tt.path, csp)
		}
		if len(w.Result().Cookies()) > 0 {
			t.Errorf("%s sets a cookie", tt.path)
		}
	}
	for host, code := range map[string]int{"localhost": 200, "127.0.0.1:80": 200, "[::1]:80": 200, "evil.example": 403, "127.0.0.1.evil.example:80": 403, "10.0.0.1": 403} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if open.ServeHTTP(w, r); w.Code != code {
			t.Errorf("host %s: %d, want %d", host, w.Code, code)
		}
	}
	for range cap(open.room) {
		open.room <- struct{}{}
	}
	if w := get(open, "/"); w.Code != 503 {
		t.Errorf("one request too many: %d", w.Code)
	}
}

// TestPagesTell: the pages say what there is.
func TestPagesTell(t *testing.T) {
	v := served(t, filled(t, "some name", 2), "")
	for path, want := range map[string]string{
		"/": `<a href="/runs/3">3</a>`, "/runs/2": "error ÷ limit", "/runs/2/cases?outcome=failed": "misaligned", "/runs/2/cases/0": "<h2>Program</h2>",
		"/compare?a=1&b=2": "<li>1 newly failing</li>", "/compare?a=2&b=3": "<li>1 newly passing</li>", "/findings": `<a href="/runs/2">run 2</a>`,
		"/tests/one?name=some+name": "run 2, some name: 1 failed", "/operators/one?name=relu": "run 2, some name: 3", "/flaky": `<td class="n">3</td><td class="n">1</td>`, "/matrix": "2/2</a>",
	} {
		if w := get(v, path); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, lacks %q\n%.3000s", path, w.Code, want, w.Body)
		}
	}
}

// TestBadge: the badge is of the last run of a command, or of the one that is named.
func TestBadge(t *testing.T) {
	v := served(t, filled(t, "x", 2), "")
	for path, want := range map[string]string{"/badge.svg": ">2 aligned<", "/badge.svg?command=plumb+run": ">2 aligned<", "/badge.svg?run=2": ">1 finding<", "/badge.svg?run=last": ">2 aligned<"} {
		if w := get(v, path); w.Code != 200 || w.Header().Get("Content-Type") != "image/svg+xml" || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/badge.svg?command=other", "/badge.svg?run=9"} {
		if w := get(v, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestMetrics is read by prometheus_client's parser.
func TestMetrics(t *testing.T) {
	w := get(served(t, filled(t, hostile, 2), ""), "/metrics")
	page := w.Body.String()
	if !strings.HasSuffix(page, "\n# EOF\n") || !strings.Contains(page, `plumb_last_run_cases{command="plumb run",outcome="passed"} 2`) || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text; version=1.0.0") {
		t.Errorf("%s\n%s", w.Header(), page)
	}
	python := reader(t, "prometheus_client")
	cmd := exec.Command(python, "-c", `import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(sum(len(f.samples) for f in text_string_to_metric_families(sys.stdin.read())))`)
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "11" {
		t.Errorf("%v: %s", err, out)
	}
}

// reader is a Python with a module that reads what Plumb writes: that of
// PLUMB_READERS, else python3. The test is skipped without it.
func reader(t *testing.T, module string) string {
	t.Helper()
	python := os.Getenv("PLUMB_READERS")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import "+module).Run(); err != nil {
		t.Skipf("needs Python's %s: PLUMB_READERS names a Python that has it", module)
	}
	return python
}

// TestBrowser looks at all pages in Chromium: no errors on the console, nothing of a
// hostile name runs, axe-core finds nothing, and no page is wider than a phone.
func TestBrowser(t *testing.T) {
	node := chromium(t)
	server := httptest.NewServer(served(t, filled(t, hostile, 2), ""))
	defer server.Close()
	if out, err := node("browse.js", append([]string{server.URL}, slices.DeleteFunc(everyPage(hostile), func(path string) bool { return strings.HasSuffix(path, "/now") })...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// chromium makes commands that run a script of testdata in Chromium; the test is
// skipped without it.
func chromium(t *testing.T) func(script string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("chromium")
	modules := cmp.Or(os.Getenv("PLUMB_TEST_NODE_MODULES"), os.Getenv("NODE_PATH"))
	if err != nil || modules == "" {
		t.Skip("no chromium, or no PLUMB_TEST_NODE_MODULES with playwright-core and axe-core")
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(stop)
	return func(script string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("testdata", script), path}, args...)...)
		cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
		return cmd
	}
}
