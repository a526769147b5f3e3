package backend

import (
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext":                    "plain\n\ttext",
		"\x1b[31mred\a\x00\x7f\r":          `\x1b[31mred\x07\x00\x7f\x0d`,
		"\u202eesrever \u200b\ufeff\u0085": `\u202eesrever \u200b\ufeff\u0085`,
		"\xff\xfe":                         "\uFFFD",
		"ünïcode 逆":                        "ünïcode 逆",
		strings.Repeat("é", 100):           strings.Repeat("é", 32) + "… (200 bytes in all)",
	} {
		if got := Printable(in, 64); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
