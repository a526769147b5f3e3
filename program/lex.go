package program

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError is a mistake in a program's text.
type SyntaxError struct {
	File      string
	Line, Col int // from 1
	Msg       string
}

// Error returns "file:line:col: message".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

type tokenKind uint8

const (
	tEnd tokenKind = iota
	tName
	tInt
	tFloat
	tString
	tPunct
)

type token struct {
	kind tokenKind
	text string // of tString: the decoded value
	col  int
}

// puncts lists the punctuation, longest first.
var puncts = []string{"...", "**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "@", "&", "|", "^", "<", ">", "~", "=", "(", ")", "[", "]", ",", ".", ":"}

// lex splits one line; a comment ends it.
func lex(line string) ([]token, error) {
	var toks []token
	for i := 0; i < len(line); {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '#':
			i = len(line)
		case isLetter(c):
			n := span(line[i:], func(c byte) bool { return isLetter(c) || isDigit(c) })
			toks = append(toks, token{tName, line[i : i+n], i + 1})
			i += n
		case isDigit(c):
			t, n := lexNumber(line[i:])
			t.col = i + 1
			toks = append(toks, t)
			i += n
		case c == '"' || c == '\'':
			s, n, err := lexString(line[i:])
			if err != nil {
				return nil, &SyntaxError{Col: i + 1, Msg: err.Error()}
			}
			toks = append(toks, token{tString, s, i + 1})
			i += n
		default:
			p := punctAt(line[i:])
			if p == "" {
				return nil, &SyntaxError{Col: i + 1, Msg: fmt.Sprintf("unexpected character %q", c)}
			}
			toks = append(toks, token{tPunct, p, i + 1})
			i += len(p)
		}
	}
	return append(toks, token{tEnd, "end of line", len(line) + 1}), nil
}

func punctAt(s string) string {
	for _, p := range puncts {
		if strings.HasPrefix(s, p) {
			return p
		}
	}
	return ""
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

func lexNumber(s string) (token, int) {
	n := span(s, isDigit)
	kind := tInt
	if n < len(s) && s[n] == '.' {
		kind = tFloat
		n++
		n += span(s[n:], isDigit)
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if d := span(s[m:], isDigit); d > 0 {
			kind, n = tFloat, m+d
		}
	}
	return token{kind: kind, text: s[:n]}, n
}

func lexString(s string) (string, int, error) {
	quote := s[0]
	for n := 1; n < len(s); n++ {
		switch s[n] {
		case '\\':
			n++
		case quote:
			body := s[1:n]
			if quote == '\'' {
				body = strings.ReplaceAll(strings.ReplaceAll(body, `\'`, `'`), `"`, `\"`)
			}
			v, err := strconv.Unquote(`"` + body + `"`)
			if err != nil {
				return "", 0, fmt.Errorf("bad string %s", s[:n+1])
			}
			return v, n + 1, nil
		}
	}
	return "", 0, fmt.Errorf("string without an end")
}
