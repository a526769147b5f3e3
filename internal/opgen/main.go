// Command opgen writes what follows from the table of operators: the typed Go
// functions of package api, the list that its tests walk, docs/operators.md,
// and what the kit for subjects in Python knows of operators. It needs none of them to run. Its test fails when they
// are stale.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"plumb/internal/module"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
)

// outputs are the generated files by their paths in the repository.
func outputs(table *op.Table, modules *nn.Table) (map[string][]byte, error) {
	declared, err := declare(table)
	if err != nil {
		return nil, err
	}
	source, list, err := functions(declared)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"api/ops_gen.go":       source,
		"api/list_gen_test.go": list,
		"docs/operators.md":    document(table, declared, modules),

		"baselines/conformance/config.py":  conformance(table),
		"backend/worker/py/operators.json": operators(table, modules),
	}, nil
}

// root returns the folder of the module in or above the working directory.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module.Path+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("opgen: no go.mod of module %s above the working directory", module.Path)
		}
		dir = up
	}
}

var lifting = flag.Bool("lift", false, "choose the calls that tell faults apart anew, for internal/opgen/telling.py")

func main() {
	flag.Parse()
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "opgen:", err)
		os.Exit(1)
	}
}

func write() error {
	dir, err := root()
	if err != nil {
		return err
	}
	if *lifting {
		return os.WriteFile(filepath.Join(dir, "internal/opgen/telling.py"), lift(ops.Table(), nn.Modules()), 0o644)
	}
	files, err := outputs(ops.Table(), nn.Modules())
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(dir, path), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
