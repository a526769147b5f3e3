package backend

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text of a subject as a terminal may show it: of at most
// about limit bytes, in valid UTF-8, and with escapes for what would command
// the terminal or hide text, control and format characters but newline and tab.
func Printable(s string, limit int) string {
	whole := len(s)
	if whole > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsFunc(s, commands) {
		var b strings.Builder
		for _, r := range s {
			switch {
			case !commands(r):
				b.WriteRune(r)
			case r < 0x80:
				fmt.Fprintf(&b, "\\x%02x", r)
			default:
				fmt.Fprintf(&b, "\\u%04x", r)
			}
		}
		s = b.String()
	}
	if whole > limit {
		s += fmt.Sprintf("… (%d bytes in all)", whole)
	}
	return s
}

// commands reports a character that is no text.
func commands(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}
