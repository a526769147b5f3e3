package script

import (
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokName tokenKind = iota
	tokNumber
	tokString
	tokOp
	tokNewline // end of a logical line
	tokEOF
)

// token is a piece of source text; comments, blanks and line ends inside
// brackets are none.
type token struct {
	kind       tokenKind
	start, end int
	text       string
}

func (t token) is(text string) bool { return t.kind != tokString && t.text == text }

// Limits that keep later, recursive passes within their stack.
const (
	maxSource    = 1 << 20 // bytes
	maxBrackets  = 100     // nested
	maxLogical   = 1 << 15 // tokens of one logical line
	maxOperators = 1000    // consecutive operators, such as unary minus
)

// longOps are the operators of more than one character, longest first.
var longOps = []string{"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@="}

type scanner struct {
	src   string
	at    int
	depth int
	run   int // consecutive operators
	line  int // tokens of the logical line
	toks  []token
}

// scan splits Python source into tokens.
func scan(src string) ([]token, *scanError) {
	if len(src) > maxSource {
		return nil, &scanError{0, "the file is larger than 1 MiB", false}
	}
	s := &scanner{src: src}
	for s.at < len(src) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.add(tokNewline, s.at)
	s.add(tokEOF, s.at)
	return s.toks, nil
}

// scanError is a message about a byte offset.
type scanError struct {
	at    int
	msg   string
	lacks bool // legal Python that test files cannot run
}

func (s *scanner) add(kind tokenKind, start int) {
	s.toks = append(s.toks, token{kind, start, s.at, s.src[start:s.at]})
}

func (s *scanner) next() *scanError {
	c := s.src[s.at]
	switch {
	case c == '\n':
		s.newline()
	case c == ' ' || c == '\t' || c == '\r' || c == '\f':
		s.at++
	case c == '#':
		s.skipComment()
	case c == '\\' && strings.HasPrefix(strings.TrimPrefix(s.src[s.at+1:], "\r"), "\n"):
		s.at += strings.IndexByte(s.src[s.at:], '\n') + 1
	default:
		return s.token()
	}
	return nil
}

func (s *scanner) newline() {
	if s.depth == 0 && len(s.toks) > 0 && s.toks[len(s.toks)-1].kind != tokNewline {
		s.add(tokNewline, s.at)
		s.line, s.run = 0, 0
	}
	s.at++
}

func (s *scanner) skipComment() {
	if n := strings.IndexByte(s.src[s.at:], '\n'); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.src)
	}
}

func (s *scanner) token() *scanError {
	start := s.at
	if s.line++; s.line > maxLogical {
		return &scanError{start, "a statement has too many parts", false}
	}
	kind := tokOp
	switch c := s.src[s.at]; {
	case isNameStart(c):
		for s.at < len(s.src) && isNamePart(s.src[s.at]) {
			s.at++
		}
		kind = tokName
		if s.at < len(s.src) && (s.src[s.at] == '"' || s.src[s.at] == '\'') && isStringPrefix(s.src[start:s.at]) {
			kind = tokString
		}
	case c == '"' || c == '\'':
		kind = tokString
	case isDigit(c) || c == '.' && s.at+1 < len(s.src) && isDigit(s.src[s.at+1]):
		s.number()
		kind = tokNumber
	default:
		if err := s.operator(); err != nil {
			return err
		}
	}
	if kind == tokString {
		if err := s.quoted(start); err != nil {
			return err
		}
	}
	if s.run++; endsRun(kind, s.src[start:s.at]) {
		s.run = 0
	}
	if s.run > maxOperators {
		return &scanError{start, "too many operators in a row", false}
	}
	s.add(kind, start)
	return nil
}

// endsRun reports whether a token ends a run of operators.
func endsRun(kind tokenKind, text string) bool {
	switch kind {
	case tokOp:
		return strings.ContainsAny(text, "()[]{},;")
	case tokName:
		switch text {
		case "not", "lambda", "if", "else", "and", "or", "in", "is", "for":
			return false
		}
	}
	return true
}

func (s *scanner) number() {
	for s.at < len(s.src) {
		c := s.src[s.at]
		exp := (c == '+' || c == '-') && s.at > 0 && (s.src[s.at-1]|0x20) == 'e' && !strings.HasPrefix(s.src[s.at-1:], "0x")
		if !(isNamePart(c) && c < utf8.RuneSelf || c == '.' || exp) {
			return
		}
		s.at++
	}
}

func (s *scanner) operator() *scanError {
	for _, op := range longOps {
		if strings.HasPrefix(s.src[s.at:], op) {
			s.at += len(op)
			return nil
		}
	}
	switch s.src[s.at] {
	case '(', '[', '{':
		if s.depth++; s.depth > maxBrackets {
			return &scanError{s.at, "brackets are nested too deep", false}
		}
	case ')', ']', '}':
		s.depth = max(0, s.depth-1)
	}
	s.at++
	return nil
}

// quoted scans a string literal whose prefix has been read.
func (s *scanner) quoted(start int) *scanError {
	quote := s.src[s.at : s.at+1]
	if strings.HasPrefix(s.src[s.at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s.at += len(quote)
	for s.at < len(s.src) {
		switch {
		case strings.HasPrefix(s.src[s.at:], quote):
			s.at += len(quote)
			return nil
		case s.src[s.at] == '\\':
			s.at++
		case s.src[s.at] == '\n' && len(quote) == 1:
			return &scanError{start, "the string has no closing quote", false}
		}
		s.at++
	}
	s.at = len(s.src)
	return &scanError{start, "the string has no closing quote", false}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

func isNamePart(c byte) bool { return isNameStart(c) || isDigit(c) }

func isStringPrefix(p string) bool {
	switch strings.ToLower(p) {
	case "r", "b", "u", "f", "rb", "br", "rf", "fr":
		return true
	}
	return false
}
