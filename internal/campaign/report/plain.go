package report

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestLine bounds the bytes of a line that Plain leaves whole, and cutLine what
// it leaves of a longer one.
const (
	longestLine = 16 << 10
	cutLine     = 1 << 10
)

// Plain returns text that is safe to print: control characters but the end of a
// line and the tabulator, what changes the direction of writing, what cannot be
// seen, and bytes that are not UTF-8 are escaped, and lines of more than 16 KiB
// are cut.
func Plain(text string) string {
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		plainLine(&b, line)
	}
	return b.String()
}

func isPlain(text string) bool {
	since := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			since = i
		case c < ' ' && c != '\t', c >= 0x7f, i-since > longestLine:
			return false
		}
	}
	return true
}

func plainLine(b *strings.Builder, line string) {
	more := 0
	if len(line) > longestLine {
		cut := cutLine
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		body := strings.TrimSuffix(line, "\n")
		more = len(body) - cut
		line = body[:cut]
	}
	for i, r := range line {
		switch {
		case r == utf8.RuneError && strings.HasPrefix(line[i:], string(utf8.RuneError)):
			b.WriteRune(r)
		case r == utf8.RuneError:
			fmt.Fprintf(b, `\x%02x`, line[i])
		case r == '\n', r == '\t':
			b.WriteRune(r)
		case r < 0x80 && !unicode.IsPrint(r):
			fmt.Fprintf(b, `\x%02x`, r)
		case !unicode.IsPrint(r) && r != '\u00a0':
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	if more > 0 {
		fmt.Fprintf(b, "… and %d bytes more\n", more)
	}
}

// paper is a writer that prints Plain text. Colours are of its own: what others
// write cannot know how they begin.
type paper struct {
	w     io.Writer
	begin string // of a colour
}

func newPaper(w io.Writer) *paper { return &paper{w, "\x1b" + rand.Text()} }

// Write writes text that ends at a character's end.
func (p *paper) Write(text []byte) (int, error) {
	var b strings.Builder
	for i, part := range strings.Split(string(text), p.begin) {
		if i > 0 {
			code, rest, _ := strings.Cut(part, "m")
			fmt.Fprintf(&b, "\x1b[%sm", code)
			part = rest
		}
		b.WriteString(Plain(part))
	}
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// color paints text that is shown on this paper.
func (p *paper) color(code, text string) string {
	return p.begin + code + "m" + text + p.begin + "0m"
}

// NewPlainWriter returns a writer that prints Plain text.
func NewPlainWriter(w io.Writer) io.Writer { return newPaper(w) }
