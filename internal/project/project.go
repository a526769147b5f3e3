// Package project reads plumb.toml, in which a project says once what it would
// give its commands as flags. What a key means is up to the reader; here it is a
// path of names with texts and a line.
package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Name is the name of the file.
const Name = "plumb.toml"

// maxFile bounds the file, maxDepth how deep a table may be in others.
const (
	maxFile  = 1 << 20
	maxDepth = 16
)

// File is what a plumb.toml says.
type File struct {
	Path    string
	Entries []Entry // in the order of the file
}

// Entry is a key with its value.
type Entry struct {
	Key    []string // with the tables that it is in
	Values []string // one, unless the value is an array
	List   bool
	Line   int
}

// Dir is the folder of the file, from which its paths are taken.
func (f *File) Dir() string { return filepath.Dir(f.Path) }

// At names the line of an entry.
func (f *File) At(e *Entry) string { return fmt.Sprintf("%s:%d", f.Path, e.Line) }

// Find returns the path of the nearest plumb.toml in a folder or above it; ""
// where there is none.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, Name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", nil
		}
		dir = above
	}
}

// Read reads a file.
func Read(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: want a regular file of at most %d KB", path, maxFile>>10)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads the text of a file.
func Parse(path string, text []byte) (*File, error) {
	// The decoder knows what TOML forbids beyond its grammar, such as a key twice.
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("%s:%d:%d: %s", path, line, column, strings.TrimPrefix(at.Error(), "toml: "))
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &File{Path: path}
	var p unstable.Parser
	p.Reset(text)
	r := reader{file: f, parser: &p}
	for p.NextExpression() {
		if err := r.expression(p.Expression()); err != nil {
			return nil, err
		}
	}
	return f, p.Error()
}

type reader struct {
	file   *File
	parser *unstable.Parser
	table  []string
}

func (r *reader) expression(n *unstable.Node) error {
	switch n.Kind {
	case unstable.Table:
		r.table, _ = r.names(n)
	case unstable.ArrayTable:
		names, line := r.names(n)
		return fmt.Errorf("%s:%d: [[%s]]: Plumb has no arrays of tables; write [%s]", r.file.Path, line, strings.Join(names, "."), strings.Join(names, "."))
	case unstable.KeyValue:
		return r.pair(r.table, n)
	}
	return nil
}

// names are those of a key or a table, and the line of the first.
func (r *reader) names(n *unstable.Node) (names []string, line int) {
	for it := n.Key(); it.Next(); {
		if names == nil {
			line = r.parser.Shape(it.Node().Raw).Start.Line
		}
		names = append(names, string(it.Node().Data))
	}
	return names, line
}

func (r *reader) pair(table []string, n *unstable.Node) error {
	names, line := r.names(n)
	e := Entry{Key: append(append([]string(nil), table...), names...), Line: line}
	if len(e.Key) > maxDepth {
		return fmt.Errorf("%s:%d: tables in tables, %d deep", r.file.Path, line, len(e.Key))
	}
	value := n.Value()
	switch value.Kind {
	case unstable.InlineTable:
		for it := value.Children(); it.Next(); {
			if err := r.pair(e.Key, it.Node()); err != nil {
				return err
			}
		}
		return nil
	case unstable.Array:
		e.List = true
		for it := value.Children(); it.Next(); {
			if err := r.value(&e, it.Node()); err != nil {
				return err
			}
		}
	default:
		if err := r.value(&e, value); err != nil {
			return err
		}
	}
	r.file.Entries = append(r.file.Entries, e)
	return nil
}

// value adds a string, a number or a truth value.
func (r *reader) value(e *Entry, n *unstable.Node) error {
	text := string(n.Data)
	switch n.Kind {
	case unstable.String, unstable.Bool:
	case unstable.Integer:
		if i, err := strconv.ParseInt(text, 0, 64); err == nil { // 1_000 and 0xff
			text = strconv.FormatInt(i, 10)
		}
	case unstable.Float:
		text = strings.ReplaceAll(text, "_", "")
	case unstable.Comment:
		return nil
	default:
		return fmt.Errorf("%s:%d: %s: want a string, a number, true, false, or an array of these", r.file.Path, e.Line, strings.Join(e.Key, "."))
	}
	e.Values = append(e.Values, text)
	return nil
}
