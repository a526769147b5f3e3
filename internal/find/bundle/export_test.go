package bundle

import (
	"bytes"
	"io"
	"os"
	"regexp"
)

// WriteWith writes a bundle with another way to write its files.
func (b *Bundle) WriteWith(dir string, writeFile func(string, []byte, os.FileMode) error) error {
	return b.write(dir, writeFile)
}

// ReadZip reads a zip file in memory.
func ReadZip(r io.ReaderAt, size int64) (*Bundle, error) { return readZip(r, size) }

var checksum = regexp.MustCompile(`"checksum": *"[^"]*"`)

// Reseal gives a finding.json the checksums that fit the files and itself, so
// that a fuzzer gets past them.
func Reseal(text []byte, files map[string][]byte) []byte {
	for name, data := range files {
		text = regexp.MustCompile(`"`+regexp.QuoteMeta(name)+`": *"[^"]+"`).ReplaceAll(text, []byte(`"`+name+`": "`+sum(data)+`"`))
	}
	text = checksum.ReplaceAll(text, []byte(`"checksum": "`+blank+`"`))
	if at := bytes.LastIndex(text, []byte(blank)); at >= 0 {
		s := sum(text)
		text = append(append(append([]byte{}, text[:at]...), s...), text[at+len(blank):]...)
	}
	return text
}
