package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// publish renames the module in a folder and the modules below it.
func publish(dir, from, to string) error {
	if first, _, _ := strings.Cut(to, "/"); !strings.Contains(first, ".") {
		return fmt.Errorf("%q is no path that go get could find: its first element has no dot", to)
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case d.Name() == "go.mod":
			return renameModule(path, from, to)
		case filepath.Ext(path) == ".go":
			return rewrite(path, func(text []byte) ([]byte, error) { return renameImports(path, text, from, to) })
		case filepath.Ext(path) == ".md":
			return rewrite(path, func(text []byte) ([]byte, error) { return renameQuoted(text, from, to), nil })
		}
		return nil
	})
}

// rewrite changes a file by f, if that changes anything.
func rewrite(path string, f func([]byte) ([]byte, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := f(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(text, changed) {
		return nil
	}
	return os.WriteFile(path, changed, 0o644)
}

// renamed returns an import path in the renamed module; false for another module's.
func renamed(path, from, to string) (string, bool) {
	rest, ok := strings.CutPrefix(path, from)
	return to + rest, ok && (rest == "" || rest[0] == '/')
}

// renameImports changes the import paths of a Go file, and the packages that
// its go:generate lines run.
func renameImports(name string, text []byte, from, to string) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	out, done := []byte{}, 0
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if path, ok := renamed(path, from, to); ok {
			out = append(out, text[done:files.Position(spec.Path.Pos()).Offset]...)
			out = strconv.AppendQuote(out, path)
			done = files.Position(spec.Path.End()).Offset
		}
	}
	if done == 0 {
		return generates(text, from, to), nil
	}
	return format.Source(generates(append(out, text[done:]...), from, to))
}

// generates renames the packages of this module in go:generate lines.
func generates(text []byte, from, to string) []byte {
	line := regexp.MustCompile(`(?m)^(//go:generate go run )` + regexp.QuoteMeta(from) + `/`)
	return line.ReplaceAll(text, []byte("${1}"+to+"/"))
}

// renameQuoted changes import paths in the Go code of a document.
func renameQuoted(text []byte, from, to string) []byte {
	quoted := regexp.MustCompile(`"` + regexp.QuoteMeta(from) + `((?:/\w+)*)"`)
	return quoted.ReplaceAll(text, []byte(`"`+to+`${1}"`))
}

// renameModule changes a go.mod: its own path, and what it requires.
func renameModule(path, from, to string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var edits []string
	for line := range strings.Lines(string(text)) {
		switch f := strings.Fields(line); {
		case len(f) == 2 && f[0] == "module":
			if own, ok := renamed(f[1], from, to); ok {
				edits = append(edits, "-module="+own)
			}
		case len(f) == 3 && f[0] == "require" && f[1] == from:
			edits = append(edits, "-droprequire="+from, "-require="+to+"@"+f[2])
		case len(f) == 4 && f[0] == "replace" && f[1] == from:
			edits = append(edits, "-dropreplace="+from, "-replace="+to+"="+f[3])
		}
	}
	if edits == nil {
		return nil
	}
	edits = append([]string{"mod", "edit"}, edits...)
	out, err := exec.Command("go", append(edits, path)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: go mod edit: %w\n%s", path, err, out)
	}
	return nil
}
