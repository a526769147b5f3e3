// Package suites holds the PyTorch-style tests that Plumb ships: one file per
// family of operators, run when no file is named.
package suites

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed *.py
var files embed.FS

// Models lists the functions that known networks call, for config.LoadModels:
// those of the model configs of DIOPI's conformance test.
//
//go:embed conformance/models.json
var Models []byte

// File is one test file.
type File struct {
	Name   string // "suites/conv.py"
	Source []byte
}

// Files returns the test files, sorted by name.
func Files() []File {
	names, err := fs.Glob(files, "*.py")
	if err != nil {
		panic(err)
	}
	out := make([]File, len(names))
	for i, n := range names {
		src, err := files.ReadFile(n)
		if err != nil {
			panic(err)
		}
		out[i] = File{path.Join("suites", n), src}
	}
	return out
}
