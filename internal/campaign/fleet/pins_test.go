package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/internal/campaign/ledger"
)

// TestEachSubjectHasOneBuild: where builds are mixed, the first that serves a subject
// judges it, after a new start of the coordinator too; others judge the others.
func TestEachSubjectHasOneBuild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pins.json")
	pins, err := OpenPins(path)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAs(t, 8, ledger.Budget{}, func(c *Coordinator) { c.Pins = pins })
	joined := func(build string, subjects ...string) (serves []string, err error) {
		w := worker(build)
		w.Plumb, w.Subjects = build, subjects
		_, err = w.Join(t.Context(), s.url, Access{Token: token})
		if err == nil {
			serves = w.Serves()
			w.Leave()
		}
		return serves, err
	}
	for _, c := range []struct {
		build    string
		subjects []string
		want     []string
		refused  string
	}{
		{"v2", []string{"a"}, []string{"a"}, ""},
		{"v3", []string{"a", "b"}, []string{"b"}, ""},
		{"v2", []string{"a", "b"}, []string{"a"}, ""},
		{"v1", []string{"a", "b"}, nil, "each subject is judged by one build of Plumb: a by v2, b by v3; this worker is Plumb v1"},
	} {
		got, err := joined(c.build, c.subjects...)
		if c.refused == "" && (err != nil || !slices.Equal(got, c.want)) || c.refused != "" && (err == nil || err.Error() != c.refused) {
			t.Errorf("%s with %q: %q, %v", c.build, c.subjects, got, err)
		}
	}
	if !strings.Contains(s.logged(), "b is judged by Plumb v3 from now on") {
		t.Errorf("it said %q", s.logged())
	}
	if pins, err = OpenPins(path); err != nil || pins.String() != "a by v2, b by v3" {
		t.Errorf("%v, %v", pins, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPins(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// TestEachSubjectHasOneVersion: that of the first worker, whose other subjects may be of
// others; the reference's has to be the same on all of them.
func TestEachSubjectHasOneVersion(t *testing.T) {
	versions, err := OpenPins(filepath.Join(t.TempDir(), "versions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fixed []string
	s := serveAs(t, 8, ledger.Budget{}, func(c *Coordinator) {
		c.Versions, c.Reference = versions, "r"
		c.Fixed = func(subject, version string) { fixed = append(fixed, subject+" "+version) }
	})
	for i, c := range []struct {
		has     map[string]string
		want    []string
		refused string
	}{
		{map[string]string{"r": "1", "a": "2"}, []string{"a", "b"}, ""},
		{map[string]string{"r": "1", "a": "2", "b": "3"}, []string{"a", "b"}, ""},
		{map[string]string{"r": "1", "a": "3", "b": "3"}, []string{"b"}, ""},
		{map[string]string{"r": "1", "a": "3", "b": "4"}, nil, "the campaign's b is 3, and this worker's is 4: two versions may compute differently"},
		{map[string]string{"r": "2", "a": "2", "b": "3"}, nil, "the campaign's r is 1, and this worker's is 2: two versions may compute differently"},
	} {
		w := worker(fmt.Sprint("w", i))
		if _, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil {
			t.Fatal(err)
		}
		w.Versions = c.has
		_, err := w.Ended(t.Context())
		if c.refused == "" && (err != nil || !slices.Equal(w.Serves(), c.want)) || c.refused != "" && (err == nil || err.Error() != c.refused) {
			t.Errorf("%v: %q, %v", c.has, w.Serves(), err)
		}
		w.Leave()
	}
	if got := strings.Join(fixed, ", "); got != "r 1, a 2, b 3" {
		t.Error(got)
	}

	w := worker("w0")
	if _, err := w.Join(t.Context(), s.url, Access{Token: token}); err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	w.Versions = map[string]string{"r": "1", "a": "3"}
	const want = "a has changed while it was judged: it was 2, and is 3 now; the verdicts are of both"
	if _, err := w.Ended(t.Context()); err == nil || err.Error() != want {
		t.Errorf("a worker's subject that has changed: %v", err)
	}
	var changed *ChangedError
	if err := <-s.ended; !errors.As(err, &changed) || err.Error() != want {
		t.Errorf("the coordinator: %v", err)
	}
}
