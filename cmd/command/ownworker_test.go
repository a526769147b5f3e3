package command

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// compiledWorkers are the workers in C that tests have compiled, in a folder that ends with
// them, by flags and source.
type compiledWorkers struct {
	sync.Mutex
	dir    string
	object string // of the kit
	byText map[string]string
}

var workersInC compiledWorkers

// workerInC compiles a worker with the kit of examples/ownworker, and skips the test where no
// compiler is.
func workerInC(t *testing.T, source string, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: a worker in C is not tested")
	}
	binary, err := workersInC.compile(cc, source, flags)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func (w *compiledWorkers) compile(cc, source string, flags []string) (string, error) {
	w.Lock()
	defer w.Unlock()
	text := fmt.Sprint(flags, source)
	if path := w.byText[text]; path != "" {
		return path, nil
	}
	kit := filepath.Join(root, "examples", "ownworker")
	if w.dir == "" {
		dir, err := os.MkdirTemp("", "plumb-workers-*")
		if err != nil {
			return "", err
		}
		w.dir, w.object, w.byText = dir, filepath.Join(dir, "kit.o"), map[string]string{}
		if err := compiled(cc, "-c", "-o", w.object, filepath.Join(kit, "plumb_worker.c")); err != nil {
			return "", err
		}
	}
	path := filepath.Join(w.dir, fmt.Sprintf("worker-%x", sha256.Sum256([]byte(text))))
	if err := os.WriteFile(path+".c", []byte(source), 0o644); err != nil {
		return "", err
	}
	if err := compiled(cc, slices.Concat(flags, []string{"-I", kit, "-o", path, path + ".c", w.object, "-lm"})...); err != nil {
		return "", err
	}
	w.byText[text] = path
	return path, nil
}

func compiled(cc string, args ...string) error {
	if out, err := exec.Command(cc, append([]string{"-O1"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// ownWorkerBinary compiles the worker of examples/ownworker, with some texts in
// it replaced by others: old, new, old, new.
func ownWorkerBinary(t *testing.T, replace ...string) string {
	t.Helper()
	source := document(t, "examples/ownworker/worker.c")
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(source, replace[i]) {
			t.Fatalf("the worker has no %q", replace[i])
		}
	}
	return workerInC(t, strings.NewReplacer(replace...).Replace(source))
}
