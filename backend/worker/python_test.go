//go:build unix

package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/backend"
)

func script(t *testing.T, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindPython(t *testing.T) {
	dir := t.TempDir()
	with := script(t, dir, "with", "echo torch 2.9.1")
	without := script(t, dir, "without", "exit 3")
	broken := script(t, dir, "broken", "exit 1")
	missing := filepath.Join(dir, "missing")
	for name, test := range map[string]struct {
		flag, env string
		path      string
		err       error
	}{
		"flag":                {with, without, with, nil},
		"variable":            {"", with, with, nil},
		"flag without torch":  {without, with, "", ErrNoTorch},
		"flag names nothing":  {missing, with, "", ErrNoPython},
		"variable is missing": {"", missing, "", ErrNoPython},
		"broken":              {broken, "", "", ErrNoPython},
	} {
		t.Setenv("PLUMB_PYTHON", test.env)
		path, version, err := FindPython(test.flag)
		if path != test.path || !errors.Is(err, test.err) || err == nil && version != "2.9.1" {
			t.Errorf("%s: %q, %q, %v", name, path, version, err)
		}
		var fault *backend.Fault
		if err != nil && (!errors.As(err, &fault) || !strings.Contains(fault.Fix, "torch")) {
			t.Errorf("%s: no fix in %v", name, err)
		}
	}
}

func TestFindPythonOnPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PLUMB_PYTHON", "")
	t.Setenv("PATH", dir)
	want := script(t, dir, "python3", "echo torch 2.9.1")
	if path, _, err := FindPython(""); path != want || err != nil {
		t.Errorf("%q, %v", path, err)
	}
}

// The version that is found is the one that the worker greets with.
func TestVersionWithoutImport(t *testing.T) {
	w := torch(t)
	_, version, err := FindPython("")
	if err != nil || version != w.Info().Version {
		t.Errorf("found %q, imported %q, %v", version, w.Info().Version, err)
	}
}
