// Package config reads conformance configs and expands them to cases.
//
// A config is a dict of entries in the language of DIOPI's conformance test:
// each entry names functions, and gives columns of shapes and parameters and
// lists of dtypes. It is read from the Python file that holds the dict, which is
// evaluated by Starlark and never by Python, or from the same schema as YAML.
// [Load] checks it whole; [Config.Cases] then pairs columns and dtypes as
// DIOPI's parser does, names and defaults included.
package config

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Error is a mistake in a config, or a warning about it.
type Error struct {
	File      string
	Line, Col int    // from 1; 0 when only the file is known
	Entry     string // the key of the entry; empty outside of entries
	Key       string // the path within the entry, such as tensor_para.args[0].shape
	Msg       string
}

// Error returns "file:line:column: entry: key: message".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	for _, part := range []string{e.Entry, e.Key, e.Msg} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	return b.String()
}

// Config is a checked config.
type Config struct {
	// Warnings tell what DIOPI would silently ignore or take differently than
	// it reads.
	Warnings []*Error
	// Variable is the variable of a Python file that holds the config.
	Variable string
	entries  []*entry
}

// Load reads and checks a config: YAML of at most 1 MiB where the name ends in
// .yaml, .yml or .json, else Python of at most [MaxSource]. The error is an *Error.
func Load(name string, src []byte) (*Config, error) {
	s, err := readSource(name, src)
	if err != nil {
		return nil, err
	}
	c, err := check(s)
	if c != nil {
		c.Variable = s.variable
	}
	return c, err
}

// readSource reads a file by the language that its name says; JSON is YAML too.
func readSource(name string, src []byte) (*source, error) {
	read, most := readPython, MaxSource
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" || ext == ".json" {
		read, most = readYAML, maxYAML
	}
	if len(src) > most {
		return nil, &Error{File: name, Msg: fmt.Sprintf("the config is larger than %d MiB", most>>20)}
	}
	return read(name, src)
}

// Entries returns the keys of the entries, in order.
func (c *Config) Entries() []string {
	out := make([]string, len(c.entries))
	for i, e := range c.entries {
		out[i] = e.name
	}
	return out
}

// source is a file that has been read but not checked.
type source struct {
	name     string
	variable string // of Python
	root     *Dict
	locate   func(path []step) position
	warnings []*Error
}

// maxWarnings bounds the warnings that are kept.
const maxWarnings = 1000

func (s *source) warn(e *Error) {
	if len(s.warnings) < maxWarnings {
		s.warnings = append(s.warnings, e)
	}
}

// position is a line and a column, from 1.
type position struct{ Line, Col int }

// positionAt is the position of a byte offset.
func positionAt(src []byte, offset int) position {
	before := string(src[:min(offset, len(src))])
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return position{strings.Count(before, "\n") + 1, len([]rune(line)) + 1}
}

// step goes from a value to a part of it: by key, or by index where the key is
// empty.
type step struct {
	key   string
	index int
}

// place is a value's address in a source; the first step is the entry.
type place struct {
	s    *source
	path []step
}

func (p place) key(k string) place { return p.then(step{key: k}) }

func (p place) index(i int) place { return p.then(step{index: i}) }

func (p place) then(s step) place {
	return place{p.s, append(p.path[:len(p.path):len(p.path)], s)}
}

func (p place) errorf(format string, args ...any) *Error {
	at := p.s.locate(p.path)
	e := &Error{File: p.s.name, Line: at.Line, Col: at.Col, Msg: fmt.Sprintf(format, args...)}
	var key strings.Builder
	for i, s := range p.path {
		switch {
		case i == 0:
			e.Entry = s.key
		case s.key == "":
			key.WriteString("[" + strconv.Itoa(s.index) + "]")
		default:
			key.WriteString("." + s.key)
		}
	}
	e.Key = strings.TrimPrefix(key.String(), ".")
	return e
}

func (p place) warnf(format string, args ...any) {
	if len(p.s.warnings) < maxWarnings {
		p.s.warn(p.errorf(format, args...))
	}
}
