package pages

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// seenWith is a server of a store whose findings have these bundles, each in a run.
func seenWith(t *testing.T, bundles ...string) *Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, dir := range bundles {
		w, err := s.Begin(&store.Run{Command: "plumb run", Subjects: []store.Subject{{Name: "torch"}, {Name: "native"}}})
		if err == nil {
			err = w.Add(store.Case{Test: "t", Subject: "native", Outcome: report.Failed, Word: "misaligned"})
		}
		if err == nil {
			err = w.Sight(&store.Sighting{Subject: "native", Operator: "x", What: fmt.Sprint("fails ", i), Test: "t", Cases: 1, Bundle: dir})
		}
		if err = errors.Join(err, w.End(true, 1)); err != nil {
			t.Fatal(err)
		}
	}
	return served(t, reread(t, s, path), "")
}

// bundleOf makes a folder of files; "->" before a text makes a link to it.
func bundleOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if to, ok := strings.CutPrefix(text, "->"); ok {
			err = errors.Join(err, os.Symlink(to, path))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func unzipped(b []byte) (map[string]string, error) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[f.Name] = string(text)
	}
	return files, nil
}

// TestBundles: a finding's page leads to its bundle, whole and nothing else of the
// folder; what is none, or leads out of its folder, is not sent, and the page says that
// it is not here.
func TestBundles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	finding := map[string]string{findingFile: `{"files": {"program.py": "", "inputs.safetensors": "12"}}`, "program.py": "x = 1\n", "inputs.safetensors": "\x00\x01"}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(finding)
		maps.Copy(all, more)
		return all
	}
	piped := bundleOf(t, map[string]string{findingFile: `{"files": {"pipe": ""}}`})
	if err := syscall.Mkfifo(filepath.Join(piped, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	kernel := map[string]string{"report.json": "{}", "repro.py": "import torch\n"}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, bundleOf(t, finding))
	if err != nil {
		t.Fatal(err)
	}
	many := `{"files": {`
	for i := range maxFiles + 1 {
		many += fmt.Sprintf(`"%d": "", `, i)
	}
	tests := []struct {
		dir  string
		want map[string]string // nil where it is refused
	}{
		{bundleOf(t, with(map[string]string{"notes.txt": "mine", "sub/program.py": "no"})), finding},
		{bundleOf(t, kernel), kernel},
		{bundleOf(t, map[string]string{"report.json": "{}", "id_rsa": "secret"}), nil},
		{filepath.Dir(secret), nil},
		{secret, nil},
		{bundleOf(t, with(map[string]string{findingFile: `{"files": {"../secret": ""}}`})), nil},
		{bundleOf(t, with(map[string]string{findingFile: `{"files": {"sub/program.py": ""}}`, "sub/program.py": "no"})), nil},
		{bundleOf(t, with(map[string]string{findingFile: fmt.Sprintf(`{"files": {%q: ""}}`, secret)})), nil},
		{bundleOf(t, with(map[string]string{findingFile: `{"files": {"link": ""}}`, "link": "->" + secret})), nil},
		{bundleOf(t, with(map[string]string{findingFile: `{"files": {"link": ""}}`, "link": "->program.py"})), nil},
		{bundleOf(t, with(map[string]string{findingFile: "->" + secret})), nil},
		{bundleOf(t, map[string]string{findingFile: many + `"x": ""}}`}), nil},
		{bundleOf(t, map[string]string{findingFile: `{"files": {"program.py": ""}}`}), nil},
		{bundleOf(t, map[string]string{findingFile: `{"files`}), nil},
		{piped, nil}, {relative, nil}, {filepath.Join(t.TempDir(), "gone"), nil},
	}
	var dirs []string
	for _, tt := range tests {
		dirs = append(dirs, tt.dir)
	}
	v := seenWith(t, dirs...)
	for i, tt := range tests {
		link := fmt.Sprintf("/findings/%d/runs/%d/bundle.zip", i+1, i+1)
		page, w := get(v, fmt.Sprintf("/findings/%d", i+1)).Body.String(), get(v, link)
		if tt.want == nil {
			if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "PK") || strings.Contains(page, link) || !strings.Contains(page, "is no longer on this machine") {
				t.Errorf("%d, %s: %d\n%s", i, tt.dir, w.Code, page)
			}
			continue
		}
		files, err := unzipped(w.Body.Bytes())
		if err != nil || !maps.Equal(files, tt.want) || !strings.Contains(page, link) {
			t.Errorf("%d: %v, %d, %v\n%s", i, err, w.Code, slices.Collect(maps.Keys(files)), page)
		}
		if kind := w.Header().Get("Content-Type"); kind != "application/zip" || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment;") {
			t.Errorf("%d: %s", i, w.Header())
		}
	}
	for path, code := range map[string]int{"/findings/1/runs/2/bundle.zip": 404, "/findings/99/runs/1/bundle.zip": 404, "/findings/x/runs/1/bundle.zip": 404} {
		if w := get(v, path); w.Code != code {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		}
	}
	for range cap(v.downloads) {
		v.downloads <- struct{}{}
	}
	if w := get(v, "/findings/1/runs/1/bundle.zip"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("one download too many: %d", w.Code)
	}
}

// TestHalfBundles: a bundle whose file goes while it is sent is an error.
func TestHalfBundles(t *testing.T) {
	dir := bundleOf(t, map[string]string{findingFile: `{"files": {"program.py": ""}}`, "program.py": "x"})
	f, err := openBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.root.Close()
	if err := os.Remove(filepath.Join(dir, "program.py")); err != nil {
		t.Fatal(err)
	}
	if err := f.write(io.Discard); err == nil {
		t.Error("a bundle without its program is written")
	}
}

// FuzzBundles: whatever a manifest says, only plain files of its folder are sent.
func FuzzBundles(f *testing.F) {
	for _, text := range []string{`{"files": {"program.py": ""}}`, `{"files": {"../secret": ""}}`, `{"files": {"sub/../program.py": "", "/etc/passwd": "", ".": "", "": ""}}`, `{"files": {"link": "", "sub": ""}}`, `{"files": 7}`, `[`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		outside := bundleOf(t, map[string]string{"secret": "secret", "in/" + findingFile: text, "in/program.py": "x", "in/link": "->../secret", "in/sub/program.py": "y"})
		opened, err := openBundle(filepath.Join(outside, "in"))
		if err != nil {
			return
		}
		defer opened.root.Close()
		var b bytes.Buffer
		if err := opened.write(&b); err != nil {
			t.Fatal(err)
		}
		files, err := unzipped(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if name != findingFile && (name != "program.py" || text != "x") {
				t.Errorf("%q is sent: %q", name, text)
			}
		}
	})
}
