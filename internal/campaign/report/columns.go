package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// wide are the characters that take two columns of a terminal (Unicode's annex 11,
// East Asian Width, W and F).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff01, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, {Lo: 0x1f900, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// columnsOf is how many columns of a terminal a character takes.
func columnsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Columns is how many columns of a terminal a line takes.
func Columns(line string) int {
	n := 0
	for _, r := range line {
		n += columnsOf(r)
	}
	return n
}

// Clip cuts a line to so many columns.
func Clip(line string, width int) string {
	if Columns(line) <= width {
		return line
	}
	n := 0
	for i, r := range line {
		if n += columnsOf(r); n > width-1 {
			return line[:i] + "…"
		}
	}
	return line
}

// wrap breaks a line at spaces so that it fits so many columns, what follows indented;
// a word that is longer stays whole. Nothing is broken for a width of 0.
func wrap(line string, width, indent int) string {
	if width == 0 || Columns(line) <= width {
		return line
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Split(line, " ") {
		n := Columns(word)
		switch {
		case i == 0:
		case at > indent && at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// Screen is a writer that breaks lines at the width of a terminal, what follows below
// the text that it belongs to. Lines of programs, which begin with four spaces or a few more, stay as
// they are. Flush writes a line that has not ended.
type Screen struct {
	w     io.Writer
	width int
	rest  []byte
}

// NewScreen returns a screen of so many columns; of 0, for what is no terminal, it
// breaks nothing.
func NewScreen(w io.Writer, width int) *Screen { return &Screen{w: w, width: width} }

// Write writes the lines that have ended.
func (s *Screen) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		at := bytes.IndexByte(s.rest, '\n')
		if at < 0 {
			return len(p), nil
		}
		if _, err := fmt.Fprintln(s.w, s.broken(string(s.rest[:at]))); err != nil {
			return 0, err
		}
		s.rest = s.rest[at+1:]
	}
}

// Flush writes what is left.
func (s *Screen) Flush() error {
	_, err := io.WriteString(s.w, s.broken(string(s.rest)))
	s.rest = nil
	return err
}

func (s *Screen) broken(line string) string {
	line = strings.TrimRight(line, " ")
	if s.width == 0 || strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "        ") {
		return line
	}
	return wrap(line, s.width, hanging(line))
}

// widestLabel is the column in which the text of a line begins at most.
const widestLabel = 24

// hanging is the column below which a line goes on: that of its text behind a label,
// which two spaces or more part from it.
func hanging(line string) int {
	first := len(line) - len(strings.TrimLeft(line, " "))
	label := strings.Index(line[first:], "  ")
	if label < 0 {
		return first + 2
	}
	rest := line[first+label:]
	if at := Columns(line[:len(line)-len(strings.TrimLeft(rest, " "))]); at <= widestLabel {
		return at
	}
	return first + 2
}
