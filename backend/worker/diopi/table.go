package diopi

import (
	_ "embed" // the table
	"fmt"
	"slices"
	"strings"
)

//go:embed table.txt
var tableText string

// entry is a call in C of an operator: a function, and what its parameters after
// the context are given.
type entry struct {
	function string
	args     []string
	told     []string          // the operator's parameters that the results tell
	when     map[string]string // texts of arguments with which alone it serves
	optional bool              // a gradient that the operator's own rule computes where there is no such function
	before   *entry            // what is called before it
}

// kinds of the function's parameters.
func (e *entry) kinds() string { return kinds[e.function] }

// mapping is the table by operator's id.
type mapping struct {
	forward, inPlace, backward map[string][]entry
	host                       []string // operators that the library's host does
}

var table = mustTable(tableText)

func mustTable(text string) *mapping {
	m, err := parseTable(text)
	if err != nil {
		panic(err)
	}
	return m
}

// parseTable reads lines of the form of table.txt.
func parseTable(text string) (*mapping, error) {
	m := &mapping{forward: map[string][]entry{}, inPlace: map[string][]entry{}, backward: map[string][]entry{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, call, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("%q has no colon", line)
		}
		if id == "host" {
			m.host = append(m.host, strings.Fields(call)...)
			continue
		}
		e, err := parseEntry(call)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		into := m.forward
		if rest, ok := strings.CutPrefix(id, "d "); ok {
			id, into = rest, m.backward
		} else if rest, ok := strings.CutPrefix(id, "d? "); ok {
			id, into, e.optional = rest, m.backward, true
		} else if rest, ok := strings.CutSuffix(id, "_"); ok {
			id, into = rest, m.inPlace
		}
		into[id] = append(into[id], e)
	}
	return m, nil
}

func parseEntry(text string) (entry, error) {
	text, when, _ := strings.Cut(text, " if ")
	text, told, _ := strings.Cut(text, " | ")
	first, last, both := strings.Cut(text, " then ")
	if !both {
		last = first
	}
	e, err := parseCall(last)
	if err == nil && both {
		var before entry
		before, err = parseCall(first)
		e.before = &before
	}
	e.told, e.when = strings.Fields(told), map[string]string{}
	for _, w := range strings.Fields(when) {
		k, v, _ := strings.Cut(w, "=")
		e.when[k] = v
	}
	return e, err
}

// parseCall reads FUNCTION(ARGUMENT, …).
func parseCall(text string) (entry, error) {
	name, args, ok := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !ok {
		return entry{}, fmt.Errorf("want FUNCTION(ARGUMENT, …)")
	}
	e := entry{function: name, args: strings.Split(args, ", ")}
	ks, known := kinds[name]
	if !known {
		return e, fmt.Errorf("the interface has no %s", name)
	}
	if len(ks) != len(e.args) {
		return e, fmt.Errorf("%s has %d parameters after the context, not %d", name, len(ks), len(e.args))
	}
	return e, nil
}

// mentions reports whether the entry says what becomes of a parameter.
func (e *entry) mentions(param string) bool {
	_, ok := e.when[param]
	return ok || slices.Contains(e.words(), param)
}

// words are those of the entry, the names of parameters among them.
func (e *entry) words() []string {
	words, args := slices.Clone(e.told), e.args
	if e.before != nil {
		args = slices.Concat(args, e.before.args)
	}
	for _, a := range args {
		words = append(words, strings.FieldsFunc(a, func(r rune) bool { return strings.ContainsRune(" #()", r) })...)
	}
	return words
}
