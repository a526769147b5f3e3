package onekernel

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path/filepath"
)

// Source says where a function is, in the words of plumb_forms.py.
type Source struct {
	Form      string   `json:"form"` // "function", "operator", "problem", "task", "library"
	File      string   `json:"file"`
	Name      string   `json:"name"`
	Signature string   `json:"signature,omitempty"` // of a library's function
	Imports   []string `json:"imports,omitempty"`

	placed string // where a copy of the file is run
}

// spec is what a worker is told of a function, and by which name programs call it.
func (of *Source) spec(role, target string) map[string]any {
	return map[string]any{"role": role, "target": target, "form": of.Form, "file": cmp.Or(of.placed, of.File), "name": of.Name, "signature": of.Signature, "imports": of.Imports}
}

// digest is by what a kernel's process knows the file of its reference, where that is another
// file than its own; what else it would be told of it a kernel could find.
func digest(reference, kernel *Source) string {
	if reference == nil || reference.File == "" {
		return ""
	}
	file, own := reference.File, kernel.File
	if reference.Form == "task" {
		file = filepath.Join(file, "reference.py")
	}
	for _, path := range []*string{&file, &own} {
		*path, _ = filepath.Abs(*path)
		if real, err := filepath.EvalSymlinks(*path); err == nil {
			*path = real
		}
	}
	if file == own {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(file)))
}
