package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteReportKeepsWhatWasThere: a report that cannot be written leaves the
// one before it, and nothing beside it.
func TestWriteReportKeepsWhatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, werr := io.WriteString(w, s)
			return errors.Join(werr, err)
		}
	}
	if err := writeReport(path, text("first", nil)); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	if err := writeReport(path, text("second", full)); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if err := writeReport("/dev/full", text("text", nil)); err == nil {
		t.Error("/dev/full took a report")
	}
}

// TestOutputErrorsEndACommand: what could not be written is a fault, beside
// findings and mistakes, which stay what they are.
func TestOutputErrorsEndACommand(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full: ", err)
	}
	defer full.Close()
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, exitFault}, {errors.New("x"), exitFault},
		{&exitError{exitFindings, nil}, exitFindings}, {&exitError{exitUsage, errors.New("x")}, exitUsage},
		{&exitError{exitNothing, errors.New("x")}, exitFault},
	} {
		out := &stdout{file: full}
		if got := out.lost(c.err); got != c.err {
			t.Errorf("%v became %v before anything was written", c.err, got)
		}
		_, _ = io.WriteString(out, "text")
		_, _ = io.Copy(out, new(one))
		if got := out.lost(c.err); exitCode(got) != c.code {
			t.Errorf("%v became %v", c.err, got)
		}
	}
}

// one reads one byte.
type one struct{ done bool }

func (o *one) Read(b []byte) (int, error) {
	if o.done {
		return 0, io.EOF
	}
	o.done = true
	return 1, nil
}
