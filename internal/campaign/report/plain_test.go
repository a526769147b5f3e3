package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"plumb/internal/judge/verdict"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"plain ÷ · ≤\n\tx":          "plain ÷ · ≤\n\tx",
		"\x1b[31mred\x07":           `\x1b[31mred\x07`,
		"a\u202eb\u2066\u200bc":     `a\u202eb\u2066\u200bc`,
		"bad \xff\xfe, good \ufffd": "bad \\xff\\xfe, good \ufffd",
		"\r\x00\x7f\u0085":          `\x0d\x00\x7f\u0085`,
	} {
		if got := Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
	long := Plain("é" + strings.Repeat("x", 1<<20) + "\nnext")
	if len(long) > 2<<10 || !strings.HasSuffix(long, " bytes more\nnext") {
		t.Errorf("a line of 1 MiB is %d bytes: …%q", len(long), long[len(long)-40:])
	}
}

func wellFormed(file []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(file))
	for {
		if _, err := d.Token(); err != nil {
			return err == io.EOF
		}
	}
}

// FuzzPlain: whatever is printed on a console holds no codes of its own, and
// nothing is lost of what is plain.
func FuzzPlain(f *testing.F) {
	f.Add("\x1b]0;title\x07\u202e\xff\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain(text)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x07\x1b\r\u202e\u2067") || Plain(got) != got {
			t.Errorf("%q", got)
		}
		var b bytes.Buffer
		c := &Console{W: &b, Tests: true, Verbose: true}
		c.Record(record(text, 0, verdict.Verdict{Word: verdict.Crash, Reason: text}))
		c.End(&verdict.End{Test: text})
		path := filepath.Join(t.TempDir(), "junit.xml")
		j, err := NewJUnit(path, text)
		if err != nil {
			t.Fatal(err)
		}
		j.Record(record(text, 0, verdict.Verdict{Word: verdict.Crash, Reason: text}))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if file, err := os.ReadFile(path); err != nil || !wellFormed(file) || bytes.ContainsAny(file, "\x1b\u202e") {
			t.Errorf("%v %q", err, file)
		}
		if strings.ContainsAny(b.String(), "\x1b\x07\r\u202e") {
			t.Errorf("%q", b.String())
		}
	})
}
