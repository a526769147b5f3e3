package worker

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed py/*.py py/*.json
var sources embed.FS

//go:embed template
var template embed.FS

// kitFiles are what every subject in Python needs.
var kitFiles = []string{"plumb_names.py", "plumb_code.py", "plumb_mistakes.py", "plumb_arrays.py", "plumb_plain.py", "plumb_check.py", "plumb_values.py", "plumb_targets.py", "plumb_ranks.py", "plumb_words.py", "plumb_subject.py", "plumb_table.py", "plumb_layers.py", "plumb_steps.py", "plumb_asked.py", "plumb_functional.py", "plumb_graphs.py", "plumb_host.py", "plumb_worker.py", "operators.json", "modules.json"}

var subjectName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// NewSubject writes a worker to start from into a directory, which it makes: the
// kit, an adapter of the framework that python imports as module, its table of
// differences from PyTorch's interface, or of calls where its interface is its
// own, and the program that is the worker, whose path it returns. A file that is
// there is an error.
func NewSubject(dir, name, module, python string, own bool) (path string, err error) {
	if !subjectName.MatchString(name) {
		return "", fmt.Errorf("the subject's name %q is not one of lower-case letters, digits and underscores", name)
	}
	if slices.Contains(kitFiles, "plumb_"+name+".py") {
		return "", fmt.Errorf("the subject's name %q is a module of the kit: choose another", name)
	}
	fill := strings.NewReplacer("NAME", name, "MODULE", module, "PYTHON", python)
	files, kind := map[string]string{}, "adapter"
	if own {
		kind = "own"
	}
	for _, file := range kitFiles {
		text, err := sources.ReadFile("py/" + file)
		if err != nil {
			return "", err
		}
		files[file] = string(text)
	}
	for file, from := range map[string]string{"plumb_" + name + ".py": kind + ".py", name + ".json": kind + ".json", name: "worker.py"} {
		text, err := template.ReadFile("template/" + from)
		if err != nil {
			return "", err
		}
		// Where numpy is the module it is imported for what comes from Plumb.
		files[file] = strings.Replace(fill.Replace(string(text)), "import plumb_subject\nimport numpy\n", "import plumb_subject\n", 1)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for file := range files {
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			return "", fmt.Errorf("%s is there already", filepath.Join(dir, file))
		}
	}
	for file, text := range files {
		mode := os.FileMode(0o644)
		if file == name {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), mode); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, name), nil
}
