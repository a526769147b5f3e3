package config

import (
	"bytes"
	"strings"
)

// MaxSource bounds a file, in bytes.
const MaxSource = 4 << 20

// maxYAML is less: YAML's parser takes some hundred times the file's size.
const maxYAML = 1 << 20

// The bounds that keep the parsers within their stack.
const (
	maxDepth  = 60  // nested brackets
	maxRun    = 300 // operators, words and brackets of one element
	maxNumber = 400 // characters of one number or name
)

// scanner goes over Python source by its strings, comments and brackets.
type scanner struct {
	src  []byte
	at   int
	runs []int // by depth, the parts since the last comma
	// imports are the byte ranges of import statements.
	imports [][2]int
	// opened is where the import that is being scanned began, or -1.
	opened int
	fresh  bool // nothing of this logical line has been seen
}

// dropImports blanks the import statements of Python source, and reports the
// offset and the reason where it is nested or chained too deep to be parsed.
func dropImports(src []byte) (out []byte, offset int, reason string) {
	s := &scanner{src: src, runs: []int{0}, opened: -1, fresh: true}
	for s.at < len(src) {
		start := s.at
		if reason := s.next(); reason != "" {
			return nil, start, reason
		}
	}
	s.endLine()
	out = bytes.Clone(src)
	for _, r := range s.imports {
		for i := r[0]; i < r[1]; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	return out, 0, ""
}

func (s *scanner) next() string {
	switch c := s.src[s.at]; {
	case c == '\n' || c == ';':
		if len(s.runs) == 1 {
			s.endLine()
		}
		s.at++
	case c == ' ' || c == '\t' || c == '\r':
		s.at++
	case c == '\\':
		s.at = min(s.at+2, len(s.src))
	case c == '#':
		s.skipTo('\n')
	case c == '\'' || c == '"':
		return s.quoted(c)
	case isWord(c):
		return s.word()
	default:
		return s.operator(c)
	}
	return ""
}

func (s *scanner) endLine() {
	if s.opened >= 0 {
		s.imports = append(s.imports, [2]int{s.opened, s.at})
	}
	s.opened, s.fresh, s.runs[0] = -1, true, 0
}

func (s *scanner) skipTo(end byte) {
	if n := bytes.IndexByte(s.src[s.at:], end); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.src)
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

func (s *scanner) word() string {
	start := s.at
	for s.at < len(s.src) && isWord(s.src[s.at]) {
		s.at++
	}
	if s.at-start > maxNumber {
		return "a number or a name has too many characters"
	}
	word := string(s.src[start:s.at])
	if s.fresh && (word == "import" || word == "from") {
		s.opened = start
	}
	return s.part()
}

// part counts towards maxRun.
func (s *scanner) part() string {
	s.fresh = false
	top := len(s.runs) - 1
	if s.runs[top]++; s.runs[top] > maxRun {
		return "an expression has too many parts"
	}
	return ""
}

func (s *scanner) operator(c byte) string {
	s.at++
	switch {
	case c == ',':
		s.runs[len(s.runs)-1] = 0
		return ""
	case strings.IndexByte("([{", c) >= 0:
		reason := s.part()
		if s.runs = append(s.runs, 0); len(s.runs) > maxDepth {
			reason = "brackets are nested too deep"
		}
		return reason
	case strings.IndexByte(")]}", c) >= 0 && len(s.runs) > 1:
		s.runs = s.runs[:len(s.runs)-1]
		return ""
	}
	return s.part()
}

func (s *scanner) quoted(quote byte) string {
	end := []byte{quote}
	if triple := bytes.Repeat(end, 3); bytes.HasPrefix(s.src[s.at:], triple) {
		end = triple
	}
	for s.at += len(end); s.at < len(s.src); s.at++ {
		switch {
		case bytes.HasPrefix(s.src[s.at:], end):
			s.at += len(end)
			return s.part()
		case s.src[s.at] == '\\':
			s.at++
		case s.src[s.at] == '\n' && len(end) == 1:
			return "a string has no closing quote"
		}
	}
	return "a string has no closing quote"
}
