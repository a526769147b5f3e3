package script

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a mistake in a test file: a usage error, for which plumb exits
// with code 2.
type Error struct {
	File      string
	Line, Col int // from 1; the column in characters; 0 when only the file is known
	Msg       string
	Source    string // the line
	// Unsupported says that the file is Python that test files cannot run: a
	// verdict on the test, not a mistake.
	Unsupported bool
	// TooLarge says that a draw is larger than Env allows, which others need not be.
	TooLarge bool
}

// Error returns "file:line:column: message".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Lacks reports whether the error is Unsupported.
func (e *Error) Lacks() bool { return e.Unsupported }

// Skips reports whether the error is TooLarge.
func (e *Error) Skips() bool { return e.TooLarge }

// Excerpt returns the line with a caret below the column.
func (e *Error) Excerpt() string {
	if e.Source == "" || e.Col < 1 {
		return ""
	}
	pad := []rune(e.Source)
	pad = pad[:min(e.Col-1, len(pad))]
	for i, r := range pad {
		if r != '\t' {
			pad[i] = ' '
		}
	}
	return "  " + e.Source + "\n  " + string(pad) + "^"
}

// unsupportedInFiles is the error of a draw that needs what test files do not
// have; at, where it is known, is its place in the original source.
type unsupportedInFiles struct {
	msg string
	at  point
}

func (l *unsupportedInFiles) Error() string { return l.msg }

func lack(format string, args ...any) error {
	return &unsupportedInFiles{msg: fmt.Sprintf(format, args...)}
}

// ErrNoObserver says that a test looks at a value that only the reference can
// tell, and that there is none.
var ErrNoObserver = errors.New("the test looks at a computed value, which needs a reference that runs programs")

// sourceLine returns a line of the source, without its end.
func sourceLine(src string, line int) string {
	for range line - 1 {
		_, rest, ok := strings.Cut(src, "\n")
		if !ok {
			return ""
		}
		src = rest
	}
	l, _, _ := strings.Cut(src, "\n")
	return strings.TrimRight(l, "\r")
}
