package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCompiledCachesAreBounded: the oldest files go where they take too much.
func TestCompiledCachesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"a/old", "b/older", "c/new"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 100), 0o644); err != nil {
			t.Fatal(err)
		}
		at := time.Unix([]int64{2000, 1000, 3000}[i], 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	left := func() string {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(strings.Join(found, " "), dir+"/", "")
	}
	for _, c := range []struct {
		limit int64
		want  string
	}{{300, "a/old b/older c/new"}, {299, "c/new"}} {
		prune(dir, c.limit)
		if got := left(); got != c.want {
			t.Errorf("with a limit of %d there are left %q, want %q", c.limit, got, c.want)
		}
	}
}

// TestCompiledIsKept: in the user's cache, or where the user says.
func TestCompiledIsKept(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, c := range compiledCaches {
		t.Setenv(c.variable, "")
		w := Worker{config: Config{Framework: c.framework, Mode: c.mode}}
		if got := strings.Join(w.keeping(), " "); !strings.HasPrefix(got, c.variable+"=/") || !strings.HasSuffix(got, "plumb/"+c.folder) {
			t.Errorf("%s:%s keeps %q", c.framework, c.mode, got)
		}
		if got := (&Worker{config: Config{Framework: c.framework}}).keeping(); got != nil {
			t.Errorf("%s keeps %q", c.framework, got)
		}
		t.Setenv(c.variable, "/x")
		if got := w.keeping(); got != nil {
			t.Errorf("%s:%s keeps %q, the user's is /x", c.framework, c.mode, got)
		}
	}
}

// TestCompilingModes: in such a mode a worker says that compiling is dear.
func TestCompilingModes(t *testing.T) {
	w := fake(t, Config{Env: []string{"PLUMB_FAKE_WORKER=" + strings.Replace(fakeHello, "unknown", `modes":["eager","fused"],"compiling_modes":["fused"],"x`, 1)}})
	fused, err := w.In("fused")
	if err != nil {
		t.Fatal(err)
	}
	if w.Info().Compiles || !fused.Info().Compiles {
		t.Errorf("compiles: %v, in the mode %v", w.Info().Compiles, fused.Info().Compiles)
	}
}

// TestKilledWorkersLeaveNothingCompiled: what a worker has written to the cache since it
// started is gone once it was killed; what was there before stays.
func TestKilledWorkersLeaveNothingCompiled(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("TORCHINDUCTOR_CACHE_DIR", "")
	w := &Worker{config: Config{Mode: "compile"}}
	dir := filepath.Join(cache, "plumb", "inductor", "la")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for name, at := range map[string]time.Time{"whole.so": start.Add(-time.Hour), "half.so": start.Add(time.Second)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("ELF"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	w.forget(start)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "whole.so" {
		t.Errorf("left: %v, %v", left, err)
	}
}
