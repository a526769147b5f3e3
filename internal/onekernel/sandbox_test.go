package onekernel

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/backend/worker"
	"plumb/tensor"
)

// outward judges a function of testdata/outward.py, in a folder of its own.
func outward(t *testing.T, name string) (*Report, string) {
	t.Helper()
	return inFolder(t, "outward.py", name)
}

func inFolder(t *testing.T, file, name string) (*Report, string) {
	t.Helper()
	python, _, err := worker.FindPython("")
	if err != nil {
		t.Skip(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is of Linux")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, sub(t)); err != nil {
		t.Fatal(err)
	}
	rep, err := Judge(context.Background(), Config{
		Kernel:  Source{Form: "function", File: filepath.Join(dir, file), Name: name},
		Against: "torch.relu", Python: python, Seed: 1, Cases: 2, Timeout: time.Minute,
		Promises: Promises{DTypes: []tensor.DType{tensor.F32}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rep, filepath.Join(dir, "written")
}

func sub(t *testing.T) fs.FS {
	t.Helper()
	return os.DirFS("testdata")
}

func TestSandboxHoldsCalls(t *testing.T) {
	for name, want := range map[string]Word{"fine": Right, "answers": Cheats, "native": Cheats, "writes": Cheats, "connects": Cheats, "runs": Cheats} {
		t.Run(name, func(t *testing.T) {
			rep, file := outward(t, name)
			if rep.Verdict != want {
				t.Errorf("%s: %s, want %s: %v", name, rep.Verdict, want, rep.Reasons)
			}
			if want == Cheats && !slices.ContainsFunc(rep.Reasons, func(r Reason) bool { return r.Kind == "spies" }) {
				t.Errorf("%s: no evidence among %v", name, rep.Reasons)
			}
			if _, err := os.Stat(file); err == nil && slices.Contains(rep.Sandbox.Held, "files") {
				t.Errorf("%s has written a file", name)
			}
			for _, what := range []string{"network", "processes", "files"} {
				if !slices.Contains(rep.Sandbox.Held, what) {
					t.Errorf("the sandbox misses %v", rep.Sandbox.Missing)
				}
			}
		})
	}
}

// TestEvasions: evidence is that of the file whatever its name is, of code that it makes, and
// of what it leaves behind.
func TestEvasions(t *testing.T) {
	for name, want := range map[string]Word{"fine": Right, "frames": Cheats, "written": Right, "walked": Cheats, "path": Cheats, "relative": Cheats, "listed": Cheats, "processor": Right, "made": Cheats, "mode": Cheats, "operator": Cheats, "collected": Cheats, "overwritten": Wrong} {
		t.Run(name, func(t *testing.T) {
			if rep, _ := inFolder(t, "evasive_inspect.py", name); rep.Verdict != want {
				t.Errorf("%s: %s, want %s: %v", name, rep.Verdict, want, rep.Reasons)
			}
		})
	}
}

// TestNothingNamesTheJudge: a kernel that behaves while it is judged finds no name, and no setting of
// Python's, by which to know.
func TestNothingNamesTheJudge(t *testing.T) {
	for _, entry := range os.Environ() {
		if strings.Contains(strings.ToLower(entry), "plumb") && !strings.HasPrefix(entry, "PLUMB") {
			name, value, _ := strings.Cut(entry, "=") // the user's own
			t.Setenv(name, strings.ReplaceAll(strings.ToLower(value), "plumb", ""))
		}
	}
	t.Setenv("PYTHONDONTWRITEBYTECODE", "") // a user's own, too
	t.Setenv("PYTHONFAULTHANDLER", "")
	if rep, _ := inFolder(t, "looks_around.py", "fine"); rep.Verdict != Right {
		t.Errorf("%s: %v, refused %v", rep.Verdict, rep.Reasons, rep.Refused)
	}
}

// TestMarks: what is right only where its process looks as one that is judged cheats, as does what
// ends that before its end.
func TestMarks(t *testing.T) {
	for name, want := range map[string]Word{"wrong": Wrong, "settings": Cheats, "modules": Cheats, "leaves": Cheats, "cleans": Wrong} {
		t.Run(name, func(t *testing.T) {
			if rep, _ := inFolder(t, "behaves.py", name); rep.Verdict != want {
				t.Errorf("%s: %s, want %s: %v", name, rep.Verdict, want, rep.Reasons)
			}
		})
	}
}

// TestBuildInCall has a kernel build when it is called, as many an extension is built.
func TestBuildInCall(t *testing.T) {
	rep, _ := outward(t, "builds")
	if rep.Verdict != Right || len(rep.Sandbox.Missing) == 0 {
		t.Errorf("%s, without %v: %v", rep.Verdict, rep.Sandbox.Missing, rep.Reasons)
	}
}

// TestPatience: what may compile, or starts a compiler, has longer than another's first
// call, and that longer than the next ones.
func TestPatience(t *testing.T) {
	for _, of := range []struct {
		name            string
		builds          string
		held            []string
		compiles, first bool
		idle, computing time.Duration
	}{
		{"a first call", "", []string{"processes"}, false, true, 10, 15},
		{"one that may wait for a compiler", "", nil, false, true, 30, 15},
		{"one that may compile itself", "", []string{"processes"}, true, true, 10, 0},
		{"one that builds", "gcc", []string{"processes"}, false, false, 30, 0},
		{"a later call", "", []string{"processes"}, true, false, 6, 10},
	} {
		s := judged(t, 1)
		s.cfg.Timeout = 30
		s.sandbox.builds, s.sandbox.told.Held, s.told.Compiles = of.builds, of.held, of.compiles
		if of.first {
			s.outcomes = nil
		}
		if idle, computing := s.patience(); idle != of.idle || computing != of.computing {
			t.Errorf("%s: %d and %d, want %d and %d", of.name, idle, computing, of.idle, of.computing)
		}
	}
}
