package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpsGen: the file is of the package of its folder, a stale one is told, and a
// table without operators of the user's own has nothing to generate.
func TestOpsGen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ops_gen.go")
	for name, text := range map[string]string{"a.go": "package mine\n", "a_test.go": "package mine_test\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gen := func(check bool, names ...string) error {
		return (&typedFunctions{out: file, check: check}).run(io.Discard, names)
	}
	stale := func(err error) bool {
		var e *exitError
		return errors.As(err, &e) && e.code == exitFindings
	}
	if err := gen(false); err == nil || !strings.Contains(err.Error(), "command.Main") {
		t.Errorf("Plumb's own operators: %v", err)
	}
	if err := gen(true, "relu"); !stale(err) {
		t.Errorf("a file that there is not: %v", err)
	}
	if err := gen(false, "relu"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "\npackage mine\n") || !strings.Contains(string(text), "func Relu(input *api.Tensor,") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := gen(true, "relu"); err != nil {
		t.Error(err)
	}
	if err := gen(true, "relu", "gelu"); !stale(err) {
		t.Errorf("a file of other operators: %v", err)
	}
}
